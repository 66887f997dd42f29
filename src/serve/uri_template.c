/* Templates of addresses (serve/uri_template.h): one walk over both, without going back. */
#include "serve/uri_template.h"

struct walk {
    struct lp_span text; /* what is left of the template */
    struct lp_span uri;
    struct lp_span name; /* the last name, and what stood for it */
    struct lp_span value;
};

bool lp_uri_is_template(struct lp_span text)
{
    return lp_span_find(text, '{') < text.len;
}

/* Both begin behind the text before the next '{'. */
static bool skip_literal(struct walk *w)
{
    struct lp_span literal = lp_span(w->text.ptr, lp_span_find(w->text, '{'));
    if (!lp_span_starts(w->uri, literal))
        return false;
    w->text = lp_span_from(w->text, literal.len);
    w->uri = lp_span_from(w->uri, literal.len);
    return true;
}

static bool take_name(struct walk *w)
{
    size_t close = lp_span_find(w->text, '}');
    if (close == w->text.len)
        return false;
    w->name = lp_span(w->text.ptr + 1, close - 1);
    w->text = lp_span_from(w->text, close + 1);
    size_t end = w->text.len ? lp_span_find(w->uri, w->text.ptr[0]) : w->uri.len;
    w->value = lp_span(w->uri.ptr, end);
    w->uri = lp_span_from(w->uri, end);
    return end > 0 && lp_span_find(w->value, '/') == end;
}

bool lp_uri_template_fits(struct lp_span text, struct lp_span uri)
{
    struct walk w = {.text = text, .uri = uri};
    bool fits = skip_literal(&w);
    while (fits && w.text.len)
        fits = take_name(&w) && skip_literal(&w);
    return fits && w.uri.len == 0;
}

struct lp_span lp_uri_template_value(struct lp_span text, struct lp_span uri, struct lp_span name)
{
    struct walk w = {.text = text, .uri = uri};
    bool fits = skip_literal(&w);
    while (fits && w.text.len) {
        fits = take_name(&w);
        if (fits && lp_span_eq(w.name, name))
            return w.value;
        fits = fits && skip_literal(&w);
    }
    return LP_SPAN("");
}
