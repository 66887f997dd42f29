/* Lines of the event log: when, how grave, one sentence. As text for people, as JSON for machines;
 * access lines have their own form (obs/record.h). */
#include "app/app.h"
#include "base/time.h"
#include "obs/record.h"
#include "wire/json.h"

static const char *const NAMES[] = {
    [LP_LOG_ERROR] = "error",
    [LP_LOG_WARN] = "warn",
    [LP_LOG_INFO] = "info",
    [LP_LOG_DEBUG] = "debug",
    [LP_LOG_ACCESS] = "access",
};

int lp_app_text_line(
    struct lp_buf *out, uint64_t wall_ms, enum lp_log_level level, struct lp_span sentence)
{
    int err = lp_time_write(out, wall_ms);
    if (!err)
        err = lp_buf_printf(out, " %-5s ", NAMES[level]);
    return err ? err : lp_buf_append(out, sentence);
}

int lp_app_json_line(
    struct lp_buf *out, uint64_t wall_ms, enum lp_log_level level, struct lp_span sentence)
{
    int err = lp_buf_append(out, LP_SPAN("{\"time\":\""));
    if (!err)
        err = lp_time_write(out, wall_ms);
    if (!err)
        err = lp_buf_printf(out, "\",\"level\":\"%s\",\"message\":", NAMES[level]);
    if (!err)
        err = lp_json_quote(out, sentence);
    return err ? err : lp_buf_append(out, LP_SPAN("}"));
}
