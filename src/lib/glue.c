/* Rooms, objects and endings of the public library (lib/glue.h), its errors and its version. */
#include "lib/glue.h"

#include "base/error.h"

_Static_assert((int)LIMPET_OK == LP_OK && (int)LIMPET_ENOMEM == LP_ENOMEM, "");
_Static_assert((int)LIMPET_ELIMIT == LP_ELIMIT && (int)LIMPET_ESYNTAX == LP_ESYNTAX, "");
_Static_assert((int)LIMPET_ERANGE == LP_ERANGE && (int)LIMPET_ETOO_LONG == LP_ETOO_LONG, "");
_Static_assert((int)LIMPET_EFORGED == LP_EFORGED && (int)LIMPET_EEXPIRED == LP_EEXPIRED, "");
_Static_assert((int)LIMPET_EUNKNOWN_KEY == LP_EUNKNOWN_KEY, "");
_Static_assert((int)LIMPET_ENOT_FOUND == LP_ENOT_FOUND && (int)LIMPET_EEXISTS == LP_EEXISTS, "");

const char *limpet_error_sentence(int error)
{
    return lp_error_sentence(error);
}

const char *limpet_error_name(int error)
{
    return lp_error_name(error);
}

const char *limpet_version(void)
{
    return LP_VERSION;
}

struct lp_buf lp_lib_room(char *room, size_t room_bytes)
{
    struct lp_buf buf;
    lp_buf_init(&buf, room_bytes);
    buf.ptr = room;
    buf.cap = room_bytes;
    return buf;
}

void *lp_lib_new(const struct limpet_alloc *alloc, size_t bytes)
{
    struct lp_alloc inner = {0};
    if (alloc)
        inner = (struct lp_alloc){.resize = alloc->resize, .context = alloc->context};
    struct lp_lib_object *object = lp_resize(&inner, NULL, 0, bytes);
    if (!object)
        return NULL;
    memset(object, 0, bytes);
    *object = (struct lp_lib_object){.alloc = inner, .bytes = bytes};
    return object;
}

void lp_lib_free(void *object)
{
    if (!object)
        return;
    struct lp_lib_object head = *(struct lp_lib_object *)object;
    (void)lp_resize(&head.alloc, object, head.bytes, 0);
}

struct limpet_ending lp_lib_ending(enum lp_reason reason, const char *detail)
{
    const struct lp_reason_info *info = lp_reason_info(reason);
    return (struct limpet_ending){.name = info->name,
        .sentence = lp_reason_public(reason),
        .detail = detail,
        .http_status = info->http_status,
        .jsonrpc_code = info->jsonrpc_code};
}
