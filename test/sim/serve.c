/* What a replica model says: an MCP server of the legacy kinds and of the modern one. It mints
 * session ids and knows for whom; lost sessions are refused in the dialects of requirement [G6]. */
#include <stdio.h>
#include <stdlib.h>

#include "replica.h"

enum { DIALECTS = 12, BUILT_IN = 10 /* the others have to be configured */ };

static const struct {
    uint16_t status;
    const char *type;
    const char *body;
} LOST[DIALECTS] = {
    {404, "application/json",
        "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32001,\"message\":\"Session not "
        "found\"},\"id\":null}"},
    {404, "text/plain", "no such thing"},
    {400, "application/json",
        "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32000,\"message\":\"Bad Request: No valid "
        "session ID "
        "provided\"},\"id\":null}"},
    {400, "application/json",
        "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32000,\"message\":\"Bad Request: Server not "
        "initialized\"},\"id\":null}"},
    {400, "application/json",
        "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"Session not found\"},"
        "\"id\":\"server-error\"}"},
    {400, "application/json", "{\"error\":\"initialize the MCP session first\"}"},
    {400, "text/plain", "Session ID not found.\n"},
    {400, "text/plain", "session not found"},
    {422, "text/plain", "Unexpected message, expect initialize request"},
    {404, NULL, ""},
    {400, "application/json",
        "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32055,\"message\":\"who are "
        "you\"},\"id\":null}"},
    {410, "text/plain", "session expired"},
};

uint32_t sim_replica_dialect(struct sim *w)
{
    return sim_below(w, w->plan.has_lists ? DIALECTS : BUILT_IN);
}

static void answer_text(
    struct sim *w, struct sim_served *s, uint16_t status, const char *type, const char *text)
{
    struct sim_answer a = {.status = status, .type = type, .body = lp_span_str(text)};
    sim_answer_whole(w, s, &a);
}

static void answer_empty(struct sim *w, struct sim_served *s, uint16_t status, const char *more)
{
    struct sim_answer a = {.status = status, .more = more};
    sim_answer_whole(w, s, &a);
}

/* --- sessions --- */

/* --- cookies --- */

/* What a balancer in front of the replica would set: whose session it is, and a number that grows
 * when it is renewed. */
static void set_cookie(struct sim *w, struct sim_served *s, uint32_t number)
{
    if (!w->plan.jars)
        return;
    snprintf(s->set_cookie, sizeof s->set_cookie, "Set-Cookie: owner=%u.%u; Path=/%s\r\n", number,
        s->number, sim_one_in(w, 2) ? "; Max-Age=86400" : "");
}

/* A request of a session carries this session's cookie, and no other. */
static void check_cookie(struct sim *w, struct sim_served *s, uint32_t number)
{
    char expected[40];
    int n = snprintf(expected, sizeof expected, "owner=%u.", number);
    const char *digits = s->cookie + n;
    bool is_right =
        strncmp(s->cookie, expected, (size_t)n) == 0 && digits[strspn(digits, "0123456789")] == 0;
    if (!w->plan.jars || is_right || w->plan.no_memory_in)
        return;
    sim_fail(w, "#%u of session %u comes to %s with the cookie \"%s\"", s->number, number,
        w->replicas[s->replica].name, s->cookie);
}

static struct sim_session *find_session(struct sim *w, struct sim_served *s, const char *id)
{
    for (uint32_t i = 1; i < w->session_count; i++) {
        struct sim_session *session = &w->sessions[i];
        if (session->replica == s->replica && session->incarnation == s->incarnation &&
            !session->ended && strcmp(session->id, id) == 0) {
            check_cookie(w, s, i);
            if (w->plan.jars && sim_one_in(w, 3))
                set_cookie(w, s, i);
            return session;
        }
    }
    return NULL;
}

static void write_id(struct sim *w, const struct sim_served *s, struct sim_session *session)
{
    unsigned long long noise = sim_random(w);
    int n = snprintf(session->id, sizeof session->id, SIM_ID_MARK "%u-%u-%016llx", s->replica,
        s->incarnation, noise);
    session->usable = true;
    if (!w->plan.fault_in || session->is_sse || !sim_one_in(w, 12))
        return;
    session->usable = false;
    if (sim_one_in(w, 6)) {
        session->id[0] = 0;
        sim_count(w, SIM_FAULT_replica_bad_id);
    } else if (sim_one_in(w, 2)) {
        sim_count(w, SIM_FAULT_replica_long_id);
        memset(session->id + n, 'x', 600 - (size_t)n);
        session->id[600] = 0;
    } else {
        sim_count(w, SIM_FAULT_replica_bad_id);
        session->id[n - 3] = " \x7F\xC3"[sim_below(w, 3)];
    }
}

static struct sim_session *mint(struct sim *w, struct sim_served *s, bool is_sse)
{
    if (w->session_count >= w->session_cap) {
        uint32_t cap = w->session_cap ? 2 * w->session_cap : 64;
        w->sessions = realloc(w->sessions, cap * sizeof *w->sessions);
        LP_ASSERT(w->sessions);
        w->session_cap = cap;
    }
    struct sim_request *r = sim_served_request(w, s);
    struct sim_session *session = &w->sessions[w->session_count];
    *session = (struct sim_session){.replica = s->replica,
        .incarnation = s->incarnation,
        .server = r ? r->server : 0,
        .request = s->number,
        .client = r ? r->client : 0,
        .is_sse = is_sse,
        .conn = s->conn};
    write_id(w, s, session);
    s->owner = w->session_count++;
    set_cookie(w, s, s->owner);
    sim_say(w, "%s mints session %u (%.40s) for #%u of client %u", w->replicas[s->replica].name,
        s->owner, session->id, s->number, session->client);
    return session;
}

static void say_lost(struct sim *w, struct sim_served *s)
{
    struct sim_request *r = sim_served_request(w, s);
    uint32_t d = w->replicas[s->replica].dialect;
    if (r)
        r->wrote_lost = s->wrong == SIM_WRONG_NOT;
    sim_say(w, "%s does not know the session of #%u", w->replicas[s->replica].name, s->number);
    answer_text(w, s, LOST[d].status, LOST[d].type, LOST[d].body);
}

/* --- streams --- */

/* One that is longer than what is held of an old-SSE stream. */
static void say_long_event(struct sim *w, struct sim_served *s)
{
    char line[1000];
    memset(line, 'L', sizeof line);
    sim_answer_piece(w, s, LP_SPAN("data: "), true);
    for (int i = 0; i < 80; i++)
        sim_answer_piece(w, s, lp_span(line, sizeof line), true);
    sim_answer_piece(w, s, LP_SPAN("\n\n"), true);
}

void sim_serve_event(struct sim *w, struct sim_served *s)
{
    static const char *const ENDS[] = {"\n", "\r\n", "\r"};
    const char *end = ENDS[(s->number + s->turn) % 3];
    char text[1200], pad[800];
    size_t pads = sim_one_in(w, 10) ? sim_below(w, 700) : 0;
    memset(pad, 'p', pads);
    pad[pads] = 0;
    bool is_last = !s->is_standing && !s->is_old_sse && s->events_left == 0;
    struct sim_request *r = sim_served_request(w, s);
    if (sim_one_in(w, 12)) { /* a comment of its own */
        int n = snprintf(text, sizeof text, ": ping%s%s", end, end);
        sim_answer_piece(w, s, lp_span(text, (size_t)n), true);
    }
    int n = snprintf(text, sizeof text,
        "id: %u-%u%sevent: message%sdata: {\"jsonrpc\":\"2.0\",%s%s%s,\"sim\":%u,\"seq\":%u,%s"
        "data: \"pad\":\"%s\"}%s%s",
        s->number, s->events_said, end, end, is_last ? "\"id\":" : "\"method\":\"notifications/x\"",
        is_last && r ? r->id : "", is_last ? ",\"result\":{}" : "", s->number, s->events_said, end,
        pad, end, end);
    s->events_said++;
    sim_answer_piece(w, s, lp_span(text, (size_t)n), true);
    uint32_t burst = (s->is_standing || s->is_old_sse) && sim_one_in(w, 25) ? 300 : 0;
    for (uint32_t i = 0; i < burst; i++)
        sim_answer_piece(w, s, lp_span(text, (size_t)n), true);
    if (s->is_old_sse && sim_one_in(w, 40))
        say_long_event(w, s);
}

void sim_serve_stream_over(struct sim *w, struct sim_served *s)
{
    if (!s->owner || !s->is_sse)
        return;
    struct sim_session *session = &w->sessions[s->owner];
    if (s->is_standing && session->stream == s->number)
        session->stream = 0;
    if (s->is_old_sse)
        session->ended = true;
    s->owner = 0;
}

static void start_stream(struct sim *w, struct sim_served *s, const char *session_id)
{
    struct sim_answer a = {.status = 200,
        .type = "text/event-stream",
        .session_id = session_id,
        .more = sim_one_in(w, 2) ? "Cache-Control: max-age=3\r\nX-Accel-Buffering: yes\r\n" : NULL};
    sim_answer_stream(w, s, &a);
}

static void open_old_sse(struct sim *w, struct sim_served *s)
{
    struct sim_session *session = mint(w, s, true);
    char address[800], text[1000], origin[40] = "";
    bool is_foreign = w->plan.fault_in && sim_one_in(w, 12);
    bool is_absolute = sim_one_in(w, 2);
    if (is_absolute || is_foreign)
        snprintf(origin, sizeof origin, "http://%s",
            is_foreign ? "elsewhere.sim" : w->replicas[s->replica].authority);
    const char *path = is_absolute || sim_one_in(w, 2) ? "/up/messages" : "messages";
    const char *key = sim_one_in(w, 2) ? "tenant=7&session_id=" : "sessionId=";
    const char *rest = sim_one_in(w, 3) ? "&keep=me" : "";
    snprintf(address, sizeof address, "%s%s?%s%s%s", origin, path, key, session->id, rest);
    if (is_foreign) {
        struct sim_request *r = sim_served_request(w, s);
        session->usable = false;
        if (r)
            r->may_cut = true;
        sim_count(w, SIM_FAULT_replica_bad_endpoint);
    }
    s->is_old_sse = true;
    s->events_left = sim_below(w, 12);
    s->gap_us = sim_between(w, 1000, 8000000);
    lp_id conn = s->conn;
    start_stream(w, s, NULL);
    struct sim_conn *c = sim_conn_get(w, conn);
    if (!c || c->peer_done || s->wrong == SIM_WRONG_HANG)
        return; /* spoilt: there may be no `s` any more */
    int n = snprintf(text, sizeof text, "event: endpoint\ndata: %s\n%s\n", address,
        sim_one_in(w, 6) ? "id: e1\n" : "");
    sim_answer_piece(w, s, lp_span(text, (size_t)n), false);
    if (w->plan.fault_in && sim_one_in(w, 10)) /* a second one must not reach the client */
        sim_answer_piece(w, s, lp_span(text, (size_t)n), false);
}

static void open_standing(struct sim *w, struct sim_served *s, struct sim_session *session)
{
    if (!w->plan.streams) {
        answer_empty(w, s, 405, sim_one_in(w, 2) ? "Allow: POST, DELETE\r\n" : NULL);
        return;
    }
    if (session->stream && w->plan.strict_streams) {
        sim_say(w, "%s says 409 to #%u: #%u is there", w->replicas[s->replica].name, s->number,
            session->stream);
        answer_text(
            w, s, 409, "application/json", "{\"error\":\"Only one SSE stream is allowed\"}");
        return;
    }
    s->owner = (uint32_t)(session - w->sessions);
    session->stream = s->number;
    s->is_standing = true;
    s->events_left = sim_below(w, 15);
    s->gap_us = sim_between(w, 1000, 6000000);
    start_stream(w, s, sim_one_in(w, 2) ? session->id : NULL);
}

/* --- requests --- */

static void answer_call(struct sim *w, struct sim_served *s, const char *session_id)
{
    struct sim_request *r = sim_served_request(w, s);
    bool wants_stream = r && (r->kind == SIM_KIND_call_stream || sim_one_in(w, 5));
    if (wants_stream) {
        s->events_left = 1 + sim_below(w, 5);
        s->gap_us = sim_between(w, 500, sim_one_in(w, 6) ? 4000000 : 100000);
        start_stream(w, s, session_id);
        return;
    }
    char head[200];
    struct lp_buf body;
    lp_buf_init(&body, SIM_BUF_MAX);
    int n = snprintf(head, sizeof head,
        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"sim\":%u,\"who\":\"%u.%u\",\"pad\":\"",
        r ? r->id : "null", s->number, s->replica, s->incarnation);
    int err = lp_buf_append(&body, lp_span(head, (size_t)n));
    uint32_t pads = sim_one_in(w, 30) ? sim_below(w, 200000) : sim_below(w, 300);
    bool is_wasted = r && r->outcome == SIM_LEFT;
    if (is_wasted ? sim_one_in(w, 30) : sim_one_in(w, 10000))
        pads = 5 << 20; /* more than is read for a client that has left */
    for (uint32_t i = 0; i < pads && !err; i += 16)
        err = lp_buf_append(&body, LP_SPAN("0123456789abcdef"));
    if (!err)
        err = lp_buf_append(&body, LP_SPAN("\"}}"));
    LP_ASSERT(!err);
    struct sim_answer a = {.status = 200,
        .type = "application/json",
        .body = lp_buf_span(&body),
        .session_id = session_id};
    sim_answer_whole(w, s, &a);
    lp_buf_release(&body);
}

static void answer_initialize(struct sim *w, struct sim_served *s)
{
    if (w->plan.fault_in && sim_one_in(w, 40)) {
        answer_empty(w, s, 302, "Location: http://elsewhere.sim/mcp\r\n");
        return;
    }
    if (w->plan.fault_in && sim_one_in(w, 25)) { /* Python's way: an id on an error answer */
        struct sim_answer a = {.status = 500,
            .type = "text/plain",
            .body = LP_SPAN("cannot initialize"),
            .session_id = SIM_ID_MARK "on-an-error"};
        sim_answer_whole(w, s, &a);
        return;
    }
    if (!w->plan.mints) {
        answer_call(w, s, NULL);
        return;
    }
    char id[sizeof w->sessions->id];
    memcpy(id, mint(w, s, false)->id, sizeof id);
    s->owner = 0;
    answer_call(w, s, id);
}

static void near_miss(struct sim *w, struct sim_served *s)
{
    sim_count(w, SIM_FAULT_replica_near_miss);
    if (sim_one_in(w, 3)) { /* too long for any dialect */
        char text[3000];
        memset(text, 'n', sizeof text - 1);
        text[sizeof text - 1] = 0;
        answer_text(w, s, sim_one_in(w, 2) ? 400 : 422, "text/plain", text);
        return;
    }
    answer_text(w, s, 400, "application/json",
        "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32000,\"message\":\"Bad Request: No valid "
        "session "
        "ID provided\"},\"id\":7}");
}

static void serve_in_session(struct sim *w, struct sim_served *s)
{
    struct sim_session *session = find_session(w, s, s->session);
    if (session && w->plan.fault_in && !w->is_settling && sim_one_in(w, 40)) {
        sim_count(w, SIM_FAULT_replica_evicts);
        session->ended = true;
        session = NULL;
    }
    struct sim_request *r = sim_served_request(w, s);
    if (!session) {
        if (!r && s->method == LP_METHOD_DELETE)
            answer_empty(w, s, 200, NULL);
        else
            say_lost(w, s);
        return;
    }
    const char *echo = sim_one_in(w, 2) ? session->id : NULL;
    if (s->method == LP_METHOD_DELETE) {
        bool is_allowed = !sim_one_in(w, 8);
        session->ended = is_allowed;
        answer_empty(w, s, is_allowed ? 200 : 405, NULL);
    } else if (s->method == LP_METHOD_GET && r && r->kind == SIM_KIND_get_stream) {
        open_standing(w, s, session);
    } else if (s->method == LP_METHOD_GET) {
        s->events_left = sim_below(w, 5);
        s->gap_us = 1000000;
        start_stream(w, s, echo);
    } else if (r && !r->has_id) {
        answer_empty(w, s, 202, NULL);
    } else if (w->plan.fault_in && sim_one_in(w, 40)) {
        near_miss(w, s);
    } else {
        answer_call(w, s, echo);
    }
}

static bool is_sse_path(const char *path, const char *prefix)
{
    return strncmp(path, prefix, strlen(prefix)) == 0;
}

static void serve_message(struct sim *w, struct sim_served *s)
{
    const char *id = strstr(s->path, SIM_ID_MARK);
    char room[700] = "";
    size_t n = id ? strcspn(id, "&") : 0;
    if (n && n < sizeof room)
        memcpy(room, id, n);
    struct sim_session *session = find_session(w, s, room);
    struct sim_request *r = sim_served_request(w, s);
    if (!session) {
        say_lost(w, s);
        return;
    }
    if (r)
        sim_oracle_reached(w, s->number, s->replica, lp_span_str(session->id));
    answer_text(w, s, 202, "text/plain", "Accepted");
}

static void challenge(struct sim *w, struct sim_served *s)
{
    char text[900];
    uint32_t how = sim_below(w, 8);
    snprintf(text, sizeof text, "WWW-Authenticate: Bearer realm=\"sim\"%s%*s\r\n",
        how ? "" : ", scope=x", how ? 0 : 600, "y");
    answer_empty(w, s, 401, how == 1 ? NULL : text);
}

void sim_serve(struct sim *w, struct sim_served *s)
{
    struct sim_request *r = sim_served_request(w, s);
    if (!s->has_body || s->is_early) {
        answer_text(w, s, 413, "text/plain", "too much");
    } else if (w->plan.challenges && (!s->has_auth || sim_one_in(w, 40))) {
        challenge(w, s);
    } else if (s->method == LP_METHOD_OPTIONS) {
        answer_empty(w, s, 204, NULL);
    } else if (is_sse_path(s->path, "/up/sse")) {
        open_old_sse(w, s);
    } else if (is_sse_path(s->path, "/up/messages")) {
        serve_message(w, s);
    } else if (s->has_session) {
        serve_in_session(w, s);
    } else if (r && r->kind == SIM_KIND_modern) {
        answer_call(w, s, NULL);
    } else if (r && (r->kind == SIM_KIND_initialize || r->kind == SIM_KIND_initialize_stale)) {
        answer_initialize(w, s);
    } else if (s->method == LP_METHOD_GET) {
        answer_empty(w, s, 405, NULL);
    } else if (w->plan.mints) {
        answer_text(w, s, LOST[2].status, LOST[2].type, LOST[2].body);
    } else if (r && !r->has_id) {
        answer_empty(w, s, 202, NULL);
    } else {
        answer_call(w, s, NULL);
    }
}
