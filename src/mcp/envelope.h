/* What a proxy must know of a JSON-RPC body before it routes it, found without building a tree:
 * spans of the body itself, so that an id is echoed byte for byte (wire document 2.1).
 *
 * Members are looked for at the top level, in params and in params._meta. A member of these that is
 * given twice is LP_EAMBIGUOUS: two readers could take different ones. In a batch only is_batch and
 * the flags about its elements are set. */
#ifndef LP_MCP_ENVELOPE_H
#define LP_MCP_ENVELOPE_H

#include "base/assert.h"
#include "base/error.h"
#include "base/span.h"
#include "wire/json.h"

/* Methods that decisions hang on; all others are LP_RPC_OTHER. X(id, "text", may be sent again) */
#define LP_RPC_METHODS(X)                                                                          \
    X(INITIALIZE, "initialize", 0)                                                                 \
    X(INITIALIZED, "notifications/initialized", 0)                                                 \
    X(CANCELLED, "notifications/cancelled", 0)                                                     \
    X(PING, "ping", 1)                                                                             \
    X(TOOLS_LIST, "tools/list", 1)                                                                 \
    X(TOOLS_CALL, "tools/call", 0)                                                                 \
    X(PROMPTS_LIST, "prompts/list", 1)                                                             \
    X(PROMPTS_GET, "prompts/get", 0)                                                               \
    X(RESOURCES_LIST, "resources/list", 1)                                                         \
    X(RESOURCE_TEMPLATES_LIST, "resources/templates/list", 1)                                      \
    X(RESOURCES_READ, "resources/read", 0)                                                         \
    X(RESOURCES_SUBSCRIBE, "resources/subscribe", 0)                                               \
    X(RESOURCES_UNSUBSCRIBE, "resources/unsubscribe", 0)                                           \
    X(SET_LEVEL, "logging/setLevel", 0)                                                            \
    X(COMPLETE, "completion/complete", 0)                                                          \
    X(DISCOVER, "server/discover", 0)                                                              \
    X(LISTEN, "subscriptions/listen", 0)                                                           \
    X(TASKS_GET, "tasks/get", 0)                                                                   \
    X(TASKS_UPDATE, "tasks/update", 0)                                                             \
    X(TASKS_CANCEL, "tasks/cancel", 0)                                                             \
    X(TASKS_RESULT, "tasks/result", 0)                                                             \
    X(TASKS_LIST, "tasks/list", 1)

enum lp_rpc_method {
    LP_RPC_NONE, /* no method member: a response */
    LP_RPC_OTHER,
#define X(id, text, again) LP_RPC_##id,
    LP_RPC_METHODS(X)
#undef X
};

struct lp_envelope {
    bool is_batch;          /* a JSON array */
    bool is_object;         /* a JSON object; neither: a bare value, not a message */
    bool batch_has_request; /* an element with method and id */
    bool batch_has_initialize;
    bool batch_has_modern_meta;
    bool batch_is_empty;
    bool has_id;      /* an id that is not null */
    bool id_is_valid; /* string or integer number */
    bool has_result;
    bool has_error;
    bool has_params;              /* params is an object */
    bool has_meta;                /* params._meta is an object */
    bool has_client_capabilities; /* in _meta: an object */
    bool meta_version_is_string;
    enum lp_rpc_method method;
    struct lp_span id;           /* raw token: 7, "7", 1.0, null */
    struct lp_span method_token; /* raw, with quotes */
    struct lp_span meta_version; /* _meta["io.modelcontextprotocol/protocolVersion"], raw token */
    struct lp_span name;         /* params.name, raw token (strings only) */
    struct lp_span uri;          /* params.uri */
    struct lp_span task_id;      /* params.taskId */
    struct lp_span protocol_version; /* params.protocolVersion (initialize), raw token */
    struct lp_span error_code;       /* error.code, raw token */
    struct lp_span error_message;    /* error.message, raw token */
};

/* Scans the whole body. LP_ESYNTAX: not JSON (an empty body too); LP_ELIMIT: nested too deep;
 * LP_EAMBIGUOUS: a member twice. On failure the id, when it was read before, is still in *ret. */
LP_MUST int lp_envelope_scan(struct lp_span body, struct lp_envelope *ret);

/* Scans only the beginning of a body (the first 64 KiB of a larger one): the same, but running out
 * of input is success. */
LP_MUST int lp_envelope_scan_part(struct lp_span body, struct lp_envelope *ret);

/* ping and the lists: asking twice does no harm (requirements [G8]). */
bool lp_rpc_is_repeatable(enum lp_rpc_method method);

/* "tools/call" and so on; "" for NONE, "other" for OTHER. */
const char *lp_rpc_method_name(enum lp_rpc_method method);

#endif
