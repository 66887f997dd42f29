/* Inside the store: its objects, and what its files ask of each other.
 *
 *   store.c     events and timers in, what is due at a flush
 *   state.c     whether the store is up, and what is said about it
 *   command.c   commands: their life from call to outcome
 *   route.c     which node a command goes to, and what a server's refusal means for it
 *   slots.c     the slot map of a cluster, and which nodes are wanted
 *   node.c      one server: connecting, losing, coming back
 *   greet.c     log-in and first questions of a new connection
 *   pipe.c      bytes of a connection out, replies in
 *   channels.c  publish/subscribe, on a node of its own
 *   reader.c    bytes -> replies    reply.c, slot.c, url.c, words.c: by themselves
 *
 * A command is in one list at a time, and the list says in which state it is:
 *
 *   parked ---> node.waiting ---> node.sent ---> node.held ---> ended ---> done
 *     ^--------------'-----------------'  (until WAIT is answered)
 *
 * Callbacks are called at three places only: for a reply just read (pipe.c), for a deadline that
 * has come (store.c) and for what has ended otherwise, at the flush. So nothing changes under the
 * feet of those who walk a list. */
#ifndef LP_STORE_STORE_PRIV_H
#define LP_STORE_STORE_PRIV_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/slab.h"
#include "store/reader.h"
#include "store/store.h"

enum {
    LP_TIMER_STORE_COMMAND = LP_TIMER_STORE, /* a call's deadline */
    LP_TIMER_STORE_NODE,                     /* try again; log-in is late; still alive? */
    LP_TIMER_STORE_TICK,                     /* parked commands, the slot map */
    LP_STORE_TICK_US = 100000,
    LP_STORE_BACKOFF_US = 100000, /* the first pause; doubled up to the last */
    LP_STORE_BACKOFF_MAX_US = 2000000,
    LP_STORE_STEADY_US = 1000000, /* up for so long: a loss is tried again without a pause */
    LP_STORE_QUIET_US = 3000000,  /* a connection is asked whether it lives as often as this */
    LP_STORE_UNUSED_US = 10000000,
    LP_STORE_RETELL_US = 5000000, /* another reason for not being up is told after this */
    LP_STORE_OUT_SOFT = 1 << 18,  /* what waits in one connection's buffer; the rest in its list */
    LP_STORE_SENTENCE_MAX = 512,
    LP_STORE_INNER_MAX = 4096, /* commands of the store's own, beside calls */
};

enum lp_store_command_kind {
    LP_COMMAND_CALL,
    LP_COMMAND_AUTH, /* from here on: the store's own */
    LP_COMMAND_SELECT,
    LP_COMMAND_SLOTS,
    LP_COMMAND_ROLE,
    LP_COMMAND_LOAD, /* a script */
    LP_COMMAND_PING, /* the last word of a log-in */
    LP_COMMAND_STILL_THERE,
    LP_COMMAND_ASKING,
    LP_COMMAND_WAIT,
};

enum lp_store_command_state {
    LP_COMMAND_PARKED,
    LP_COMMAND_WAITING,
    LP_COMMAND_SENT,
    LP_COMMAND_HELD,
    LP_COMMAND_ENDED,
};

struct lp_store_node;

struct lp_store_command {
    lp_id id;
    enum lp_store_command_kind kind;
    enum lp_store_command_state state;
    struct lp_list link;
    struct lp_store_node *node; /* WAITING, SENT, HELD */
    /* The arguments as they go over the wire; the head is written when it is sent. */
    struct lp_buf rest;
    uint32_t rest_count;
    uint32_t script; /* its place + 1; 0: a plain command. LOAD: which one */
    bool needs_source;
    bool has_key;
    uint16_t slot;
    bool is_write;
    bool is_idempotent;
    bool asks;         /* to be sent behind ASKING */
    bool may_have_run; /* by an attempt that was cut off */
    bool is_over;      /* SENT: its owner has had its outcome, or wants none */
    uint8_t redirects;
    uint64_t end; /* SENT: where it ends in the node's stream of bytes */
    uint64_t sent_us;
    struct lp_timer timer;
    enum lp_store_outcome outcome; /* ENDED; before: the last refusal, or ANSWERED for none */
    struct lp_arena arena;         /* HELD, ENDED: of `reply` */
    const struct lp_store_reply *reply;
    lp_store_done_fn done;
    void *ctx;
    uint64_t tag;
};

enum lp_store_node_state {
    LP_NODE_IDLE,       /* nobody has wanted it yet */
    LP_NODE_AWAY,       /* until its timer */
    LP_NODE_CONNECTING, /* until connected or failed */
    LP_NODE_GREETING,   /* until the answer to PING */
    LP_NODE_UP,
};

struct lp_store_node {
    struct lp_store *store;
    struct lp_store_address address;
    enum lp_store_node_state state;
    bool is_channels; /* the one for publish/subscribe */
    bool owns_slots;  /* by the slot map */
    bool is_lifeline; /* a seed, tried because nobody else is there */
    bool is_leaving;  /* gets no more commands, and is left when it has answered all */
    bool is_asked;    /* STILL_THERE is out */
    bool is_draining; /* a DRAIN is out */
    uint8_t step;     /* of the pauses */
    lp_id conn;       /* CONNECTING, GREETING, UP */
    uint64_t up_us;   /* since when, or last */
    uint64_t away_us; /* since when it is not up; 0: it is, or was never tried */
    uint64_t used_us; /* last given a command */
    uint64_t read_us; /* last heard of */
    struct lp_timer timer;
    struct lp_list waiting, sent, held;
    struct lp_buf out, draining;
    uint64_t put;   /* bytes ever put into `out` of this connection */
    uint64_t taken; /* bytes of them that the shell has, or may have, sent */
    struct lp_store_reader reader;
};

enum lp_store_shape { LP_SHAPE_UNKNOWN, LP_SHAPE_SINGLE, LP_SHAPE_CLUSTER };

struct lp_store {
    const struct lp_shell *shell;
    struct lp_heap *timers;
    struct lp_store_url url;
    struct lp_store_args args; /* with defaults filled in; its url is ours */
    uint64_t now_us;

    struct lp_slab commands;
    uint32_t call_count; /* that wait for an outcome */
    size_t bytes;        /* of their `rest` */
    struct lp_list parked, ended;
    bool is_retry_due; /* parked commands are looked at again in this flush */

    struct lp_store_node *nodes[LP_STORE_NODES_MAX];
    uint32_t node_count; /* places in use, with holes */
    uint32_t seed;       /* the one that is tried, or tried next, while there is no cluster */
    enum lp_store_shape shape;

    uint8_t *owner; /* of each slot: place of its node + 1; 0: nobody. NULL: no map yet */
    bool is_map_wanted;
    bool is_map_asked;
    uint64_t map_next_us; /* not asked for before */
    lp_id map_conn;       /* whose connection should be asked first */
    uint32_t map_turn;

    char (*hashes)[40]; /* of the scripts, hexadecimal; those that begin with 0 are not known yet */

    struct lp_slab channels;
    struct lp_store_node listener;
    uint32_t listener_turn;

    struct lp_timer tick;
    enum lp_store_trouble trouble; /* why it is not up; NONE: nothing is known yet */
    uint16_t sentence_len;
    char sentence[LP_STORE_SENTENCE_MAX];
    bool was_told, was_told_up;
    enum lp_store_trouble told_trouble;
    uint64_t told_us;
    uint64_t down_us; /* since when it is not up, having been it */
};

/* --- store.c --- */

/* The tick comes at that time or before. */
void lp_store_tick_at(struct lp_store *store, uint64_t at_us);
/* --- state.c --- */

/* `state`, when there is news. */
void lp_store_tell_state(struct lp_store *store);
/* Notes why the store is not up, in words that name the node. */
void lp_store_note_trouble(
    struct lp_store *store, const struct lp_store_node *node, enum lp_store_trouble trouble);

/* --- command.c --- */

/* One of the store's own, put at the end of the node's stream. LP_ENOMEM, LP_ELIMIT: the node has
 * to be lost. */
LP_MUST int lp_store_inner(struct lp_store_node *node, enum lp_store_command_kind kind,
    uint32_t script, const struct lp_span *argv, uint32_t argc);
#define LP_STORE_INNER(node, kind, script, ...)                                                    \
    lp_store_inner(node, kind, script, (const struct lp_span[]){__VA_ARGS__},                      \
        sizeof((const struct lp_span[]){__VA_ARGS__}) / sizeof(struct lp_span))
/* argv as bulk strings. LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_store_encode(struct lp_buf *out, const struct lp_span *argv, uint32_t argc);
/* Moves it to the end of a list. */
void lp_store_command_move(struct lp_store_command *command, enum lp_store_command_state state,
    struct lp_store_node *node);
void lp_store_command_park(struct lp_store_command *command, struct lp_store *store);
/* `done` at the flush. */
void lp_store_command_end(
    struct lp_store *store, struct lp_store_command *command, enum lp_store_outcome outcome);
/* `done` now, with a reply that the caller holds. The command is gone, or a shell in node.sent. */
void lp_store_command_tell(struct lp_store *store, struct lp_store_command *command,
    enum lp_store_outcome outcome, const struct lp_store_reply *reply);
/* Its deadline has come. */
void lp_store_command_expire(struct lp_store *store, struct lp_store_command *command);
/* Its connection has ended with the command in node.sent or node.held. */
void lp_store_command_cut(struct lp_store *store, struct lp_store_command *command, bool has_run);
void lp_store_command_free(struct lp_store *store, struct lp_store_command *command);

/* --- route.c --- */

/* Into a node's list, or parked, or ended. */
void lp_store_route(struct lp_store *store, struct lp_store_command *command);
/* All that are parked. */
void lp_store_route_parked(struct lp_store *store);
/* A reply to a call has been read from `node`. */
void lp_store_answer(struct lp_store_node *node, struct lp_store_command *command,
    const struct lp_store_reply *reply);
/* Which outcome an error reply means. */
enum lp_store_outcome lp_store_outcome_of(struct lp_span error);

/* --- slots.c --- */

/* The node with this address, made when there is none; NULL: out of memory, or too many. */
struct lp_store_node *lp_store_node_at(
    struct lp_store *store, const struct lp_store_address *address);
/* "HOST:PORT" of MOVED and ASK; without a host: that of `from`. LP_ESYNTAX. */
LP_MUST int lp_store_address_read(
    struct lp_span text, const struct lp_store_node *from, struct lp_store_address *ret);
void lp_store_slots_set(struct lp_store *store, uint16_t slot, struct lp_store_node *node);
/* The owner of a slot, or NULL. */
struct lp_store_node *lp_store_slots_get(const struct lp_store *store, uint16_t slot);
/* The answer to CLUSTER SLOTS: NONE, or why it is of no use. */
enum lp_store_trouble lp_store_slots_read(
    struct lp_store_node *node, const struct lp_store_reply *reply);
/* At the flush: asks for the map when it is wanted, tries the seeds when nobody is there, and drops
 * nodes that nobody wants. */
void lp_store_slots_tend(struct lp_store *store);
/* The map is wanted; `from` (may be NULL) is asked first. */
void lp_store_slots_want(struct lp_store *store, const struct lp_store_node *from);
/* Any node that is up; else any that is being tried; else NULL. `turn` takes turns. */
struct lp_store_node *lp_store_any_node(const struct lp_store *store, uint32_t turn);

/* --- node.c --- */

/* With its timer on the heap. LP_ENOMEM. */
LP_MUST int lp_store_node_init(
    struct lp_store_node *node, struct lp_store *store, const struct lp_store_address *address);
/* Closes; its lists must be empty. */
void lp_store_node_fini(struct lp_store_node *node);
void lp_store_node_connect(struct lp_store_node *node);
void lp_store_node_up(struct lp_store_node *node);
/* The connection is of no use any more; what was on it is parked, or ended. */
void lp_store_node_lose(struct lp_store_node *node, enum lp_store_trouble trouble);
void lp_store_node_event(struct lp_store_node *node, const struct lp_event *event);
void lp_store_node_timer(struct lp_store_node *node);
bool lp_store_node_is_idle(const struct lp_store_node *node); /* nothing in its lists */
/* The next timer of the node: never fails, it has its place on the heap. */
void lp_store_node_alarm(struct lp_store_node *node, uint64_t at_us);

/* --- greet.c --- */

LP_MUST int lp_store_greet(struct lp_store_node *node); /* LP_ENOMEM, LP_ELIMIT */
/* Asks for the slot map. LP_ENOMEM, LP_ELIMIT. */
LP_MUST int lp_store_ask_slots(struct lp_store_node *node);
/* A reply to one of the store's own commands. */
void lp_store_greeted(struct lp_store_node *node, enum lp_store_command_kind kind, uint32_t script,
    const struct lp_store_reply *reply);

/* --- pipe.c --- */

/* Puts `waiting` into the buffer, as much as there is room for, and writes. */
void lp_store_pipe_flush(struct lp_store_node *node);
void lp_store_pipe_drained(struct lp_store_node *node);
void lp_store_pipe_read(struct lp_store_node *node, struct lp_span bytes);
/* At the end of the stream, and into node.sent. LP_ENOMEM, LP_ELIMIT: the node has to be lost. */
LP_MUST int lp_store_pipe_put(struct lp_store_node *node, struct lp_store_command *command);
/* Every write before it has been answered, and now WAIT for them: by so many replicas. */
void lp_store_pipe_confirmed(struct lp_store_node *node, const struct lp_store_reply *count);

/* --- channels.c --- */

/* The listener is up: subscribes to everything. */
void lp_store_channels_up(struct lp_store *store);
void lp_store_channels_reply(struct lp_store *store, const struct lp_store_reply *reply);
void lp_store_channels_init(struct lp_store *store);
void lp_store_channels_fini(struct lp_store *store);
/* At the flush: connects when there is something to listen to. */
void lp_store_channels_tend(struct lp_store *store);

#endif
