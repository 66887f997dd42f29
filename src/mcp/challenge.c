/* The one parameter of a challenge that matters here (mcp/challenge.h). Schemes and other
 * parameters are left to those who log in. */
#include "mcp/challenge.h"

/* Some servers leave the quotes out, and clients understand them. */
struct lp_span lp_challenge_metadata(struct lp_span challenge)
{
    static const struct lp_span NAME = {"resource_metadata=", 18};
    size_t at = lp_span_search(challenge, NAME);
    if (at == challenge.len)
        return lp_span(NULL, 0);
    struct lp_span rest = lp_span_from(challenge, at + NAME.len);
    if (lp_span_starts(rest, LP_SPAN("\""))) {
        rest = lp_span_from(rest, 1);
        return lp_span(rest.ptr, lp_span_find(rest, '"'));
    }
    size_t space = lp_span_find(rest, ' '), comma = lp_span_find(rest, ',');
    return lp_span(rest.ptr, space < comma ? space : comma);
}
