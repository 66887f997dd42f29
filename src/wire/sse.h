/* Server-sent events (WHATWG HTML 9.2.6; wire document 2.6): an incremental reader that keeps the
 * bytes, and a writer.
 *
 * Two uses, one reader. A proxy asks where events end, to put a comment or an error between two of
 * them while passing the bytes as they are; a client (and the endpoint rewriting of old SSE) wants
 * the events themselves. Line ends are LF, CR and CRLF, mixed, at any split; a CR at the end of one
 * feed and an LF at the start of the next are one line end. One leading BOM is dropped. An event
 * without its closing empty line at the end of the stream is never reported. */
#ifndef LP_WIRE_SSE_H
#define LP_WIRE_SSE_H

#include "base/buf.h"
#include "base/error.h"

/* --- where events end ------------------------------------------------------------------------- */

/* Tracks line ends only: no memory, any number of bytes. */
struct lp_sse_border {
    bool in_line; /* the current line has bytes */
    bool after_cr;
    bool any; /* something was seen since the last border */
};

void lp_sse_border_init(struct lp_sse_border *b);

/* Looks at all of `in`. Returns the offset just behind the last border in it (an empty line, or the
 * start of the stream) or 0 when there is none. A border that ends in CR at the very end of `in`
 * counts (a following LF belongs to it and moves the border by one). */
size_t lp_sse_border_feed(struct lp_sse_border *b, struct lp_span in);

/* True when the bytes seen so far end between two events (also at the start of the stream). Here a
 * comment line and its empty line may be put in: if the border was a CR whose LF is still to come,
 * that LF only makes one more empty line, which dispatches nothing. */
bool lp_sse_border_at(const struct lp_sse_border *b);

/* --- events ----------------------------------------------------------------------------------- */

struct lp_sse_event {
    struct lp_span type; /* "message" when none was given */
    struct lp_span data; /* lines joined by LF */
    bool has_data;       /* false: only an id or comment; a client dispatches nothing */
    struct lp_span id;   /* the last event id as it stands now */
    bool has_id;         /* this event carried an id field */
    bool has_retry;
    uint64_t retry_ms;
    size_t raw_bytes; /* length of the event in the stream, its empty line included */
};

struct lp_sse {
    struct lp_buf line; /* the current line when it came in pieces */
    struct lp_buf data;
    struct lp_buf type;
    struct lp_buf id; /* as visible to the outside: set at dispatch */
    struct lp_buf id_next;
    bool started; /* the BOM question is settled */
    bool after_cr;
    bool data_touched;
    bool id_touched;
    bool has_retry;
    bool has_fields; /* a field of any kind since the last dispatch */
    bool reported;   /* the event was handed out: to be forgotten at the next feed */
    uint64_t retry_ms;
    size_t raw_bytes;
};

/* `event_max`: cap of one line and of one event's data. */
void lp_sse_init(struct lp_sse *s, size_t event_max);

/* The same with memory from `alloc`, which must live as long as the reader. */
void lp_sse_init_in(struct lp_sse *s, size_t event_max, const struct lp_alloc *alloc);
void lp_sse_release(struct lp_sse *s);

/* Consumes bytes up to and including the next event's empty line. Returns bytes consumed and
 * whether an event is ready at *ret_event (spans valid until the next feed or release). An event is
 * reported for every empty line that follows at least one field line (also id only: has_data
 * false); comments alone report nothing. LP_ETOO_LONG, LP_ENOMEM. */
LP_MUST ptrdiff_t lp_sse_feed(
    struct lp_sse *s, struct lp_span in, struct lp_sse_event *ret_event, bool *ret_ready);

/* Appends one event. Empty type and id are left out; `data` is split at CR, LF and CRLF into data
 * lines. LP_ELIMIT, LP_ENOMEM; LP_ESYNTAX when type or id hold CR, LF or (id) NUL. */
LP_MUST int lp_sse_write(
    struct lp_buf *out, struct lp_span type, struct lp_span id, struct lp_span data);

#endif
