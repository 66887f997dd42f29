/* The state of a gateway in words (app/admin.h): JSON for programs, lines for people. Keys appear
 * by their ids, sessions as numbers only. */
#include "app/admin.h"

#include "app/app.h"
#include "wire/json.h"

static int quote_member(struct lp_buf *out, const char *before, struct lp_span text)
{
    int err = lp_buf_append(out, lp_span_str(before));
    return err ? err : lp_json_quote(out, text);
}

/* --- JSON --- */

static int json_owner(const struct lp_conf *conf, struct lp_buf *out)
{
    if (!conf->self.len)
        return LP_OK;
    int err = quote_member(out, ",\"owner\":", conf->self);
    return err
        ? err
        : lp_buf_printf(out, ",\"ids\":\"%s\"", conf->ids == LP_IDS_OWNER ? "owner" : "sealed");
}

static int json_keys(const struct lp_keyring *ring, struct lp_buf *out)
{
    int err = lp_buf_append(out, LP_SPAN(",\"keys\":["));
    for (uint32_t i = 0; i < ring->count && !err; i++) {
        char id[9];
        lp_ring_key_id_hex(&ring->keys[i], id);
        err = lp_buf_printf(
            out, "%s{\"id\":\"%s\",\"seals\":%s}", i ? "," : "", id, i ? "false" : "true");
    }
    return err ? err : lp_buf_append(out, LP_SPAN("]"));
}

/* A sidecar's peer has its sessions itself. */
static int json_replica(const struct lp_metrics_replica *row, struct lp_buf *out)
{
    int err = quote_member(out, "{\"name\":", row->name);
    if (!err)
        err = quote_member(out, ",\"state\":", row->state);
    if (!err && row->is_peer)
        return lp_buf_append(out, LP_SPAN(",\"peer\":true}"));
    return err ? err
               : lp_buf_printf(out,
                     ",\"sessions\":%llu,\"incarnation\":%llu,\"lost_fresh\":%llu,"
                     "\"seems_balanced\":%s}",
                     (unsigned long long)row->sessions, (unsigned long long)row->incarnation,
                     (unsigned long long)row->lost_fresh, row->loses_its_own ? "true" : "false");
}

static int json_sessions(const struct lp_metrics_sessions *sessions, struct lp_buf *out)
{
    int err = lp_buf_printf(
        out, ",\"sessions\":{\"opened\":%llu,\"ended\":{", (unsigned long long)sessions->opened);
    for (size_t i = 0; i < LP_END_count && !err; i++)
        err = lp_buf_printf(out, "%s\"%s\":%llu", i ? "," : "", lp_metrics_end_word((enum lp_end)i),
            (unsigned long long)sessions->ended[i]);
    return err ? err : lp_buf_append(out, LP_SPAN("}}"));
}

static int json_listens(const struct lp_conf *conf, struct lp_buf *out)
{
    struct lp_buf text;
    lp_buf_init(&text, 1024);
    int err = lp_buf_append(out, LP_SPAN(",\"listen\":["));
    for (uint32_t i = 0; i < conf->listen_count && !err; i++) {
        lp_buf_clear(&text);
        err = lp_app_address(&conf->listens[i], &text);
        if (!err)
            err = quote_member(out, i ? "," : "", lp_buf_span(&text));
    }
    lp_buf_release(&text);
    return err ? err : lp_buf_append(out, LP_SPAN("]"));
}

static int json_server(
    const struct lp_status *status, const struct lp_conf_server *server, struct lp_buf *out)
{
    bool is_first = true;
    int err = quote_member(out, "{\"name\":", server->name);
    if (!err)
        err = quote_member(out, ",\"path\":", server->path);
    if (!err && server->sse_path.len)
        err = quote_member(out, ",\"sse_path\":", server->sse_path);
    if (!err)
        err = lp_buf_append(out, LP_SPAN(",\"replicas\":["));
    for (uint32_t i = 0; i < status->replica_count && !err; i++) {
        if (!lp_span_eq(status->replicas[i].server, server->name))
            continue;
        const struct lp_metrics_replica *row = &status->replicas[i];
        err = is_first ? LP_OK : lp_buf_append(out, LP_SPAN(","));
        if (!err)
            err = json_replica(row, out);
        is_first = false;
    }
    return err ? err : lp_buf_append(out, LP_SPAN("]}"));
}

int lp_status_json(const struct lp_status *status, struct lp_buf *out)
{
    const struct lp_conf *conf = status->conf;
    int err = lp_buf_printf(out, "{\"version\":\"%s\",\"ready\":%s,\"uptime_s\":%llu", LP_VERSION,
        status->is_ready ? "true" : "false", (unsigned long long)status->uptime_s);
    if (!err)
        err = json_keys(status->keyring, out);
    if (!err)
        err = json_listens(conf, out);
    if (!err)
        err = json_owner(conf, out);
    if (!err)
        err = json_sessions(&status->sessions, out);
    if (!err)
        err = lp_buf_append(out, LP_SPAN(",\"servers\":["));
    for (uint32_t i = 0; i < conf->server_count && !err; i++) {
        err = i ? lp_buf_append(out, LP_SPAN(",")) : LP_OK;
        if (!err)
            err = json_server(status, &conf->servers[i], out);
    }
    return err ? err : lp_buf_append(out, LP_SPAN("]}\n"));
}

/* --- text --- */

static int text_uptime(uint64_t s, struct lp_buf *out)
{
    unsigned long long days = s / 86400, hours = s / 3600 % 24, minutes = s / 60 % 60;
    if (days)
        return lp_buf_printf(out, "up %llu d %llu h", days, hours);
    if (hours)
        return lp_buf_printf(out, "up %llu h %llu min", hours, minutes);
    if (minutes)
        return lp_buf_printf(out, "up %llu min %llu s", minutes, (unsigned long long)(s % 60));
    return lp_buf_printf(out, "up %llu s", (unsigned long long)s);
}

static int text_keys(const struct lp_keyring *ring, struct lp_buf *out)
{
    int err = lp_buf_append(out, LP_SPAN("Keys    "));
    for (uint32_t i = 0; i < ring->count && !err; i++) {
        char id[9];
        lp_ring_key_id_hex(&ring->keys[i], id);
        err = lp_buf_printf(out, "  %s%s", id, i ? "" : " (seals)");
    }
    return err ? err : lp_buf_append(out, LP_SPAN("\n"));
}

/* Only the causes that there were. */
static int text_sessions(const struct lp_metrics_sessions *sessions, struct lp_buf *out)
{
    const char *gap = "; ended: ";
    int err = lp_buf_printf(out, "Sessions  %llu opened", (unsigned long long)sessions->opened);
    for (size_t i = 0; i < LP_END_count && !err; i++) {
        if (!sessions->ended[i])
            continue;
        err = lp_buf_printf(out, "%s%llu %s", gap, (unsigned long long)sessions->ended[i],
            lp_metrics_end_word((enum lp_end)i));
        gap = ", ";
    }
    return err ? err : lp_buf_append(out, LP_SPAN("\n"));
}

static int text_server(
    const struct lp_status *status, const struct lp_conf_server *server, struct lp_buf *out)
{
    int err = lp_buf_printf(out, "\nServer %.*s at %.*s\n", (int)server->name.len, server->name.ptr,
        (int)server->path.len, server->path.ptr);
    for (uint32_t i = 0; i < status->replica_count && !err; i++) {
        const struct lp_metrics_replica *row = &status->replicas[i];
        if (!lp_span_eq(row->server, server->name))
            continue;
        if (row->is_peer)
            err = lp_buf_printf(out, "  %-8.*s %17s  %.*s\n", (int)row->state.len, row->state.ptr,
                "peer", (int)row->name.len, row->name.ptr);
        else
            err = lp_buf_printf(out, "  %-8.*s %8llu %-8s  %.*s\n", (int)row->state.len,
                row->state.ptr, (unsigned long long)row->sessions,
                row->sessions == 1 ? "session" : "sessions", (int)row->name.len, row->name.ptr);
        if (!err && row->loses_its_own)
            err = lp_buf_printf(out,
                "           loses sessions it has issued (%llu so far); it seems to be balanced "
                "itself\n",
                (unsigned long long)row->lost_fresh);
    }
    return err;
}

int lp_status_text(const struct lp_status *status, struct lp_buf *out)
{
    const struct lp_conf *conf = status->conf;
    int err =
        lp_buf_printf(out, "Limpet %s, %s, ", LP_VERSION, status->is_ready ? "ready" : "NOT ready");
    if (!err)
        err = text_uptime(status->uptime_s, out);
    if (!err)
        err = lp_buf_append(out, LP_SPAN("\nListens "));
    for (uint32_t i = 0; i < conf->listen_count && !err; i++) {
        err = lp_buf_append(out, LP_SPAN("  "));
        if (!err)
            err = lp_app_address(&conf->listens[i], out);
    }
    if (!err)
        err = lp_buf_append(out, LP_SPAN("\n"));
    if (!err)
        err = text_keys(status->keyring, out);
    if (!err && conf->self.len)
        err = lp_buf_printf(out, "Owner id  %.*s (%s ids)\n", (int)conf->self.len, conf->self.ptr,
            conf->ids == LP_IDS_OWNER ? "readable" : "sealed");
    if (!err)
        err = text_sessions(&status->sessions, out);
    for (uint32_t i = 0; i < conf->server_count && !err; i++)
        err = text_server(status, &conf->servers[i], out);
    return err;
}
