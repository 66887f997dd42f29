/* Finding and adding fields of a head, and the numbers of methods (wire/head.h).
 *
 * A head is plain data; what its fields mean for the framing is decided by the codec, what may be
 * passed on by the gate. Nothing is copied: added names and values are the caller's bytes. Method
 * names have case (RFC 9110 9.1): "get" is not GET. */
#include "wire/head.h"

#include "base/assert.h"
#include "base/error.h"

const struct lp_field *lp_head_find(const struct lp_head *head, enum lp_field_id id, uint32_t *from)
{
    LP_ASSERT(head->field_count <= LP_HEAD_FIELDS_MAX);
    for (uint32_t i = from ? *from : 0; i < head->field_count; i++) {
        if (head->fields[i].id != id)
            continue;
        if (from)
            *from = i + 1;
        return &head->fields[i];
    }
    if (from)
        *from = head->field_count;
    return NULL;
}

struct lp_span lp_head_value(const struct lp_head *head, enum lp_field_id id)
{
    const struct lp_field *field = lp_head_find(head, id, NULL);
    return field ? field->value : lp_span(NULL, 0);
}

static int add(struct lp_head *head, struct lp_field field)
{
    LP_ASSERT(head->field_count <= LP_HEAD_FIELDS_MAX);
    if (head->field_count == LP_HEAD_FIELDS_MAX)
        return LP_ELIMIT;
    /* A null pointer means "no such field" to those who ask for the value. */
    if (!field.value.ptr)
        field.value = LP_SPAN("");
    head->fields[head->field_count++] = field;
    return LP_OK;
}

int lp_head_add(struct lp_head *head, enum lp_field_id id, struct lp_span value)
{
    LP_ASSERT(id != LP_FIELD_OTHER);
    return add(head, (struct lp_field){.name = lp_field_name(id), .value = value, .id = id});
}

int lp_head_add_other(struct lp_head *head, struct lp_span name, struct lp_span value)
{
    /* The id is looked up all the same: a field must not escape notice by the way it was added. */
    return add(head, (struct lp_field){.name = name, .value = value, .id = lp_field_lookup(name)});
}

static enum lp_method confirm(struct lp_span name, struct lp_span want, enum lp_method method)
{
    return lp_span_eq(name, want) ? method : LP_METHOD_OTHER;
}

enum lp_method lp_method_lookup(struct lp_span name)
{
#define KEY(len, first) ((len) << 8 | (first))
#define CASE(len, first, method)                                                                   \
    case KEY(len, first):                                                                          \
        return confirm(name, LP_SPAN(#method), LP_METHOD_##method)

    switch (name.len ? KEY(name.len, (unsigned char)name.ptr[0]) : 0) {
        CASE(3, 'G', GET);
        CASE(3, 'P', PUT);
        CASE(4, 'H', HEAD);
        CASE(4, 'P', POST);
        CASE(5, 'P', PATCH);
        CASE(5, 'T', TRACE);
        CASE(6, 'D', DELETE);
        CASE(7, 'C', CONNECT);
        CASE(7, 'O', OPTIONS);
    default:
        return LP_METHOD_OTHER;
    }
#undef CASE
#undef KEY
}
