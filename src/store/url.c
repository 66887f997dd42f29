/* Store URLs (store/url.h): split, then each part is looked at. Strict, because a mistake here is
 * found by whoever starts the program, and later by nobody. */
#include "store/url.h"

#include "base/error.h"

/* What is being read, and what is wrong with it. */
struct parse {
    lp_store_lookup_fn lookup;
    void *lookup_ctx;
    struct lp_store_url *url;
    struct lp_span why;
};

static int refuse(struct parse *p, const char *why)
{
    p->why = lp_span_str(why);
    return LP_ESYNTAX;
}

/* --- user and password --- */

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static int decode(struct parse *p, struct lp_span text, char *room, size_t max, uint16_t *ret_len)
{
    uint16_t len = 0;
    for (size_t i = 0; i < text.len; i++, len++) {
        char c = text.ptr[i];
        if (c == '%') {
            int high = i + 2 < text.len ? hex(text.ptr[i + 1]) : -1;
            int low = i + 2 < text.len ? hex(text.ptr[i + 2]) : -1;
            if (high < 0 || low < 0)
                return refuse(p,
                    "The store's URL has a % in its user or password that no two hex "
                    "digits follow; write %25 for the sign itself.");
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (len == max)
            return refuse(p,
                "The store's URL has a user or password that is too long; a user may "
                "have 128 bytes, a password 512.");
        room[len] = c;
    }
    *ret_len = len;
    return LP_OK;
}

static int take_value(
    struct parse *p, struct lp_span value, char *room, size_t max, uint16_t *ret_len)
{
    if (value.len > max || value.len == 0)
        return refuse(p,
            "The environment variable for the store's user or password is empty or "
            "too long; a user may have 128 bytes, a password 512.");
    memcpy(room, value.ptr, value.len);
    *ret_len = (uint16_t)value.len;
    return LP_OK;
}

/* A part as it is written, or the variable that it names as a whole. */
static int read_word(
    struct parse *p, struct lp_span text, char *room, size_t max, uint16_t *ret_len)
{
    struct lp_span value;
    if (!lp_span_starts(text, LP_SPAN("${")) || !lp_span_ends(text, LP_SPAN("}")))
        return decode(p, text, room, max, ret_len);
    struct lp_span name = lp_span(text.ptr + 2, text.len - 3);
    if (!p->lookup || !p->lookup(p->lookup_ctx, name, &value))
        return refuse(p,
            "The store's URL names an environment variable that is not set; set it "
            "for this program, or write the user and password themselves.");
    return take_value(p, value, room, max, ret_len);
}

static int read_user_info(struct parse *p, struct lp_span text)
{
    struct lp_span password;
    struct lp_span user = lp_span_split(text, ':', &password);
    if (!password.len)
        return refuse(p,
            "The store's URL has a user without a password; write "
            "redis://USER:PASSWORD@HOST, or redis://:PASSWORD@HOST.");
    int err = read_word(p, user, p->url->user, sizeof p->url->user, &p->url->user_len);
    return err
        ? err
        : read_word(p, password, p->url->password, sizeof p->url->password, &p->url->password_len);
}

/* --- hosts --- */

static bool all_in(struct lp_span text, const char *others)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        char lower = (char)(c | 0x20);
        bool is_word = (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z');
        if (!is_word && (c == '\0' || !strchr(others, c)))
            return false;
    }
    return text.len > 0;
}

static int read_port(struct parse *p, struct lp_span text, uint16_t *ret_port)
{
    uint64_t port;
    if (!lp_span_to_u64(text, &port) || port == 0 || port > UINT16_MAX)
        return refuse(p,
            "The store's URL has a port that is none; write a number from 1 to 65535 "
            "behind the colon.");
    *ret_port = (uint16_t)port;
    return LP_OK;
}

static int add_seed(struct parse *p, struct lp_span host, uint16_t port, bool is_unix)
{
    if (p->url->seed_count == LP_STORE_SEEDS_MAX)
        return refuse(p,
            "The store's URL has more than 16 hosts; a few of them are enough, the "
            "others are found through these.");
    if (!host.len || host.len > LP_STORE_HOST_MAX)
        return refuse(p,
            "The store's URL has a host that is empty or too long; write "
            "redis://HOST:PORT.");
    struct lp_store_address *seed = &p->url->seeds[p->url->seed_count++];
    *seed =
        (struct lp_store_address){.is_unix = is_unix, .port = port, .host_len = (uint8_t)host.len};
    memcpy(seed->host, host.ptr, host.len);
    return LP_OK;
}

static int read_host(struct parse *p, struct lp_span text)
{
    struct lp_span host = text, port_text = {NULL, 0};
    uint16_t port = LP_STORE_PORT;
    bool is_v6 = lp_span_starts(text, LP_SPAN("["));
    if (is_v6) {
        size_t end = lp_span_find(text, ']');
        host = lp_span(text.ptr + 1, end - 1);
        port_text = end < text.len ? lp_span_from(text, end + 1) : LP_SPAN("?");
        if (port_text.len && port_text.ptr[0] != ':')
            return refuse(p,
                "The store's URL has a bracket that does not end; write an IPv6 "
                "address as [::1]:6379.");
        port_text = port_text.len ? lp_span_from(port_text, 1) : (struct lp_span){NULL, 0};
    } else {
        host = lp_span_split(text, ':', &port_text);
    }
    if (host.len && !all_in(host, is_v6 ? ":.%" : "-._"))
        return refuse(p,
            "The store's URL has a host with a character that does not belong there; "
            "in a password write it as % and two hex digits (@ is %40, / is %2F).");
    if (port_text.ptr && read_port(p, port_text, &port))
        return LP_ESYNTAX;
    return add_seed(p, host, port, false);
}

static int read_hosts(struct parse *p, struct lp_span text)
{
    int err = LP_OK;
    do {
        err = read_host(p, lp_span_split(text, ',', &text));
    } while (!err && text.ptr);
    return err;
}

/* --- the rest --- */

static int read_db(struct parse *p, struct lp_span text)
{
    uint64_t db = 0;
    if (text.len && (!lp_span_to_u64(text, &db) || db > INT32_MAX))
        return refuse(p,
            "The store's URL has something other than a number behind its last "
            "slash; write the number of the database there, or nothing.");
    if (db && p->url->kind == LP_STORE_CLUSTER)
        return refuse(p,
            "A cluster has no database but 0; leave the number out of the store's "
            "URL.");
    p->url->db = (uint32_t)db;
    return LP_OK;
}

static int read_authority(struct parse *p, struct lp_span text)
{
    size_t at = text.len;
    while (at && text.ptr[at - 1] != '@')
        at--;
    int err = at ? read_user_info(p, lp_span(text.ptr, at - 1)) : LP_OK;
    return err ? err : read_hosts(p, lp_span_from(text, at));
}

static int read_unix(struct parse *p, struct lp_span path)
{
    if (!lp_span_starts(path, LP_SPAN("/")) || path.len > 107)
        return refuse(p,
            "The store's socket needs an absolute path of at most 107 bytes; write "
            "unix:/run/redis.sock.");
    return add_seed(p, path, 0, true);
}

static int read_scheme(struct parse *p, struct lp_span *text)
{
    static const struct {
        const char *word;
        bool is_tls;
        enum lp_store_kind kind;
    } SCHEMES[] = {
        {"redis://", false, LP_STORE_ASKED},
        {"rediss://", true, LP_STORE_ASKED},
        {"redis+cluster://", false, LP_STORE_CLUSTER},
        {"rediss+cluster://", true, LP_STORE_CLUSTER},
    };
    for (size_t i = 0; i < sizeof SCHEMES / sizeof *SCHEMES; i++)
        if (lp_span_starts(*text, lp_span_str(SCHEMES[i].word))) {
            *text = lp_span_from(*text, strlen(SCHEMES[i].word));
            p->url->is_tls = SCHEMES[i].is_tls;
            p->url->kind = SCHEMES[i].kind;
            return LP_OK;
        }
    return refuse(p,
        "The store's URL begins with no known scheme; write redis://, rediss://, "
        "redis+cluster://, rediss+cluster:// or unix:/.");
}

static int read_url(struct parse *p, struct lp_span text)
{
    struct lp_span db;
    if (lp_span_starts(text, LP_SPAN("unix:")))
        return read_unix(p, lp_span_from(text, 5));
    int err = read_scheme(p, &text);
    if (err)
        return err;
    struct lp_span authority = lp_span_split(text, '/', &db);
    err = read_authority(p, authority);
    return err ? err : read_db(p, db);
}

int lp_store_url_parse(struct lp_span text, lp_store_lookup_fn lookup, void *lookup_ctx,
    struct lp_store_url *ret, struct lp_span *ret_why)
{
    struct lp_store_url url = {.kind = LP_STORE_ASKED};
    struct parse p = {.lookup = lookup, .lookup_ctx = lookup_ctx, .url = &url};
    int err = read_url(&p, text);
    if (err)
        *ret_why = p.why;
    else
        *ret = url;
    return err;
}
