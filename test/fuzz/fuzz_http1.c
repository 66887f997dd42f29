/* The HTTP/1 parser on both sides, with the laws of the property test: fed whole, byte by byte and
 * in pieces the transcript is the same, and every head that parses is written and parses back. The
 * same bytes are also taken as the parts of a head to write, and as a body to send in chunks: what
 * is written must parse to what was meant.
 *
 * The low bits of the first byte say how: 1 answers instead of requests, 2 and 4 the method that is
 * answered, 8 a small limit for heads. The rest is the input. */
#include "../prop/http1_transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD_MAX_SMALL = 64, BYTE_BY_BYTE_MAX = 4096 };

static struct transcript_setup setup_from(uint8_t how)
{
    static const enum lp_method answered[] = {
        LP_METHOD_GET, LP_METHOD_HEAD, LP_METHOD_CONNECT, LP_METHOD_POST};
    return (struct transcript_setup){
        .side = how & 1 ? LP_HTTP1_RESPONSES : LP_HTTP1_REQUESTS,
        .answered = answered[how >> 1 & 3],
        .head_max = how & 8 ? HEAD_MAX_SMALL : LP_HTTP1_HEAD_MAX,
    };
}

static void check_cuts(const struct transcript *whole, const struct transcript_setup *setup,
    struct lp_span bytes, struct cuts cuts)
{
    struct transcript t;
    transcribe(&t, setup, bytes, cuts);
    check_same(lp_buf_span(&whole->text), lp_buf_span(&t.text));
    lp_buf_release(&t.text);
}

/* Any number but 0, the same for the same input. */
static uint64_t seed_from(struct lp_span bytes)
{
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < bytes.len; i++)
        hash = (hash ^ (unsigned char)bytes.ptr[i]) * 1099511628211u;
    return hash | 1;
}

/* The first head in `bytes`, or NULL. */
static const struct lp_head *first_head(const struct transcript_setup *setup, struct lp_span bytes)
{
    static struct lp_head head;
    struct lp_http1 p;
    struct lp_http1_item item;
    lp_http1_init(&p, setup->side, &head);
    ptrdiff_t n = lp_http1_feed(&p, bytes, &item);
    bool is_there = n > 0 && item.kind == LP_HTTP1_HEAD;
    LP_ASSERT(!p.held.ptr || !is_there); /* it came whole: no copy was made */
    lp_http1_release(&p);
    return is_there ? &head : NULL;
}

/* A head put together again from its fields is the same to those who look for fields. */
static void check_rebuilt(const struct lp_head *head)
{
    static struct lp_head copy;
    copy.field_count = 0;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct lp_field *field = &head->fields[i];
        int err = field->id == LP_FIELD_OTHER ? lp_head_add_other(&copy, field->name, field->value)
                                              : lp_head_add(&copy, field->id, field->value);
        LP_ASSERT(!err);
    }
    uint32_t found = 0;
    for (unsigned id = 0; id < LP_FIELD_count; id++) {
        check_same(lp_head_value(head, id), lp_head_value(&copy, id));
        for (uint32_t at = 0; lp_head_find(&copy, id, &at);)
            found++;
        bool is_hop = lp_field_is_hop_by_hop(id);
        LP_ASSERT(!is_hop || id <= LP_FIELD_UPGRADE);
    }
    LP_ASSERT(found == head->field_count);
    while (copy.field_count < LP_HEAD_FIELDS_MAX)
        LP_ASSERT(!lp_head_add(&copy, LP_FIELD_DATE, lp_span(NULL, 0)));
    LP_ASSERT(lp_head_add(&copy, LP_FIELD_DATE, LP_SPAN("x")) == LP_ELIMIT);
    LP_ASSERT(lp_field_is_value(lp_http1_phrase(head->status)));
}

/* The writer takes any bytes: it refuses them, or what it writes is the head that was meant. */
static void check_made(const struct transcript_setup *setup, struct lp_span bytes)
{
    static struct lp_head head;
    struct lp_buf out;
    memset(&head, 0, sizeof head);
    head.is_request = setup->side == LP_HTTP1_REQUESTS;
    head.keep_alive = true;
    head.minor = 1;
    struct lp_span first = lp_span_split(bytes, '\0', &bytes);
    struct lp_span second = lp_span_split(bytes, '\0', &bytes);
    struct lp_span name = lp_span_split(bytes, '\0', &bytes);
    if (head.is_request) {
        head.method_name = first;
        head.method = lp_method_lookup(first);
        head.target = second;
    } else {
        head.reason = first;
        head.status = (uint16_t)(102 + second.len % 900);
        head.method = setup->answered == LP_METHOD_CONNECT ? LP_METHOD_GET : setup->answered;
    }
    LP_ASSERT(!lp_head_add_other(&head, name, lp_span_trim(bytes)));
    lp_buf_init(&out, 1 << 24);
    int err = lp_http1_write_head(&out, &head);
    bool sets_framing = head.fields[0].id && head.fields[0].id <= LP_FIELD_CONNECTION;
    bool is_expected = head.is_request && head.fields[0].id == LP_FIELD_EXPECT;
    LP_ASSERT(err == LP_OK || err == LP_ESYNTAX);
    LP_ASSERT(!err || !out.len);
    lp_buf_release(&out);
    if (!err && !sets_framing && !is_expected)
        check_written(&head);
}

/* Any bytes, sent in chunks, arrive. */
static void check_chunked(struct lp_span bytes, uint64_t seed)
{
    struct transcript_setup setup = {LP_HTTP1_RESPONSES, LP_METHOD_POST, LP_HTTP1_HEAD_MAX};
    static const char start[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    struct transcript out, got;
    lp_buf_init(&out.text, 1 << 24);
    say(&out, lp_span(start, sizeof start - 1));
    for (struct lp_span rest = bytes; rest.len;) {
        char line[LP_HTTP1_CHUNK_LINE_BYTES];
        size_t n = 1 + draw(&seed, rest.len);
        say(&out, lp_span(line, lp_http1_chunk_line(line, n)));
        say(&out, lp_span(rest.ptr, n));
        say(&out, LP_HTTP1_CHUNK_TAIL);
        rest = lp_span_from(rest, n);
    }
    say(&out, LP_HTTP1_LAST_CHUNK);
    transcribe(&got, &setup, lp_buf_span(&out.text), (struct cuts){.kind = CUT_NONE});
    struct lp_span text = lp_buf_span(&got.text);
    size_t at = lp_span_search(text, LP_SPAN("\nbody ")) + 6;
    LP_ASSERT(!got.failed);
    if (bytes.len)
        LP_ASSERT(lp_span_starts(lp_span_from(text, at), bytes));
    lp_buf_release(&out.text);
    lp_buf_release(&got.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct transcript_setup setup = setup_from(data[0]);
    struct lp_span bytes = lp_span((const char *)data + 1, size - 1);
    uint64_t seed = seed_from(bytes);
    struct transcript whole;
    transcribe(&whole, &setup, bytes, (struct cuts){.kind = CUT_NONE});
    if (bytes.len) {
        struct cuts once = {.kind = CUT_AT, .at = 1 + draw(&seed, bytes.len)};
        check_cuts(&whole, &setup, bytes, once);
    }
    for (int i = 0; i < 3; i++)
        check_cuts(&whole, &setup, bytes, (struct cuts){.kind = CUT_RANDOM, .seed = seed + 2 * i});
    if (bytes.len <= BYTE_BY_BYTE_MAX)
        check_cuts(&whole, &setup, bytes, (struct cuts){.kind = CUT_BYTES});
    lp_buf_release(&whole.text);
    const struct lp_head *head = first_head(&setup, bytes);
    if (head)
        check_rebuilt(head);
    check_made(&setup, bytes);
    check_chunked(bytes, seed);
    return 0;
}
