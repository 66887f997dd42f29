/* What the user reads when a fetch fails: what happened, where, and what to do about it. */
#include <stdarg.h>
#include <stdio.h>

#include "call/fetch_priv.h"

int lp_fetch_error_of(enum lp_reason reason)
{
    switch (reason) {
    case LP_REASON_upstream_garbled:
        return LP_ESYNTAX;
    case LP_REASON_out_of_memory:
        return LP_ENOMEM;
    case LP_REASON_upstream_stalled:
        return LP_ETIMEOUT;
    default:
        return LP_EBROKEN;
    }
}

static const char *words_of_connecting(int error)
{
    switch (error) {
    case LP_EREFUSED:
        return "the connection was refused; is the server running, and is this its address?";
    case LP_ETIMEOUT:
        return "nobody accepted the connection in time; check the address and the network";
    case LP_EUNREACHABLE:
        return "the address cannot be reached; check the host name and the network";
    case LP_ENOT_FOUND:
        return "there is no host of that name; check it";
    default:
        return NULL;
    }
}

static const char *words_of_sending(const struct lp_fetch_failure *failure)
{
    switch (failure->error) {
    case LP_ETIMEOUT:
        return "no answer came in time; give the server longer with --timeout";
    case LP_ESYNTAX:
        return "what answers there does not speak HTTP; check the address";
    case LP_ENOMEM:
        return "out of memory";
    default:
        return failure->cannot_have_run
            ? "the connection broke before anything was sent; try again"
            : "the connection broke before an answer came; whether the request was carried out is "
              "not known";
    }
}

static const char *words_of_reading(int error)
{
    switch (error) {
    case LP_ETIMEOUT:
        return "the answer stopped in its middle for too long";
    case LP_ESYNTAX:
        return "the answer is garbled: its framing is not HTTP";
    case LP_ENOMEM:
        return "out of memory";
    default:
        return "the connection broke in the middle of the answer";
    }
}

void lp_fetch_put_words(struct lp_fetch *fetch, struct lp_fetch_failure *failure)
{
    const char *words = NULL;
    if (failure->phase == LP_FETCH_CONNECTING)
        words = words_of_connecting(failure->error);
    else if (failure->phase == LP_FETCH_SENDING)
        words = words_of_sending(failure);
    else
        words = words_of_reading(failure->error);
    char *room = fetch->fetcher->sentence;
    int n = snprintf(room, LP_FETCH_SENTENCE_MAX, "%s: %s", fetch->origin,
        words ? words : lp_error_sentence(failure->error));
    LP_ASSERT(n > 0 && n < LP_FETCH_SENTENCE_MAX);
    failure->sentence = lp_span(room, (size_t)n);
}

void lp_fetch_note(const struct lp_fetch *fetch, const char *fmt, ...)
{
    char room[256];
    if (!fetch->fetcher->log)
        return;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(room, sizeof room, fmt, args);
    va_end(args);
    LP_ASSERT(n >= 0);
    struct lp_netlog_at at = {
        .wall_ms = fetch->fetcher->wall_ms, .number = fetch->facts.number, .is_sent = true};
    size_t len = (size_t)n < sizeof room ? (size_t)n : sizeof room - 1;
    lp_netlog_note(fetch->fetcher->log, at, lp_span(room, len));
}
