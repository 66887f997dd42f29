/* Servers that answer by themselves, for tests that are about something else than the dialogue:
 * every connection is accepted and every command answered well, as one server or as a cluster of
 * the hosts A and B. */
#ifndef STORE_ROBOT_H
#define STORE_ROBOT_H

#include "store_harness.h"

#define ROBOT_HALF(first, last, host)                                                              \
    "*3\r\n:" first "\r\n:" last "\r\n*2\r\n$1\r\n" host "\r\n:6379\r\n"
#define ROBOT_MAP "*2\r\n" ROBOT_HALF("0", "8191", "A") ROBOT_HALF("8192", "16383", "B")

static inline const char *robot_reply(struct lp_span command, bool is_cluster, char *room)
{
    if (lp_span_starts(command, LP_SPAN("CLUSTER")))
        return is_cluster ? ROBOT_MAP : NO_CLUSTER;
    if (lp_span_starts(command, LP_SPAN("ROLE")))
        return PRIMARY;
    if (lp_span_starts(command, LP_SPAN("PING")))
        return "+PONG\r\n";
    if (lp_span_starts(command, LP_SPAN("SCRIPT")))
        return "$40\r\n0123456789abcdef0123456789abcdef01234567\r\n";
    if (!lp_span_starts(command, LP_SPAN("SUBSCRIBE")))
        return ":1\r\n";
    struct lp_span channel = lp_span_from(command, 10);
    sprintf(room, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%.*s\r\n:1\r\n", channel.len, (int)channel.len,
        channel.ptr);
    return room;
}

/* One round for one connection; false: it had nothing to do. */
static inline bool robot_serve(struct world *w, lp_id id, bool is_cluster)
{
    char answers[4096] = "", room[256];
    if (w->conns[id].is_closed)
        return false;
    if (!w->conns[id].is_connected) {
        connected(w, id);
        return true;
    }
    if (w->conns[id].is_draining)
        drained(w, id);
    struct lp_span rest = lp_span_str(said(w, id));
    bool has_work = rest.len > 0;
    while (rest.ptr && has_work) {
        struct lp_span command = lp_span_split(rest, ';', &rest);
        strcat(answers, robot_reply(lp_span_trim(command), is_cluster, room));
    }
    if (has_work)
        answer(w, id, answers);
    return has_work;
}

static inline void robot_run(struct world *w, bool is_cluster)
{
    bool has_work = true;
    while (has_work) {
        has_work = false;
        for (lp_id id = 1; id <= w->count; id++)
            has_work |= robot_serve(w, id, is_cluster);
    }
}

#endif
