/* The fixes, as a table of remedy and front. See call/fixes.h.
 *
 * Affinity: whoever pins must learn the id from the answer to initialize, because initialize itself
 * carries none. That is why no hash on the header is in this table. */
#include "call/fixes.h"

#include "base/error.h"

#define GATEWAY_LINE "limpet gateway http://10.0.0.11:3000/mcp http://10.0.0.12:3000/mcp\n"

static const char *const NAMES[] = {[LP_FRONT_GATEWAY] = "Limpet gateway",
    [LP_FRONT_HAPROXY] = "HAProxy",
    [LP_FRONT_NGINX] = "nginx",
    [LP_FRONT_CADDY] = "Caddy",
    [LP_FRONT_CDN] = "CDN",
    [LP_FRONT_INGRESS] = "Kubernetes ingress",
    [LP_FRONT_PLATFORM] = "a platform whose balancer you cannot change",
    [LP_FRONT_CODE] = "the server's code"};

static const struct lp_fix PIN[] = {
    [LP_FRONT_GATEWAY] = {"put the gateway where the balancer is and name every replica; clients "
                          "need no cookies, and it keeps no table that could be lost",
        GATEWAY_LINE},
    [LP_FRONT_HAPROXY] = {"learn the session id from the answer to initialize",
        "backend mcp\n"
        "    balance leastconn\n"
        "    option http-no-delay\n"
        "    stick-table type string len 128 size 1m expire 24h\n"
        "    stick store-response res.hdr(Mcp-Session-Id)\n"
        "    stick match req.hdr(Mcp-Session-Id)\n"},
    [LP_FRONT_NGINX] = {"nginx 1.29.6 or newer learns the id from the answer; an older one cannot, "
                        "put the gateway behind it",
        "upstream mcp {\n"
        "    zone mcp 1m;\n"
        "    server 10.0.0.11:3000;\n"
        "    server 10.0.0.12:3000;\n"
        "    sticky learn create=$upstream_http_mcp_session_id\n"
        "                 lookup=$http_mcp_session_id zone=sessions:1m timeout=24h header;\n"
        "}\n"},
    [LP_FRONT_CADDY] = {"Caddy cannot learn from answers, and its header policy is a hash: let it "
                        "pass everything to the gateway, which knows the replicas",
        "reverse_proxy 127.0.0.1:8080 {\n"
        "    flush_interval -1\n"
        "}\n"
        "# beside it: " GATEWAY_LINE},
    [LP_FRONT_CDN] = {"no rule of a CDN can do it: its header hash sees no id at initialize. Make "
                      "the gateway its only origin and pass the session headers uncached",
        "# origin: the gateway; cache: off for /mcp; forward: Mcp-Session-Id, "
        "MCP-Protocol-Version,\n"
        "# Last-Event-ID, Authorization\n" GATEWAY_LINE},
    [LP_FRONT_INGRESS] =
        {"an ingress offers cookies or a hash, neither holds MCP sessions: point it "
         "at the gateway, and the gateway at the pods of a headless service",
            "# Ingress: backend.service.name: limpet\n"
            "limpet gateway http://mcp-0.mcp:3000/mcp http://mcp-1.mcp:3000/mcp\n"},
    [LP_FRONT_PLATFORM] = {"put a sidecar beside each instance; where instances have no address of "
                           "their own, keep no sessions",
        "limpet sidecar --self A --local http://127.0.0.1:3000/mcp --peer "
        "B=http://10.0.0.12:8080\n"},
    [LP_FRONT_CODE] = {"keep no sessions: a server that mints no id needs no affinity",
        "new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })\n"},
};

static const struct lp_fix COOKIE[] = {
    [LP_FRONT_GATEWAY] = {"let the gateway keep the cookie for each session, so that clients need "
                          "none; or use a client that keeps cookies",
        "limpet gateway --cookie-jar URL\n"
        "limpet connect --cookie-jar URL\n"},
};

static const struct lp_fix PIN_SSE[] = {
    [LP_FRONT_GATEWAY] = {"put the gateway where the balancer is: it writes the replica into the "
                          "endpoint event, so every POST finds its stream",
        "limpet gateway --sse-path /sse http://10.0.0.11:3000/mcp http://10.0.0.12:3000/mcp\n"},
    [LP_FRONT_HAPROXY] = {"old SSE tells its id in the body only, which HAProxy cannot learn; only "
                          "by source address",
        "backend mcp_sse\n    balance source\n"},
    [LP_FRONT_CODE] = {"serve Streamable HTTP, which has replaced old SSE", NULL},
};

static const struct lp_fix KEEP_HEADER[] = {
    [LP_FRONT_GATEWAY] = {"let every hop pass the header in both directions, and find the one that "
                          "does not by asking each hop directly",
        "limpet probe http://127.0.0.1:3000/mcp    # on the server's own machine\n"},
    [LP_FRONT_HAPROXY] = {"remove what deletes headers",
        "# not: http-response del-header / http-request del-header Mcp-Session-Id\n"},
    [LP_FRONT_NGINX] = {"remove what hides or clears the header",
        "# not: proxy_hide_header Mcp-Session-Id;\n"
        "proxy_pass_request_headers on;\n"
        "proxy_pass_header Mcp-Session-Id;\n"},
    [LP_FRONT_CADDY] = {"remove what deletes headers",
        "# not: header -Mcp-Session-Id, header_up -Mcp-Session-Id, header_down -Mcp-Session-Id\n"},
    [LP_FRONT_CDN] = {"turn the cache off for the endpoint and put the header on the lists of what "
                      "is forwarded and of what is returned",
        "# forward: Mcp-Session-Id, MCP-Protocol-Version, Last-Event-ID, Authorization; cache: "
        "off\n"},
};

static const struct lp_fix DOWN[] = {
    [LP_FRONT_GATEWAY] = {"let the balancer check its servers; the gateway does it without being "
                          "told, and gives new sessions to living replicas only",
        GATEWAY_LINE},
    [LP_FRONT_HAPROXY] = {"check the servers, and send a request that could not connect to another",
        "    option redispatch 1\n"
        "    default-server check inter 2s fall 2 rise 2\n"},
    [LP_FRONT_NGINX] = {"try the next server when one cannot be reached",
        "proxy_connect_timeout 2s;\n"
        "proxy_next_upstream error timeout;\n"
        "server 10.0.0.11:3000 max_fails=2 fail_timeout=10s;\n"},
    [LP_FRONT_CADDY] = {"check the servers and try again",
        "    lb_try_duration 2s\n"
        "    fail_duration 10s\n"},
};

static const struct lp_fix ALL_METHODS[] = {
    [LP_FRONT_GATEWAY] = {"one rule must cover POST, GET and DELETE; the gateway treats all three "
                          "alike",
        GATEWAY_LINE},
    [LP_FRONT_HAPROXY] = {"use the same backend for every method",
        "    use_backend mcp if { path /mcp }    # no 'method' condition\n"},
    [LP_FRONT_NGINX] = {"use the same upstream for every method",
        "location /mcp { proxy_pass http://mcp; }    # no limit_except, no if ($request_method)\n"},
};

static const struct lp_fix REST[] = {
    [LP_FRONT_GATEWAY] = {"let sessions live longer on the server; where the platform stops idle "
                          "instances, keep one awake, and let the gateway answer 404 so that "
                          "clients start again",
        GATEWAY_LINE},
    [LP_FRONT_HAPROXY] = {"let the table live longer than the sessions",
        "    stick-table type string len 128 size 1m expire 24h\n"},
    [LP_FRONT_CODE] = {"raise the idle limit of sessions in the server", NULL},
};

static const struct lp_fix STREAM[] = {
    [LP_FRONT_GATEWAY] = {"let every hop pass event streams at once; the gateway asks the hops in "
                          "front of it not to gather (X-Accel-Buffering: no, no-transform)",
        GATEWAY_LINE},
    [LP_FRONT_HAPROXY] = {"HAProxy holds each chunk for 200 ms unless told not to",
        "    option http-no-delay\n"},
    [LP_FRONT_NGINX] = {"turn buffering off for the endpoint",
        "proxy_buffering off;\n"
        "proxy_http_version 1.1;\n"
        "gzip off;\n"},
    [LP_FRONT_CADDY] = {"flush at once", "    flush_interval -1\n"},
    [LP_FRONT_CDN] = {"turn caching, compression and response buffering off for the endpoint",
        NULL},
    [LP_FRONT_INGRESS] = {"turn buffering off",
        "nginx.ingress.kubernetes.io/proxy-buffering: \"off\"\n"},
    [LP_FRONT_CODE] = {"send the head and a comment at once",
        "res.setHeader('X-Accel-Buffering', 'no'); res.write(': hello\\n\\n');\n"},
};

static const struct lp_fix QUIET[] = {
    [LP_FRONT_GATEWAY] = {"send a comment more often than the shortest idle limit on the way; the "
                          "gateway does, every 15 s",
        "comment_every: 15s\n"},
    [LP_FRONT_HAPROXY] = {"raise the idle limits of the backend",
        "    timeout server 1h\n    timeout client 1h\n"},
    [LP_FRONT_NGINX] = {"raise the idle limits of the endpoint",
        "proxy_read_timeout 1h;\nproxy_send_timeout 1h;\n"},
    [LP_FRONT_INGRESS] = {"raise the idle limit",
        "nginx.ingress.kubernetes.io/proxy-read-timeout: \"3600\"\n"},
    [LP_FRONT_CODE] = {"send a comment every 15 s",
        "setInterval(() => res.write(': keepalive\\n\\n'), 15000);\n"},
};

static const struct lp_fix GET[] = {
    [LP_FRONT_CODE] = {"answer GET with 405 where there is no stream, and hold it open where there "
                       "is one",
        "res.writeHead(405, { Allow: 'POST, DELETE' }).end();\n"},
    [LP_FRONT_GATEWAY] = {"the gateway in front passes a real stream and answers 405 otherwise",
        GATEWAY_LINE},
};

static const struct lp_fix STATUS[] = {
    [LP_FRONT_CODE] = {"answer 404 to an id that the server does not know: that is what makes a "
                       "client start a new session",
        "res.status(404).json({ jsonrpc: '2.0', id: null,\n"
        "  error: { code: -32001, message: 'Session not found' } });\n"},
    [LP_FRONT_GATEWAY] = {"the gateway in front answers 404 whatever the server says",
        GATEWAY_LINE},
};

static const struct lp_fix CORS[] = {
    [LP_FRONT_CODE] = {"let browsers see the header",
        "app.use(cors({ exposedHeaders: ['Mcp-Session-Id'] }));\n"},
    [LP_FRONT_NGINX] = {"let browsers see the header",
        "add_header Access-Control-Expose-Headers Mcp-Session-Id always;\n"},
    [LP_FRONT_HAPROXY] = {"let browsers see the header",
        "    http-response set-header Access-Control-Expose-Headers Mcp-Session-Id\n"},
    [LP_FRONT_CADDY] = {"let browsers see the header",
        "header Access-Control-Expose-Headers Mcp-Session-Id\n"},
};

static const struct lp_fix URL[] = {
    [LP_FRONT_GATEWAY] = {"give the URL of the endpoint itself, scheme, port and path",
        "limpet probe https://mcp.example.com/mcp\n"},
};

static const struct lp_fix ADDRESS[] = {
    [LP_FRONT_GATEWAY] = {"start the server, and give the host and port that it listens on",
        "ss -ltn    # on the server's machine: what listens there\n"},
};

static const struct lp_fix TLS[] = {
    [LP_FRONT_GATEWAY] = {"name the CA that signed the certificate, and call the server by a name "
                          "in it; where the port does not speak TLS, say http://",
        "limpet probe --cacert ca.pem URL\n"},
};

static const struct lp_fix ANSWER[] = {
    [LP_FRONT_GATEWAY] = {"see whether the server behind the port is alive and speaks HTTP there, "
                          "and ask it directly, past every hop",
        "limpet probe http://127.0.0.1:3000/mcp    # on the server's own machine\n"},
};

static const struct lp_fix STATE[] = {
    [LP_FRONT_CODE] = {"seal request states with a key that all replicas have, not with one that "
                       "each process makes when it starts; or put nothing into the state that "
                       "only one process knows",
        NULL},
};

static const struct lp_fix LOGIN[] = {
    [LP_FRONT_GATEWAY] = {"probe as somebody who may come in",
        "limpet probe --bearer @token-file URL\n"},
};

static const struct lp_fix LOGIN_URL[] = {
    [LP_FRONT_GATEWAY] = {"tell the server the address that clients use (its public or base URL), "
                          "or let the proxy pass Host and X-Forwarded-Proto on, and serve "
                          "/.well-known/oauth-protected-resource with the path behind it",
        NULL},
    [LP_FRONT_HAPROXY] = {"pass on what the client used",
        "    http-request set-header X-Forwarded-Proto https if { ssl_fc }\n"},
    [LP_FRONT_NGINX] = {"pass on what the client used",
        "proxy_set_header Host $http_host;\n"
        "proxy_set_header X-Forwarded-Proto $scheme;\n"},
};

static const struct lp_fix LET_IN[] = {
    [LP_FRONT_GATEWAY] = {"probe as somebody who may come in; where a list of allowed hosts is the "
                          "cause, add the name in the URL to it, or let the proxy pass Host on",
        "limpet probe --bearer @token-file URL\n"},
    [LP_FRONT_NGINX] = {"let nginx pass the name that the client used",
        "proxy_set_header Host $http_host;\n"},
};

static const struct lp_fix RETRY[] = {
    [LP_FRONT_GATEWAY] = {"probe again, with more calls, when the deployment answers",
        "limpet probe --sessions 40 --calls 20 URL\n"},
};

static const struct {
    const struct lp_fix *rows;
    size_t count;
} TABLE[] = {
#define ROW(name) [LP_REMEDY_##name] = {name, sizeof name / sizeof *name}
    ROW(URL),
    ROW(ADDRESS),
    ROW(TLS),
    ROW(ANSWER),
    ROW(LOGIN),
    ROW(LOGIN_URL),
    ROW(LET_IN),
    ROW(RETRY),
    ROW(KEEP_HEADER),
    ROW(PIN),
    ROW(COOKIE),
    ROW(PIN_SSE),
    ROW(DOWN),
    ROW(ALL_METHODS),
    ROW(STATE),
    ROW(REST),
    ROW(STREAM),
    ROW(QUIET),
    ROW(GET),
    ROW(STATUS),
    ROW(CORS),
#undef ROW
};

const char *lp_front_name(enum lp_front front)
{
    LP_ASSERT(front < LP_FRONT_COUNT);
    return NAMES[front];
}

struct lp_fix lp_fix_of(enum lp_remedy remedy, enum lp_front front)
{
    if (remedy == LP_REMEDY_COOKIE && front != LP_FRONT_GATEWAY)
        remedy = LP_REMEDY_PIN;
    bool is_there = remedy < LP_REMEDY_COUNT && front < TABLE[remedy].count;
    return is_there ? TABLE[remedy].rows[front] : (struct lp_fix){0};
}

bool lp_fix_has_front(enum lp_remedy remedy, enum lp_front front)
{
    if (front != LP_FRONT_GATEWAY)
        return true;
    switch (remedy) {
    case LP_REMEDY_URL:
    case LP_REMEDY_ADDRESS:
    case LP_REMEDY_TLS:
    case LP_REMEDY_ANSWER:
    case LP_REMEDY_LOGIN:
    case LP_REMEDY_LOGIN_URL:
    case LP_REMEDY_LET_IN:
    case LP_REMEDY_RETRY:
    case LP_REMEDY_KEEP_HEADER:
        return false;
    default:
        return true;
    }
}

int lp_fix_lines(struct lp_fix fix, struct lp_span url, struct lp_buf *out)
{
    struct lp_span rest = lp_span_str(fix.lines);
    int err = LP_OK;
    while (rest.len && !err) {
        size_t at = lp_span_search(rest, LP_SPAN("URL"));
        err = lp_buf_append(out, lp_span(rest.ptr, at));
        if (at < rest.len && !err)
            err = lp_buf_append(out, url);
        rest = lp_span_from(rest, at < rest.len ? at + 3 : at);
    }
    return err;
}

/* --- who stands in front --- */

static bool mentions(const char *text, const char *word)
{
    size_t n = strlen(word);
    struct lp_span all = lp_span_str(text);
    for (size_t i = 0; i + n <= all.len; i++)
        if (lp_span_ieq(lp_span(text + i, n), lp_span_str(word)))
            return true;
    return false;
}

enum lp_front lp_front_of(const struct lp_seen *seen)
{
    static const struct {
        const char *word;
        enum lp_front front;
    } WORDS[] = {{"haproxy", LP_FRONT_HAPROXY}, {"cloudflare", LP_FRONT_CDN},
        {"cloudfront", LP_FRONT_CDN}, {"akamai", LP_FRONT_CDN}, {"fastly", LP_FRONT_CDN},
        {"varnish", LP_FRONT_CDN}, {"ingress", LP_FRONT_INGRESS}, {"istio", LP_FRONT_INGRESS},
        {"nginx", LP_FRONT_NGINX}, {"openresty", LP_FRONT_NGINX}, {"caddy", LP_FRONT_CADDY}};
    for (size_t w = 0; w < sizeof WORDS / sizeof *WORDS; w++)
        for (uint32_t i = 0; i < seen->hop_count; i++)
            if (mentions(seen->hops[i], WORDS[w].word))
                return WORDS[w].front;
    return LP_FRONT_GATEWAY;
}

enum lp_front lp_fix_front(const struct lp_verdict *verdict, const struct lp_seen *seen)
{
    enum lp_front seen_front = lp_front_of(seen);
    bool is_code_first = verdict->remedy == LP_REMEDY_STATUS ||
        verdict->remedy == LP_REMEDY_STATE || verdict->remedy == LP_REMEDY_GET ||
        (verdict->remedy == LP_REMEDY_CORS && seen_front == LP_FRONT_GATEWAY);
    if (is_code_first)
        return LP_FRONT_CODE;
    return lp_fix_of(verdict->remedy, seen_front).words ? seen_front : LP_FRONT_GATEWAY;
}
