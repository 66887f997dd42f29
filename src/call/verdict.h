/* From what a probe has seen to one verdict: is the deployment fit for MCP sessions, which affinity
 * holds them, and what is wrong. A pure table; the experiments are call/probe.h's.
 *
 * LP_SITUATIONS is the list of everything that is told apart, the gravest first: of those that
 * hold, the first is the verdict, the others are told beside it. */
#ifndef LP_CALL_VERDICT_H
#define LP_CALL_VERDICT_H

#include "base/buf.h"
#include "call/stats.h"

/* X(name, judgement, affinity, remedy, headline) */
#define LP_SITUATIONS(X)                                                                           \
    /* there is nothing to judge */                                                                \
    X(no_answer, UNKNOWN, UNKNOWN, ANSWER, "the server takes connections, but does not answer")    \
    X(unreachable, NO_ENDPOINT, UNKNOWN, ADDRESS, "nothing answers at this address")               \
    X(web_page, NO_ENDPOINT, UNKNOWN, URL, "this is a web page, not an MCP endpoint")              \
    X(login_mismatch, BROKEN, UNKNOWN, LOGIN_URL,                                                  \
        "the server asks for a login, but its metadata names another address than the one in "     \
        "use: clients refuse it")                                                                  \
    X(login, UNKNOWN, UNKNOWN, LOGIN, "the server asks for a login")                               \
    X(refused, UNKNOWN, UNKNOWN, LET_IN, "the server refuses this client (403)")                   \
    X(no_endpoint, NO_ENDPOINT, UNKNOWN, URL, "what answers here is no MCP endpoint")              \
    X(trouble, UNKNOWN, UNKNOWN, RETRY, "too many requests failed to judge by the rest")           \
    /* sessions are lost */                                                                        \
    X(id_lost_outward, BROKEN, NONE, KEEP_HEADER,                                                  \
        "the server wants session ids, but the id is lost from its answers on the way")            \
    X(id_lost_inward, BROKEN, NONE, KEEP_HEADER,                                                   \
        "the session id is lost from requests on the way to the server")                           \
    X(session_hash, BROKEN, SESSION_HASH, PIN,                                                     \
        "a hash of the session id chooses the replica: each session is always right or always "    \
        "wrong, because initialize carries no id")                                                 \
    X(cookie, BROKEN, COOKIE, COOKIE, "only a client that keeps cookies stays on its replica")     \
    X(connection, BROKEN, CONNECTION, PIN,                                                         \
        "affinity only by connection: a new connection goes to another replica")                   \
    X(rotation, BROKEN, NONE, PIN, "no affinity: requests go to the replicas in strict rotation")  \
    X(random, BROKEN, NONE, PIN, "no affinity: each request goes to any replica")                  \
    X(never_found, BROKEN, NONE, PIN, "no call ever found its session")                            \
    X(address, BROKEN, ADDRESS, PIN,                                                               \
        "affinity by source address: a client with several addresses loses its session")           \
    X(old_sse, BROKEN, UNKNOWN, PIN_SSE,                                                           \
        "POSTs of old SSE do not reach the replica that holds their stream")                       \
    X(lost_sometimes, BROKEN, NONE, PIN,                                                           \
        "sessions are lost now and then: a replica restarts, or forgets too soon, or a few "       \
        "requests go astray")                                                                      \
    X(server_down, BROKEN, UNKNOWN, DOWN,                                                          \
        "a server is down behind a balancer that still sends requests to it")                      \
    X(get_elsewhere, BROKEN, UNKNOWN, ALL_METHODS,                                                 \
        "POST reaches the session's replica, GET goes elsewhere")                                  \
    X(delete_elsewhere, BROKEN, UNKNOWN, ALL_METHODS,                                              \
        "POST reaches the session's replica, DELETE goes elsewhere: sessions are left behind")     \
    X(state_not_shared, BROKEN, UNKNOWN, STATE,                                                    \
        "continuation state not shared between replicas: what one of them began, another "         \
        "refuses to go on with")                                                                   \
    /* sessions hold, something else is wrong */                                                   \
    X(idle_loss, BROKEN, UNKNOWN, REST, "the session is lost after a rest")                        \
    X(buffered, BROKEN, UNKNOWN, STREAM, "event streams are held back on the way")                 \
    X(idle_cut, BROKEN, UNKNOWN, QUIET, "quiet event streams are cut")                             \
    X(get_storm, BROKEN, UNKNOWN, GET, "GET is neither a stream nor 405: clients ask for ever")    \
    X(unknown_status, BROKEN, UNKNOWN, STATUS,                                                     \
        "an unknown session id is not answered 404: after a restart clients do not recover")       \
    X(cors_hides_id, BROKEN, UNKNOWN, CORS, "CORS hides the session id from browsers")             \
    /* all is well */                                                                              \
    X(jar, HEALTHY, COOKIE, NOTHING, "the cookie keeps every session on its replica")              \
    X(header, HEALTHY, HEADER, NOTHING, "the session id alone brings every request home")          \
    X(stateless, HEALTHY, NOT_NEEDED, NOTHING,                                                     \
        "the server keeps no sessions: any replica will do")                                       \
    X(one_process, HEALTHY, NOT_NEEDED, NOTHING, "every request found its session")                \
    X(slow_stream, HEALTHY, UNKNOWN, STREAM, "event streams begin late")                           \
    X(too_little, UNKNOWN, UNKNOWN, RETRY, "too few answers came to judge by")

enum lp_situation {
#define X(name, judgement, affinity, remedy, headline) LP_SITUATION_##name,
    LP_SITUATIONS(X)
#undef X
        LP_SITUATION_COUNT
};

enum lp_judgement { LP_JUDGE_HEALTHY, LP_JUDGE_BROKEN, LP_JUDGE_UNKNOWN, LP_JUDGE_NO_ENDPOINT };

enum lp_affinity {
    LP_AFFINITY_UNKNOWN,
    LP_AFFINITY_NONE,
    LP_AFFINITY_HEADER,
    LP_AFFINITY_COOKIE,
    LP_AFFINITY_CONNECTION,
    LP_AFFINITY_ADDRESS,
    LP_AFFINITY_SESSION_HASH,
    LP_AFFINITY_NOT_NEEDED,
};

/* What kind of thing mends it; call/fixes.h has the words. */
enum lp_remedy {
    LP_REMEDY_NOTHING,
    LP_REMEDY_URL,
    LP_REMEDY_ADDRESS,
    LP_REMEDY_TLS, /* as ADDRESS, where the port is open and its certificate or TLS is not right */
    LP_REMEDY_ANSWER,
    LP_REMEDY_LOGIN,
    LP_REMEDY_LOGIN_URL,
    LP_REMEDY_LET_IN,
    LP_REMEDY_RETRY,
    LP_REMEDY_KEEP_HEADER,
    LP_REMEDY_PIN,
    LP_REMEDY_COOKIE, /* as PIN, where a cookie is at hand */
    LP_REMEDY_PIN_SSE,
    LP_REMEDY_DOWN,
    LP_REMEDY_ALL_METHODS,
    LP_REMEDY_STATE,
    LP_REMEDY_REST,
    LP_REMEDY_STREAM,
    LP_REMEDY_QUIET,
    LP_REMEDY_GET,
    LP_REMEDY_STATUS,
    LP_REMEDY_CORS,
    LP_REMEDY_COUNT,
};

struct lp_situation_info {
    const char *name; /* "session_hash" */
    enum lp_judgement judgement;
    enum lp_affinity affinity;
    enum lp_remedy remedy;
    const char *headline;
};

struct lp_verdict {
    enum lp_situation situation;
    enum lp_judgement judgement;
    enum lp_affinity affinity;
    enum lp_remedy remedy;
    bool holds[LP_SITUATION_COUNT]; /* everything that was found */
    uint32_t rotation;              /* the period; 0: no strict rotation */
    struct lp_estimate replicas;
    struct lp_rate rates[LP_ARM_COUNT];
    struct lp_pure_rows pure; /* of FRESH */
};

/* What would make the verdict surer; to be asked until it is LP_WANT_NOTHING or time is over. */
enum lp_want {
    LP_WANT_NOTHING,
    LP_WANT_SESSIONS, /* sixty more of two calls, more where one hits: no call has found its session
                         yet */
    LP_WANT_OPENINGS, /* sixty more: some openings failed, which may be chance */
};

/* The row of a situation. */
const struct lp_situation_info *lp_situation_info(enum lp_situation situation);
/* "session-hash", "not-needed" and so on; NULL when it is not known. */
const char *lp_affinity_name(enum lp_affinity affinity);
/* "healthy", "broken" or "unknown". */
const char *lp_judgement_name(enum lp_judgement judgement);

/* Judges what was seen. */
void lp_verdict_judge(const struct lp_seen *seen, struct lp_verdict *ret);
/* What is worth asking next. */
enum lp_want lp_verdict_wants(const struct lp_seen *seen);

#endif
