/* Lines of the event log: when, how grave, one sentence. As text for people, as JSON for machines;
 * access lines have their own form (obs/record.h). */
#include "app/app.h"
#include "obs/record.h"
#include "wire/json.h"

static const char *level_name(enum lp_log_level level)
{
    switch (level) {
    case LP_LOG_ERROR:
        return "error";
    case LP_LOG_WARN:
        return "warn";
    case LP_LOG_INFO:
        return "info";
    case LP_LOG_DEBUG:
        return "debug";
    case LP_LOG_ACCESS:
        break;
    }
    return "access";
}

int lp_app_text_line(
    struct lp_buf *out, uint64_t wall_ms, enum lp_log_level level, struct lp_span sentence)
{
    int err = lp_time_write(out, wall_ms);
    if (!err)
        err = lp_buf_printf(out, " %-5s ", level_name(level));
    return err ? err : lp_buf_append(out, sentence);
}

int lp_app_json_line(
    struct lp_buf *out, uint64_t wall_ms, enum lp_log_level level, struct lp_span sentence)
{
    int err = lp_buf_append(out, LP_SPAN("{\"time\":\""));
    if (!err)
        err = lp_time_write(out, wall_ms);
    if (!err)
        err = lp_buf_printf(out, "\",\"level\":\"%s\",\"message\":", level_name(level));
    if (!err)
        err = lp_json_quote(out, sentence);
    return err ? err : lp_buf_append(out, LP_SPAN("}"));
}
