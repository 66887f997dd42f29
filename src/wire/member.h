/* One member of a JSON object, as the bytes that stand there. */
#ifndef LP_WIRE_MEMBER_H
#define LP_WIRE_MEMBER_H

#include "base/span.h"

/* The value of the first member `key` of the object `json`; empty when there is none or `json` is
 * no object. `json` must have passed the reader (wire/json.h). */
struct lp_span lp_member(struct lp_span json, struct lp_span key);

/* The same as a whole number. False when it is there and is not one; *ret stays as it was when it
 * is not there. */
bool lp_member_u64(struct lp_span json, struct lp_span key, uint64_t *ret);

/* Whether it is there, and a string that means `text`. */
bool lp_member_is(struct lp_span json, struct lp_span key, struct lp_span text);

/* Calls `each` for every element of the array `json`, in order, with the element's bytes. */
typedef void (*lp_element_fn)(void *ctx, struct lp_span element);
void lp_elements(struct lp_span json, lp_element_fn each, void *ctx);

/* Calls `each` for every member of the object `json`, in order, with the raw key (quotes included)
 * and the value's bytes. */
typedef void (*lp_member_fn)(void *ctx, struct lp_span key, struct lp_span value);
void lp_members(struct lp_span json, lp_member_fn each, void *ctx);

#endif
