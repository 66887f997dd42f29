/* The rows of the reason list (base/reason.h). */
#include "base/reason.h"

#include "base/assert.h"

static const struct lp_reason_info REASONS[LP_REASON_count] = {
    [LP_REASON_none] = {"none", false, 0, 0, "not ended"},
#define X(name, is_error, status, code, sentence)                                                  \
    [LP_REASON_##name] = {#name, is_error, status, code, sentence},
    LP_REASONS(X)
#undef X
};

const struct lp_reason_info *lp_reason_info(enum lp_reason reason)
{
    LP_ASSERT(reason < LP_REASON_count);
    return &REASONS[reason];
}

const char *lp_reason_public(enum lp_reason reason)
{
    const struct lp_reason_info *info = lp_reason_info(reason);
    return info->jsonrpc_code == -32001 ? "Session not found" : info->sentence;
}
