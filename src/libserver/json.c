/* As much JSON as a handler needs (limpet-server.h; wire/member.h, wire/json.h). What a client sent
 * has passed the reader already; what the program hands in may be anything. */
#include "wire/json.h"

#include "base/error.h"
#include "libserver/libserver.h"
#include "wire/member.h"

static struct lp_span skip_blanks(struct lp_span text)
{
    while (text.len && memchr(" \t\r\n", text.ptr[0], 4))
        text = lp_span_from(text, 1);
    return text;
}

bool lp_seat_is_json(struct lp_span text, char first)
{
    struct lp_json reader;
    struct lp_span from = skip_blanks(text);
    lp_json_init(&reader, NULL, NULL);
    return from.len && (!first || from.ptr[0] == first) && !lp_json_feed(&reader, text) &&
        !lp_json_finish(&reader);
}

struct limpet_span limpet_json_member(struct limpet_span json, const char *key)
{
    return lp_lib_out(lp_member(lp_lib_in(json), lp_span_str(key)));
}

struct pick {
    size_t left;
    struct lp_span found;
};

static void on_element(void *ctx, struct lp_span element)
{
    struct pick *pick = ctx;
    if (pick->left-- == 0)
        pick->found = element;
}

struct limpet_span limpet_json_element(struct limpet_span json, size_t index)
{
    struct pick pick = {.left = index};
    if (lp_seat_is_json(lp_lib_in(json), '['))
        lp_elements(lp_lib_in(json), on_element, &pick);
    return lp_lib_out(pick.found);
}

/* The value that stands there, null being none. */
static int find(struct limpet_span json, const char *key, struct lp_span *ret)
{
    struct lp_span value = lp_member(lp_lib_in(json), lp_span_str(key));
    if (!value.len || lp_span_eq(value, LP_SPAN("null")))
        return LIMPET_ENOT_FOUND;
    *ret = value;
    return LIMPET_OK;
}

int limpet_json_text(struct limpet_span json, const char *key, char *room, size_t room_bytes,
    struct limpet_span *ret_text)
{
    struct lp_span value;
    size_t len;
    int err = find(json, key, &value);
    if (err)
        return err;
    if (value.ptr[0] != '"')
        return LIMPET_ESYNTAX;
    if (!room_bytes || lp_json_unescape(value, room, room_bytes - 1, &len))
        return LIMPET_ETOO_LONG;
    room[len] = '\0';
    *ret_text = limpet_bytes(room, len);
    return LIMPET_OK;
}

static bool are_digits(struct lp_span text)
{
    bool is_fine = text.len > 0;
    for (size_t i = 0; i < text.len && is_fine; i++)
        is_fine = text.ptr[i] >= '0' && text.ptr[i] <= '9';
    return is_fine;
}

int limpet_json_integer(struct limpet_span json, const char *key, int64_t *ret_number)
{
    struct lp_span value;
    uint64_t number;
    int err = find(json, key, &value);
    if (err)
        return err;
    bool is_negative = value.ptr[0] == '-';
    value = lp_span_from(value, is_negative);
    if (!are_digits(value))
        return LIMPET_ESYNTAX;
    if (!lp_span_to_u64(value, &number) || number > (uint64_t)INT64_MAX + is_negative)
        return LIMPET_ERANGE;
    *ret_number = (int64_t)(is_negative ? 0 - number : number);
    return LIMPET_OK;
}

int limpet_json_bool(struct limpet_span json, const char *key, bool *ret_value)
{
    struct lp_span value;
    int err = find(json, key, &value);
    if (err)
        return err;
    bool is_true = lp_span_eq(value, LP_SPAN("true"));
    if (!is_true && !lp_span_eq(value, LP_SPAN("false")))
        return LIMPET_ESYNTAX;
    *ret_value = is_true;
    return LIMPET_OK;
}

int limpet_json_quote(
    struct limpet_span text, char *room, size_t room_bytes, struct limpet_span *ret_json)
{
    struct lp_buf out;
    if (!room_bytes)
        return LIMPET_ETOO_LONG;
    lp_buf_init(&out, room_bytes - 1); /* over the caller's room: it never grows */
    out.ptr = room;
    out.cap = room_bytes - 1;
    if (lp_json_quote(&out, lp_lib_in(text)))
        return LIMPET_ETOO_LONG;
    room[out.len] = '\0';
    *ret_json = limpet_bytes(room, out.len);
    return LIMPET_OK;
}
