/* One connection of a replica model, shared by replica.c (bytes, framing, faults) and serve.c (what
 * an MCP server says). */
#ifndef LP_SIM_REPLICA_H
#define LP_SIM_REPLICA_H

#include "sim.h"

enum sim_framing { SIM_COUNTED, SIM_CHUNKED, SIM_UNTIL_CLOSE };

/* How an answer goes wrong. */
enum sim_wrong {
    SIM_WRONG_NOT,
    SIM_WRONG_HANG,
    SIM_WRONG_BREAK_BEFORE,
    SIM_WRONG_BREAK_HEAD,
    SIM_WRONG_BREAK_MID,
    SIM_WRONG_GARBLED,
    SIM_WRONG_SLOW,
    SIM_WRONG_STALL,
};

struct sim_served {
    lp_id conn;
    uint32_t replica, incarnation;
    struct lp_http1 parser;
    bool is_busy;    /* a request is being answered */
    bool has_body;   /* ... and was all read */
    bool is_early;   /* ... and is answered before that */
    uint32_t turn;   /* counts requests, so that old steps find out */
    uint32_t number; /* of the client's request; 0: the gateway made it */
    enum lp_method method;
    char path[1024];
    char session[700];
    bool has_session, has_auth;
    char cookie[300];    /* of the request; a second field behind a "|" */
    char set_cookie[80]; /* a head line of the answer */
    struct lp_buf body;
    struct lp_buf late; /* the half of an answer that comes later */
    /* the answer */
    enum sim_framing framing;
    enum sim_wrong wrong;
    bool is_sse, is_old_sse, is_standing;
    bool closes; /* the connection ends behind the answer */
    uint32_t events_left, events_said;
    uint64_t gap_us;
    uint32_t owner; /* session of a stream */
};

/* --- replica.c --- */

struct sim_answer {
    uint16_t status;
    const char *type; /* NULL: no body */
    struct lp_span body;
    const char *more; /* further header lines, each with its line end */
    const char *session_id;
};

/* The whole of an answer, or what its fault leaves of it. */
void sim_answer_whole(struct sim *w, struct sim_served *s, const struct sim_answer *answer);
/* Head of an event stream; events follow by themselves, s->events_left of them. */
void sim_answer_stream(struct sim *w, struct sim_served *s, const struct sim_answer *answer);
void sim_answer_piece(struct sim *w, struct sim_served *s, struct lp_span bytes, bool is_recorded);
void sim_answer_end(struct sim *w, struct sim_served *s);
/* The client's request; NULL when there is none, or this run of it is not the one that counts. */
struct sim_request *sim_served_request(struct sim *w, const struct sim_served *s);

/* --- serve.c --- */

/* The request is complete: answers it. */
void sim_serve(struct sim *w, struct sim_served *s);
/* The next event of a stream. */
void sim_serve_event(struct sim *w, struct sim_served *s);
/* The stream of the connection has ended, at whichever end. */
void sim_serve_stream_over(struct sim *w, struct sim_served *s);

#endif
