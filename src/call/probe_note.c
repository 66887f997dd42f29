/* How the probe notes answers (call/probe_priv.h): what counts as a lost session, which hops and
 * cookies a head names, and whether replicas tell themselves apart.
 *
 * A lost session is what the server itself says of an id that nobody minted, whatever the status;
 * beyond that every 4xx that servers are known to use for it. */
#include <stdio.h>
#include <stdlib.h>

#include "call/probe_priv.h"

bool lp_probe_is_fault(const struct lp_reply *reply)
{
    uint16_t status = reply->answer.status;
    return !status || status >= 500 || status == 429 || status == 408;
}

bool lp_probe_may_change(const struct lp_reply *reply)
{
    int error = reply->answer.error;
    return reply->answer.status ||
        (error != LP_EREFUSED && error != LP_EUNREACHABLE && error != LP_ETIMEOUT &&
            error != LP_ETOO_LONG);
}

void lp_probe_note_failure(struct lp_probe *probe, const struct lp_reply *reply)
{
    struct lp_seen *seen = &probe->seen;
    struct lp_span words = reply->failure.len ? reply->failure : reply->message;
    char silence[LP_SEEN_TEXT_MAX];
    bool is_silent =
        !reply->answer.status && reply->answer.is_connected && reply->answer.error == LP_ETIMEOUT;
    if (is_silent) {
        snprintf(
            silence, sizeof silence, "connected, but no answer within %.1f s", LP_ASK_MS / 1000.0);
        words = lp_span_str(silence);
    }
    lp_seen_text(seen->failure, sizeof seen->failure, words);
}

static bool is_as_unknown(const struct lp_probe *probe, const struct lp_reply *reply)
{
    const struct lp_seen_answer *unknown = &probe->seen.unknown;
    if (!unknown->is_asked)
        return false;
    bool both_hang = unknown->error == LP_ETIMEOUT && reply->answer.error == LP_ETIMEOUT;
    bool same_error = unknown->status && unknown->status == reply->answer.status &&
        !unknown->is_result && !reply->answer.is_result && unknown->media == reply->answer.media;
    return both_hang || same_error;
}

enum lp_seen_mark lp_probe_mark(const struct lp_probe *probe, const struct lp_reply *reply)
{
    const struct lp_seen_answer *answer = &reply->answer;
    bool is_lost_by_words = lp_seen_same(answer, &probe->seen.unknown);
    if (answer->is_result)
        return LP_MARK_OK;
    if (answer->code == -32601 && !is_lost_by_words)
        return LP_MARK_OK; /* it knows the session, but not the method */
    if (answer->status == 200 && answer->code && !is_lost_by_words)
        return answer->code == -32001 ? LP_MARK_LOST : LP_MARK_OK;
    if (is_as_unknown(probe, reply))
        return LP_MARK_LOST;
    switch (answer->status) {
    case 400:
    case 404:
    case 409:
    case 410:
    case 422:
        return LP_MARK_LOST;
    default:
        return LP_MARK_FAULT;
    }
}

void lp_probe_tally(const struct lp_probe *probe, struct lp_seen_tally *tally,
    const struct lp_reply *reply, bool is_fine)
{
    const struct lp_seen_answer *answer = &reply->answer;
    const struct lp_seen_answer *unknown = &probe->seen.unknown;
    bool is_lost = lp_seen_same(answer, unknown) ||
        (answer->code && answer->code == unknown->code && answer->status == unknown->status);
    tally->asked++;
    if (is_fine)
        tally->fine++;
    else if (answer->status == 405 || answer->status == 501)
        tally->refused++;
    else if (is_lost)
        tally->lost++;
    else if (lp_probe_is_fault(reply))
        tally->faults++;
    else
        tally->odd++;
}

/* --- heads --- */

static void note_hop(struct lp_seen *seen, const char *name, struct lp_span value)
{
    char text[LP_SEEN_TEXT_MAX];
    char hop[LP_SEEN_TEXT_MAX + 16];
    if (!value.len)
        return;
    lp_seen_text(text, sizeof text - 16, value);
    snprintf(hop, sizeof hop, "%s: %s", name, text);
    for (uint32_t i = 0; i < seen->hop_count; i++)
        if (strcmp(seen->hops[i], hop) == 0)
            return;
    if (seen->hop_count < LP_SEEN_HOPS_MAX)
        lp_seen_text(seen->hops[seen->hop_count++], LP_SEEN_TEXT_MAX, lp_span_str(hop));
}

static void note_cookie(struct lp_seen *seen, struct lp_span line)
{
    char name[LP_SEEN_TEXT_MAX];
    struct lp_span rest;
    struct lp_span pair = lp_span_split(line, ';', &rest);
    lp_seen_text(name, sizeof name, lp_span_trim(lp_span_split(pair, '=', &rest)));
    if (!rest.ptr || !name[0])
        return;
    for (uint32_t i = 0; i < seen->cookie_count; i++)
        if (strcmp(seen->cookies[i], name) == 0)
            return;
    if (seen->cookie_count < LP_SEEN_COOKIES_MAX)
        memcpy(seen->cookies[seen->cookie_count++], name, sizeof name);
}

void lp_probe_note_head(void *ctx, const struct lp_head *head)
{
    struct lp_probe *probe = ctx;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct lp_field *field = &head->fields[i];
        if (field->id == LP_FIELD_SET_COOKIE)
            note_cookie(&probe->seen, field->value);
        else if (lp_span_ieq(field->name, LP_SPAN("via")))
            note_hop(&probe->seen, "Via", field->value);
        else if (lp_span_ieq(field->name, LP_SPAN("server")))
            note_hop(&probe->seen, "Server", field->value);
        else if (lp_span_ieq(field->name, LP_SPAN("x-powered-by")))
            note_hop(&probe->seen, "X-Powered-By", field->value);
    }
}

/* --- replicas that tell themselves apart --- */

static uint32_t add_hash(uint32_t hash, struct lp_span text)
{
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.ptr[i]) * 16777619u;
    return hash;
}

/* Kinds count when they come again: what is new in every session tells no replicas apart. */
static void sum_kinds(struct lp_probe *probe)
{
    bool repeats = probe->kind_count * 3 <= probe->kind_sum * 2;
    bool is_told = probe->kind_count < LP_PROBE_KINDS_MAX && probe->kind_sum >= 4 && repeats;
    probe->seen.kinds = is_told ? probe->kind_count : 0;
}

void lp_probe_note_kind(struct lp_probe *probe, struct lp_span result, struct lp_span id)
{
    struct lp_span rest;
    struct lp_span owner = lp_span_split(id, '.', &rest);
    uint32_t hash = add_hash(2166136261u, result);
    uint32_t i = 0;
    if (rest.ptr && owner.len <= 32)
        hash = add_hash(hash, owner);
    while (i < probe->kind_count && probe->kinds[i] != hash)
        i++;
    if (i == probe->kind_count && i < LP_PROBE_KINDS_MAX)
        probe->kinds[probe->kind_count++] = hash;
    probe->kind_sum++;
    sum_kinds(probe);
}

/* --- pace --- */

void lp_probe_note_pace(struct lp_probe *probe, const struct lp_reply *reply)
{
    uint64_t us = reply->last_us - reply->sent_us;
    if (probe->pace_count < LP_PROBE_PACE_MAX)
        probe->pace_us[probe->pace_count++] = (uint32_t)(us < UINT32_MAX ? us : UINT32_MAX);
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

uint32_t lp_probe_pace(struct lp_probe *probe)
{
    if (!probe->pace_count)
        return 0;
    qsort(probe->pace_us, probe->pace_count, sizeof *probe->pace_us, compare);
    return probe->pace_us[probe->pace_count / 2];
}
