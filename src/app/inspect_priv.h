/* Inside `limpet inspect`:
 *
 *   inspect.c       flags, the session, its end
 *   inspect_do.c    commands: what is asked of the server
 *   inspect_show.c  results, failures and notifications as a person or a script reads them
 *   inspect_ask.c   what the server asks, answered by a file or on the terminal
 *
 * Results go to stdout, everything else to stderr. */
#ifndef LP_APP_INSPECT_PRIV_H
#define LP_APP_INSPECT_PRIV_H

#include "app/client_loop.h"
#include "call/answers.h"
#include "call/client.h"

enum {
    LP_INSPECT_LINE_MAX = 1 << 20, /* of the terminal */
    LP_INSPECT_OUT_MAX = 256 << 20,
    LP_INSPECT_PAGES_MAX = 1000,
    LP_INSPECT_ASKS_MAX = 32, /* questions that wait for the terminal */
};

/* One command, as it stands on the command line or in a line of the interactive session. */
struct lp_inspect_words {
    struct lp_span word;
    struct lp_span name;
    struct lp_span json;
};

struct lp_inspect_verb {
    const char *word;
    const char *method;
    const char *list;     /* the member that holds the list, and is gathered page by page */
    const char *key;      /* of an element of it: what a person calls it by */
    const char *argument; /* the member that the name goes into; NULL: it takes no name */
    bool takes_json;
};

struct lp_inspect_ask {
    lp_id asked; /* 0: the place is free */
    char method[64];
    struct lp_buf params;
};

struct lp_inspect {
    struct lp_client_flags flags;
    struct lp_client_loop loop;
    struct lp_client *client;
    struct lp_answers answers;
    bool has_answers;
    bool is_json;
    bool is_interactive;
    bool shows_log;
    int status;
    bool is_ending;

    struct lp_inspect_words first; /* from the command line */
    const struct lp_inspect_verb *verb;
    struct lp_buf words; /* of the command in progress */
    struct lp_inspect_words now;
    lp_id call;
    bool is_busy;
    bool is_reopening; /* the session was lost; the command waits for the new one */
    struct lp_buf pages;
    uint32_t page_count;

    lp_id input; /* the connection of standard input; 0: not opened */
    bool input_has_ended;
    bool is_taking; /* lines are being taken further up */
    struct lp_buf lines;
    struct lp_inspect_ask asks[LP_INSPECT_ASKS_MAX]; /* in order; the first one is on the screen */
    uint32_t ask_count;
    uint32_t ask_step;
    struct lp_buf ask_content; /* what was typed so far, as JSON members */
};

/* --- inspect_do.c --- */

/* The verb of a word, or NULL. */
const struct lp_inspect_verb *lp_inspect_find(struct lp_span word);
/* NULL, or what is wrong with these words. */
const char *lp_inspect_check(const struct lp_inspect_words *words);
/* Begins a command; the session is open. */
void lp_inspect_do(struct lp_inspect *in, const struct lp_inspect_words *words);
/* The command is over: the next line, or the end. */
void lp_inspect_done(struct lp_inspect *in);

/* --- inspect.c --- */

/* A line of the interactive session that is no answer to a question. */
void lp_inspect_line(struct lp_inspect *in, struct lp_span line);
/* Takes the next line, if anybody waits for one. */
void lp_inspect_next_line(struct lp_inspect *in);
/* Opens standard input, once. False: it cannot be read. */
bool lp_inspect_open_input(struct lp_inspect *in);

/* --- inspect_show.c --- */

/* A whole result. */
void lp_inspect_show_result(struct lp_inspect *in, struct lp_span result);
void lp_inspect_show_info(struct lp_inspect *in);
/* A JSON-RPC error, or why there is no answer; the status becomes 1. */
void lp_inspect_show_error(struct lp_inspect *in, struct lp_span error);
void lp_inspect_show_failure(struct lp_inspect *in, const struct lp_client_failure *why);
void lp_inspect_show_notification(struct lp_inspect *in, struct lp_span message);
/* A sentence on stderr. */
void lp_inspect_say(const char *fmt, ...) LP_PRINTF(1, 2);

/* --- inspect_ask.c --- */

/* The server asks. */
void lp_inspect_asked(
    struct lp_inspect *in, lp_id asked, struct lp_span method, struct lp_span params);
void lp_inspect_asked_over(struct lp_inspect *in, lp_id asked);
/* Whether a question is on the screen; then the next line is for it. */
bool lp_inspect_is_asking(const struct lp_inspect *in);
void lp_inspect_answer_line(struct lp_inspect *in, struct lp_span line);
/* Nobody will type any more: what waits is declined. */
void lp_inspect_no_more_lines(struct lp_inspect *in);
/* This client's capabilities, raw JSON. */
LP_MUST int lp_inspect_capabilities(const struct lp_inspect *in, struct lp_buf *out);

#endif
