/* What the files of this room share: the key table's row, the value tree that both the file and the
 * flags become, and the reader that turns it into a snapshot.
 *
 *   file text --yaml.c--> value tree --+
 *                                      +--build.c, value.c--> drafts --check.c, conf.c--> snapshot
 *   flags -----flags.c--> value tree --+
 */
#ifndef LP_CONF_CONF_PRIV_H
#define LP_CONF_CONF_PRIV_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "conf/conf.h"

enum {
    LP_CONF_KEYS_MAX = 64,        /* rows of the key table */
    LP_CONF_FILE_MAX = 1 << 20,   /* bytes of the file */
    LP_CONF_DEPTH_MAX = 8,        /* nesting of values */
    LP_CONF_VALUES_MAX = 1 << 16, /* values in one tree: aliases can multiply */
    LP_CONF_MEMBERS_MAX = 256,    /* keys in one mapping */
    LP_CONF_TEXT_MAX = 4096,      /* bytes of one kept text */
    LP_CONF_ARENA_MAX = 64 << 20, /* memory of a snapshot, and of the trees beside it */
    LP_CONF_UNIX_PATH_MAX = 107,  /* what fits into a socket address */
};

/* Where a key may stand. A key of SERVER may also stand at the top, as default of every server. */
enum lp_conf_scope {
    LP_SCOPE_TOP,
    LP_SCOPE_SERVER,
    LP_SCOPE_REPLICA,
    LP_SCOPE_DIALECT,
    LP_SCOPE_PASS,
    LP_SCOPE_COMMAND, /* a flag only */
};

enum lp_conf_type {
    LP_TYPE_TEXT,
    LP_TYPE_NAME,
    LP_TYPE_PATH,
    LP_TYPE_DURATION,
    LP_TYPE_SIZE,
    LP_TYPE_COUNT,   /* uint32_t */
    LP_TYPE_STATUS,  /* uint16_t */
    LP_TYPE_CODE,    /* int32_t */
    LP_TYPE_SWITCH,  /* bool */
    LP_TYPE_CHOICE,  /* an enum, or an int */
    LP_TYPE_ADMIN,   /* one address or "off" */
    LP_TYPE_URL,     /* address and path of a replica */
    LP_TYPE_FILE,    /* -c: the configuration file itself */
    LP_TYPE_LATER,   /* a word that this release knows and does not have */
    LP_TYPE_LISTENS, /* from here on lists; one value without brackets is a list of one */
    LP_TYPE_HOSTS,
    LP_TYPE_ORIGINS,
    LP_TYPE_PUBLIC_URLS,
    LP_TYPE_AGENTS,
    LP_TYPE_REPLICAS,
    LP_TYPE_PEERS,
    LP_TYPE_DIALECTS,
    LP_TYPE_PASSES,
    LP_TYPE_SERVERS,
};

/* Whose key it is. */
enum lp_conf_owner { LP_KEY_OF_BOTH, LP_KEY_OF_GATEWAY, LP_KEY_OF_SIDECAR };

/* One row of the key table: all that help, manual, reading and printing know of a key. */
struct lp_conf_key {
    const char *name;      /* dotted within its scope: "timeouts.connect" */
    const char *flag;      /* "--body-limit"; NULL: only in the file */
    const char *arg;       /* what its value is called: "SIZE" */
    const char *fallback;  /* the default as text; NULL: none */
    const char *choices;   /* CHOICE: "text|json", in the order of the enum */
    const char *later;     /* CHOICE: a word of a later release */
    const char *help;      /* one line for --help */
    const char *paragraph; /* for the manual; sentences end in ". " */
    uint64_t min, max;     /* DURATION (ms), SIZE (bytes), COUNT, STATUS; lists: items */
    size_t offset;         /* of the field in the struct of its scope */
    enum lp_conf_scope scope;
    enum lp_conf_type type;
    enum lp_conf_owner owner;
    bool takes_off; /* "off" is accepted: no text, or 0 */
};

/* Whether the key is one of that command. */
bool lp_conf_key_is_of(const struct lp_conf_key *key, enum lp_conf_seat seat);

/* The table, and how many rows it has. */
const struct lp_conf_key *lp_conf_keys(uint32_t *ret_count);
uint32_t lp_conf_key_index(const struct lp_conf_key *key);

/* The row of `prefix` + `name` in a scope (the top also knows the keys of a server), or NULL.
 * `prefix` is empty or ends in '.'. */
const struct lp_conf_key *lp_conf_key_find(
    enum lp_conf_scope scope, struct lp_span prefix, struct lp_span name);

/* Whether rows begin with `prefix` + `name` + '.': a mapping is meant. */
bool lp_conf_key_is_group(enum lp_conf_scope scope, struct lp_span prefix, struct lp_span name);

/* The known name (one segment) that is nearest to `name`; empty when none is near. */
struct lp_span lp_conf_key_nearest(
    enum lp_conf_scope scope, struct lp_span prefix, struct lp_span name);

/* The row of a flag ("--listen", "-c"), or NULL; the nearest flag, or NULL. */
const struct lp_conf_key *lp_conf_flag_find(struct lp_span flag);
const char *lp_conf_flag_nearest(struct lp_span flag);

enum lp_conf_value_kind { LP_VALUE_SCALAR, LP_VALUE_LIST, LP_VALUE_MAP };

/* A value of the file or of the flags. Everything it points to lives until the load is over. */
struct lp_conf_value {
    enum lp_conf_value_kind kind;
    uint32_t line;               /* 0: a flag */
    bool is_plain;               /* SCALAR: written without quotes */
    bool is_refused;             /* a problem was reported for it; no second one is */
    struct lp_span where;        /* "servers[0].replicas[1]" or "--listen" */
    struct lp_span key;          /* member of a MAP: its name */
    struct lp_span text;         /* SCALAR */
    struct lp_conf_value *items; /* LIST, MAP */
    uint32_t count;
    const struct lp_conf_key *row; /* flags: already found */
};

/* Where problems go. */
struct lp_conf_problems {
    struct lp_buf *out;
    struct lp_span file;
    uint32_t count;
    uint32_t file_count; /* those of the file, not of the flags */
    enum lp_conf_seat seat;
    int err; /* why `out` took no more */
};

/* "file:line: where: sentence", once per value. */
void lp_conf_problem(struct lp_conf_problems *problems, struct lp_conf_value *at, const char *fmt,
    ...) LP_PRINTF(3, 4);

/* The same with the value's own text in front: "file:line: where: "text" sentence". */
void lp_conf_refuse(struct lp_conf_problems *problems, struct lp_conf_value *at, const char *fmt,
    ...) LP_PRINTF(3, 4);

/* printf into an arena; an empty span with a null pointer when memory is out. */
struct lp_span lp_conf_text(struct lp_arena *arena, const char *fmt, ...) LP_PRINTF(2, 3);

/* The file's text as a tree; an empty file is an empty MAP. Problems are reported; LP_ESYNTAX when
 * there is no tree because of them. The document is kept in *ret_document, because the tree points
 * into it. LP_ENOMEM. */
struct yaml_document_s;
LP_MUST int lp_conf_yaml_read(struct lp_span text, struct lp_arena *arena,
    struct lp_conf_problems *problems, struct lp_conf_value *ret_root,
    struct yaml_document_s **ret_document);
void lp_conf_yaml_free(struct yaml_document_s *document);

/* The words after the sub-command as a MAP whose members have their row. LP_ENOMEM. */
LP_MUST int lp_conf_flags_read(int argc, const char *const *argv, struct lp_arena *arena,
    struct lp_conf_problems *problems, struct lp_conf_value *ret_root);

/* Units (text.c): LP_ESYNTAX; LP_ERANGE when it does not fit into 64 bits. */
LP_MUST int lp_conf_parse_duration(struct lp_span text, uint64_t *ret_ms);
LP_MUST int lp_conf_parse_size(struct lp_span text, uint64_t *ret_bytes);
LP_MUST int lp_conf_write_duration(struct lp_buf *out, uint64_t ms);
LP_MUST int lp_conf_write_size(struct lp_buf *out, uint64_t bytes);

/* A bound of a row of this type, in its unit. */
LP_MUST int lp_conf_write_bound(struct lp_buf *out, enum lp_conf_type type, uint64_t bound);

/* The place of `text` in "a|b|c", or -1; the number of words; the word at a place. */
int lp_conf_choice_find(const char *choices, struct lp_span text);
struct lp_span lp_conf_choice_word(const char *choices, int index);

/* Addresses (address.c). `text` is lower-cased where case has no meaning, and pointed into.
 * LP_ESYNTAX; LP_ERANGE for the port; LP_ETOO_LONG for a socket path. */
LP_MUST int lp_conf_parse_listen(char *text, size_t len, struct lp_conf_address *ret);
LP_MUST int lp_conf_parse_replica(
    char *text, size_t len, struct lp_conf_address *ret, struct lp_span *ret_path);
LP_MUST int lp_conf_parse_origin(char *text, size_t len);
LP_MUST int lp_conf_parse_public(char *text, size_t len);
bool lp_conf_is_host(struct lp_span text); /* a name or address, with or without ":port" */
bool lp_conf_is_path(struct lp_span text);
bool lp_conf_is_name(struct lp_span text);

/* "host:port" with the port always there, or "unix:/path"; a replica's URL; its name when none is
 * configured. */
LP_MUST int lp_conf_write_address(struct lp_buf *out, const struct lp_conf_address *address);
LP_MUST int lp_conf_write_url(struct lp_buf *out, const struct lp_conf_replica *replica);
struct lp_span lp_conf_replica_name(struct lp_arena *arena, const struct lp_conf_replica *replica);

/* A server while it is put together, and which value each key came from (NULL: the default). */
struct lp_conf_draft {
    struct lp_conf_server server;
    struct lp_conf_value *self; /* its mapping */
    struct lp_conf_value *from[LP_CONF_KEYS_MAX];
};

struct lp_conf_reader {
    struct lp_conf_problems problems;
    struct lp_arena scratch; /* trees and drafts: gone after the load */
    struct lp_arena *keep;   /* the snapshot's memory */
    struct lp_conf *conf;
    struct lp_conf_draft base; /* defaults and top-level values; `from` of the top's keys too */
    struct lp_conf_draft *drafts;
    uint32_t draft_count;
    int err; /* LP_ENOMEM */
};

/* Which struct a mapping fills. */
struct lp_conf_target {
    enum lp_conf_scope scope;
    struct lp_conf_draft *draft; /* TOP, SERVER */
    void *item;                  /* REPLICA, DIALECT, PASS */
};

/* Reads one value, or one item of a list, into the field that the row names (value.c); false when
 * it was refused: then the field is as it was. */
bool lp_conf_read_value(struct lp_conf_reader *reader, const struct lp_conf_key *row, void *field,
    struct lp_conf_value *value);
bool lp_conf_read_scalar(struct lp_conf_reader *reader, const struct lp_conf_key *row, void *field,
    struct lp_conf_value *value);

/* The same for a whole list (list.c): the field is a pointer followed by a uint32_t count. */
bool lp_conf_read_list(struct lp_conf_reader *reader, const struct lp_conf_key *row, void *field,
    struct lp_conf_value *value);

/* All members of a mapping into the target (build.c), and the defaults of its scope. */
void lp_conf_read_map(struct lp_conf_reader *reader, const struct lp_conf_target *target,
    struct lp_span prefix, struct lp_conf_value *map);
void lp_conf_read_defaults(struct lp_conf_reader *reader, const struct lp_conf_target *target);

/* Defaults, then file, then flags, into reader->conf and reader->drafts. `file` may be NULL. */
void lp_conf_build(
    struct lp_conf_reader *reader, struct lp_conf_value *file, struct lp_conf_value *flags);

/* What no single value can show: names, paths and addresses that must differ, servers without a
 * replica. A value that was refused is not judged again. */
void lp_conf_check(struct lp_conf_reader *reader);

#endif
