/* The one key table (requirements [G13], design 8): the YAML reader, the flags, --help, the manual
 * and `config show` all walk these rows, so a key is added here and nowhere else. It also finds a
 * row by its name, and the row that somebody who mistyped may have meant. */
#include <stddef.h>
#include <string.h>

#include "conf/conf_priv.h"

#define SECONDS(n) ((n)*1000ULL)
#define MINUTES(n) ((n)*60000ULL)
#define DAYS(n) ((n)*86400000ULL)

#define AT_TOP(field) .scope = LP_SCOPE_TOP, .offset = offsetof(struct lp_conf, field)
#define AT_SERVER(field) .scope = LP_SCOPE_SERVER, .offset = offsetof(struct lp_conf_server, field)
#define AT_REPLICA(field)                                                                          \
    .scope = LP_SCOPE_REPLICA, .offset = offsetof(struct lp_conf_replica, field)
#define AT_PASS(field) .scope = LP_SCOPE_PASS, .offset = offsetof(struct lp_conf_pass, field)
#define AT_DIALECT(field)                                                                          \
    .scope = LP_SCOPE_DIALECT, .offset = offsetof(struct lp_conf_dialect, field)

static const struct lp_conf_key KEYS[] = {
    {.name = "",
        .flag = "--config",
        .arg = "FILE",
        .type = LP_TYPE_FILE,
        .scope = LP_SCOPE_COMMAND,
        .help = "Read this file first; flags win over it"},
    {.name = "listen",
        .flag = "--listen",
        .arg = "ADDRESS",
        .type = LP_TYPE_LISTENS,
        .max = 16,
        AT_TOP(listens),
        .fallback = "127.0.0.1:8080",
        .help = "Where clients connect; may be given again",
        .paragraph = "One address or a list of addresses where clients connect. "
                     "An address is host:port, [IPv6]:port, or unix:/path.sock. "
                     "A host of 0.0.0.0 means every IPv4 address of the machine."},
    {.name = "admin",
        .flag = "--admin",
        .arg = "ADDRESS",
        .type = LP_TYPE_ADMIN,
        AT_TOP(admin),
        .fallback = "127.0.0.1:8081",
        .takes_off = true,
        .help = "Where /live, /ready, /metrics, /status are, or off",
        .paragraph = "The address of the admin listener, or off. "
                     "It serves /metrics, /live, /ready and /status, "
                     "the first and the last of them only where the address is a loopback one: "
                     "they ask for no token in this release, so that whoever reaches the address "
                     "reads them. It belongs on a loopback address or a unix socket."},
    {.name = "key_file",
        .flag = "--key-file",
        .arg = "FILE",
        .type = LP_TYPE_TEXT,
        AT_TOP(key_file),
        .help = "Keys that seal session ids; made when it is missing",
        .paragraph = "The file with the keys that seal session ids: one base64 key of 32 bytes a "
                     "line. The first key seals, every key opens. "
                     "Gateways that share sessions need the same file. "
                     "The default is $XDG_STATE_HOME/limpet/key or ~/.local/state/limpet/key, "
                     "for root /var/lib/limpet/key; a missing file is made with mode 0600."},
    {.name = "tls_ca",
        .flag = "--tls-ca",
        .arg = "FILE",
        .type = LP_TYPE_TEXT,
        AT_TOP(tls_ca),
        .help = "The CA certificates (PEM) that https replicas must have",
        .paragraph = "A PEM file with the certificates that https replicas are believed by: those "
                     "of their CAs, or their own. The default is the roots of the system. "
                     "A replica's certificate must hold the host of its URL and be in date; else "
                     "the replica counts as one that does not answer."},
    {.name = "threads",
        .owner = LP_KEY_OF_GATEWAY,
        .flag = "--threads",
        .arg = "N",
        .type = LP_TYPE_COUNT,
        AT_TOP(threads),
        .fallback = "1",
        .min = 1,
        .max = 64,
        .help = "Threads that serve connections",
        .paragraph = "How many threads serve connections, each with an event loop of its own. "
                     "The kernel spreads the connections over them."},
    {.name = "servers",
        .owner = LP_KEY_OF_GATEWAY,
        .arg = "LIST",
        .type = LP_TYPE_SERVERS,
        .max = LP_CONF_SERVERS_MAX,
        AT_TOP(servers),
        .help = "The MCP servers behind this gateway",
        .paragraph = "The MCP servers behind this gateway, a list of mappings with the server keys "
                     "below. Without it, the server keys at the top level make the one server."},
    {.name = "name",
        .arg = "NAME",
        .type = LP_TYPE_NAME,
        AT_SERVER(name),
        .fallback = "default",
        .help = "The name of the server",
        .paragraph = "The name of the server, in logs, metrics and sealed into session ids: a "
                     "session belongs to the name it was opened under. "
                     "Letters, digits, '.', '_' and '-', at most 64."},
    {.name = "replicas",
        .owner = LP_KEY_OF_GATEWAY,
        .arg = "URL",
        .type = LP_TYPE_REPLICAS,
        .max = LP_CONF_REPLICAS_MAX,
        AT_SERVER(replicas),
        .help = "The replicas of the server",
        .paragraph = "The replicas, a list. Each is a URL, or a mapping of url, name and weight. "
                     "A URL is http://host:port/path, https://host:port/path or "
                     "unix:/path.sock:/path; without its path "
                     "the server's path is used."},
    {.name = "self",
        .flag = "--self",
        .arg = "ID",
        .type = LP_TYPE_TEXT,
        .owner = LP_KEY_OF_SIDECAR,
        AT_TOP(self),
        .help = "The owner id of this sidecar and its server",
        .paragraph = "The owner id of this sidecar and the server beside it: 1 to 32 letters and "
                     "digits, another one for each of them. "
                     "Without it the environment variable FLY_MACHINE_ID tells it, as the platform "
                     "sets it. Without any, session ids stay as the server made them, and requests "
                     "are passed on to nobody."},
    {.name = "self_from_hostname",
        .flag = "--self-from-hostname",
        .type = LP_TYPE_SWITCH,
        .owner = LP_KEY_OF_SIDECAR,
        AT_TOP(self_from_hostname),
        .fallback = "false",
        .help = "Make an owner id of HOSTNAME where there is no other",
        .paragraph = "Whether an owner id is made of the environment variable HOSTNAME where there "
                     "is no other: the first 16 hexadecimal digits of its SHA-256."},
    {.name = "local",
        .flag = "--local",
        .arg = "URL",
        .type = LP_TYPE_REPLICAS,
        .owner = LP_KEY_OF_SIDECAR,
        .max = 1,
        AT_SERVER(replicas),
        .help = "The MCP server beside this sidecar",
        .paragraph = "The MCP server beside this sidecar: a URL as that of a replica. "
                     "New sessions are opened there and nowhere else."},
    {.name = "peers",
        .flag = "--peer",
        .arg = "ID=URL",
        .type = LP_TYPE_PEERS,
        .owner = LP_KEY_OF_SIDECAR,
        .max = LP_CONF_REPLICAS_MAX - 1,
        AT_SERVER(peers),
        .help = "Another sidecar; may be given again",
        .paragraph = "The other sidecars, a list of owner ids with the address of each, like "
                     "m2=http://10.0.0.2:8080. They serve the same paths, so the URL has none. "
                     "An entry with the own id is left out, so that all may have one list."},
    {.name = "peers_dns",
        .flag = "--peers-dns",
        .arg = "URL",
        .type = LP_TYPE_URL,
        .owner = LP_KEY_OF_SIDECAR,
        AT_TOP(peers_dns),
        .help = "A name that has the addresses of all sidecars",
        .paragraph = "A URL like http://sidecars.internal:8080. Each address of its host is a "
                     "peer, and is asked for its owner id; the own address may be among them. "
                     "The name is looked up every peers_every: what has left is forgotten, what "
                     "is new is found. As long as it cannot be looked up, the peers that are known "
                     "stay."},
    {.name = "peers_file",
        .flag = "--peers-file",
        .arg = "FILE",
        .type = LP_TYPE_TEXT,
        .owner = LP_KEY_OF_SIDECAR,
        AT_TOP(peers_file),
        .help = "A file with a line ID=URL for each sidecar",
        .paragraph = "A file with a peer a line, like m2=http://10.0.0.2:8080; blank lines and "
                     "those that begin with # do not count. It is read again every peers_every, "
                     "and taken as a whole or, with a mistake in it, not at all."},
    {.name = "peers_every",
        .flag = "--peers-every",
        .arg = "TIME",
        .type = LP_TYPE_DURATION,
        .owner = LP_KEY_OF_SIDECAR,
        AT_TOP(peers_every_ms),
        .fallback = "5s",
        .min = 100,
        .max = MINUTES(60),
        .help = "How often peers are looked for anew",
        .paragraph = "How often the peers are looked for anew, by peers_dns or peers_file. A "
                     "request for an owner that nobody has heard of makes it happen at once, at "
                     "most every second, and gets 503 with Retry-After until it has."},
    {.name = "ids",
        .flag = "--ids",
        .arg = "HOW",
        .type = LP_TYPE_CHOICE,
        .owner = LP_KEY_OF_SIDECAR,
        AT_TOP(ids),
        .fallback = "sealed",
        .choices = "sealed|owner",
        .help = "How a session id tells who has the session",
        .paragraph = "How a session id tells who has the session. "
                     "With sealed it is a ticket, as a gateway makes it: all sidecars have the "
                     "same key file and the list of peers. "
                     "With owner it is the owner id, a dot, and the server's own id."},
    {.name = "replay",
        .flag = "--replay",
        .arg = "HOW",
        .type = LP_TYPE_CHOICE,
        .owner = LP_KEY_OF_SIDECAR,
        AT_TOP(replay),
        .fallback = "off",
        .choices = "off|fly|fly-instance",
        .help = "Let the platform send on what is another's",
        .paragraph = "Whether the request of another owner's session is answered with the header "
                     "by which the platform sends it there itself. "
                     "With off it is forwarded to the peer. "
                     "With fly the header is fly-replay: prefer_instance=ID;timeout=5s, with "
                     "fly-instance it is fly-replay: instance=ID. "
                     "A body over 1,000,000 bytes, or of unknown length, cannot be replayed: it is "
                     "forwarded where the peer is known, else refused with 413."},
    {.name = "path",
        .flag = "--path",
        .arg = "PATH",
        .type = LP_TYPE_PATH,
        AT_SERVER(path),
        .fallback = "/mcp",
        .help = "The MCP path that clients use",
        .paragraph = "The MCP path that clients use. It also is the path at a replica whose URL "
                     "has none. Every server needs a path of its own."},
    {.name = "sse_path",
        .flag = "--sse-path",
        .arg = "PATH",
        .type = LP_TYPE_PATH,
        AT_SERVER(sse_path),
        .takes_off = true,
        .help = "The clients' path of the old HTTP+SSE transport",
        .paragraph =
            "The path of the old HTTP+SSE transport (2024-11-05) that clients use, or off, "
            "the default. It may equal path."},
    {.name = "sse_upstream",
        .flag = "--sse-upstream",
        .arg = "PATH",
        .type = LP_TYPE_PATH,
        AT_SERVER(sse_upstream),
        .help = "The replicas' path of it, when another",
        .paragraph = "The path of the old HTTP+SSE transport at the replicas. "
                     "The default is sse_path."},
    {.name = "balance",
        .owner = LP_KEY_OF_GATEWAY,
        .flag = "--balance",
        .arg = "HOW",
        .type = LP_TYPE_CHOICE,
        AT_SERVER(balance),
        .fallback = "least_sessions",
        .choices = "least_sessions|round_robin",
        .help = "Where a new session goes",
        .paragraph = "Where a new session goes: to the replica with the fewest sessions for its "
                     "weight, or to each in turn. Each thread takes turns of its own."},
    {.name = "on_owner_lost",
        .owner = LP_KEY_OF_GATEWAY,
        .flag = "--on-owner-lost",
        .arg = "HOW",
        .type = LP_TYPE_CHOICE,
        AT_SERVER(on_owner_lost),
        .fallback = "not_found",
        .choices = "not_found",
        .later = "recover",
        .help = "What a session of a dead replica gets",
        .paragraph = "What a session gets whose replica is gone. "
                     "With not_found the client gets 404 at once and opens a new session. "
                     "The word recover is known and comes with a later release."},
    {.name = "cookie_jar",
        .owner = LP_KEY_OF_GATEWAY,
        .flag = "--cookie-jar",
        .type = LP_TYPE_SWITCH,
        AT_SERVER(cookie_jar),
        .fallback = "false",
        .help = "Keep the cookies of balancers behind, a jar a session",
        .paragraph =
            "Whether the cookies that replicas set are kept, for each session on its own, sent "
            "with all of its requests and withheld from clients. It is for a replica that is "
            "itself "
            "a balancer with cookie affinity: most MCP clients keep no cookies, so without it "
            "requests land on a copy without the session and fail with 404 Session not found right "
            "after initialize. The cookies of the first answer travel in the session id, later "
            "ones stay in the gateway's memory, at most 8 KiB a session."},
    {.name = "log.level",
        .flag = "--log-level",
        .arg = "LEVEL",
        .type = LP_TYPE_CHOICE,
        AT_TOP(log_level),
        .fallback = "info",
        .choices = "error|warn|info|debug",
        .help = "The least important events that are logged",
        .paragraph = "The least important events that are logged."},
    {.name = "log.access",
        .flag = "--access-log",
        .type = LP_TYPE_SWITCH,
        AT_TOP(access_log),
        .fallback = "false",
        .help = "Log a line for every exchange",
        .paragraph = "Whether every exchange gets a line in the log. "
                     "Session ids and tokens never appear in it."},
    {.name = "log.format",
        .flag = "--log-format",
        .arg = "FORMAT",
        .type = LP_TYPE_CHOICE,
        AT_TOP(log_format),
        .fallback = "text",
        .choices = "text|json",
        .help = "The form of a log line",
        .paragraph = "The form of a line, of events and exchanges alike."},
    {.name = "log.file",
        .flag = "--log-file",
        .arg = "FILE",
        .type = LP_TYPE_TEXT,
        AT_TOP(log_file),
        .help = "Append log lines to this file, not to standard error",
        .paragraph = "The file that log lines are appended to. The default is standard error."},
    {.name = "body_limit",
        .flag = "--body-limit",
        .arg = "SIZE",
        .type = LP_TYPE_SIZE,
        AT_SERVER(body_max),
        .fallback = "4MiB",
        .min = 1,
        .max = 1 << 30,
        .help = "The longest request body",
        .paragraph = "The longest request body. A longer one gets 413."},
    {.name = "large_bodies_limit",
        .arg = "SIZE",
        .type = LP_TYPE_SIZE,
        AT_TOP(large_bodies_max),
        .fallback = "256MiB",
        .min = 1,
        .max = 1ull << 40,
        .help = "The memory of all large request bodies",
        .paragraph = "How much memory request bodies over 64 KiB may take together while they are "
                     "held, as those are that open a session, speak the modern protocol or have no "
                     "good session id. A request that goes over it gets 503 with Retry-After; one "
                     "that is alone is not refused. Every thread has an equal share. A large body "
                     "of a session is passed on while it comes and is not counted. "
                     "It stands at the top level only."},
    {.name = "comment_every",
        .flag = "--comment-every",
        .arg = "DURATION",
        .type = LP_TYPE_DURATION,
        AT_SERVER(comment_ms),
        .fallback = "15s",
        .takes_off = true,
        .min = 100,
        .max = MINUTES(60),
        .help = "How often a silent stream gets a comment, or off",
        .paragraph = "How often an event stream gets a comment line, so that proxies and clients "
                     "see that it lives, or off. Comments go between events only."},
    {.name = "gone_after",
        .flag = "--gone-after",
        .arg = "DURATION",
        .type = LP_TYPE_DURATION,
        AT_SERVER(gone_after_ms),
        .fallback = "3s",
        .min = 1,
        .max = MINUTES(60),
        .help = "How long a replica may be in doubt",
        .paragraph = "How long a replica that cannot be reached is in doubt before it is gone. "
                     "Sessions of a replica in doubt get 503, those of a gone one 404."},
    {.name = "hosts",
        .flag = "--host",
        .arg = "NAME",
        .type = LP_TYPE_HOSTS,
        .max = 256,
        AT_SERVER(hosts),
        .help = "A Host that clients may use, * for any; may be given again",
        .paragraph = "The values of the Host header that clients may use, with or without a port; "
                     "\"*\" is any. The default on a loopback listener is the loopback names, "
                     "elsewhere any. Others get 403."},
    {.name = "origins",
        .flag = "--origin",
        .arg = "ORIGIN",
        .type = LP_TYPE_ORIGINS,
        .max = 256,
        AT_SERVER(origins),
        .help = "A web origin that may call, * for any; may be given again",
        .paragraph = "The web origins whose pages may call, like https://app.example.com; "
                     "\"*\" is any. The default on a loopback listener is loopback origins, "
                     "elsewhere an origin equal to the Host. Others get 403. With this key "
                     "Limpet answers CORS preflights itself, and says with every answer that "
                     "the page may read it; without it OPTIONS goes to a replica, and what the "
                     "replica says of CORS is passed on."},
    {.name = "public_url",
        .flag = "--public-url",
        .arg = "URL",
        .type = LP_TYPE_PUBLIC_URLS,
        .max = 64,
        AT_SERVER(public_urls),
        .help = "The MCP URL that clients use; may be given again",
        .paragraph = "The URL, or a list of URLs, by which clients know this server, like "
                     "https://mcp.example/mcp. It is for servers that ask for a login: a replica "
                     "knows itself by another address, and clients refuse metadata that name "
                     "another one than they use. With it, resource_metadata in WWW-Authenticate "
                     "and resource in the document at /.well-known/oauth-protected-resource are "
                     "rewritten to the URL whose name is that of the Host header, or to the first. "
                     "The names are also what hosts is without being given, beside the loopback "
                     "names on a loopback listener. A session may be used under any of them."},
    {.name = "timeouts.request",
        .arg = "DURATION",
        .type = LP_TYPE_DURATION,
        AT_TOP(request_ms),
        .fallback = "30s",
        .min = 10,
        .max = MINUTES(60),
        .help = "How long a request may take to arrive",
        .paragraph = "How long the head of a request may take to arrive, from its first byte on. "
                     "Then its body has to come at 1 KiB a second or more, looked at each time "
                     "this time has passed; while Limpet itself does not read, because the replica "
                     "is slower than the client, no time passes. Else the client gets 408 and is "
                     "cut. It stands at the top level only."},
    {.name = "timeouts.connect",
        .arg = "DURATION",
        .type = LP_TYPE_DURATION,
        AT_SERVER(connect_ms),
        .fallback = "2s",
        .min = 10,
        .max = MINUTES(5),
        .help = "How long a connection to a replica may take",
        .paragraph = "How long a connection to a replica may take."},
    {.name = "timeouts.first_byte",
        .arg = "DURATION",
        .type = LP_TYPE_DURATION,
        AT_SERVER(first_byte_ms),
        .fallback = "300s",
        .min = 10,
        .max = DAYS(1),
        .help = "How long a replica may be silent before or in an answer",
        .paragraph = "How long the head of an answer may take, from the end of the request on. "
                     "After it the client gets 504. The body of an answer may not pause longer "
                     "either, or the client's connection is cut; time in which the client does "
                     "not read is not counted. Event streams may be silent for ever."},
    {.name = "timeouts.sse_post",
        .arg = "DURATION",
        .type = LP_TYPE_DURATION,
        AT_SERVER(sse_post_ms),
        .fallback = "10s",
        .min = 10,
        .max = MINUTES(60),
        .help = "How long a POST of the old transport may take",
        .paragraph = "How long the answer to a POST of the old HTTP+SSE transport may take. "
                     "It is short because many servers never answer one of a session they lost."},
    {.name = "timeouts.stalled",
        .arg = "DURATION",
        .type = LP_TYPE_DURATION,
        AT_SERVER(stalled_ms),
        .fallback = "60s",
        .min = 100,
        .max = DAYS(1),
        .help = "How long a client or a replica may leave bytes unread",
        .paragraph = "How long a client may leave the waiting bytes of an answer unread, or a "
                     "replica those of a request. Then its connection is cut; the client of such "
                     "a replica gets 504."},
    {.name = "ticket_age",
        .arg = "DURATION",
        .type = LP_TYPE_DURATION,
        AT_SERVER(ticket_age_ms),
        .fallback = "30d",
        .min = SECONDS(1),
        .max = DAYS(3650),
        .help = "How old a session may get",
        .paragraph = "How old a session may get, used or not."},
    {.name = "lost_dialects",
        .arg = "LIST",
        .type = LP_TYPE_DIALECTS,
        .max = LP_CONF_DIALECTS_MAX,
        AT_SERVER(lost_dialects),
        .help = "More words of replicas for a lost session",
        .paragraph = "Answers by which the replicas say that they do not know a session, beside "
                     "the built-in ones: a list of up to 32 mappings of status, code and text. "
                     "Only an exact match counts."},
    {.name = "plain_404_agents",
        .arg = "LIST",
        .type = LP_TYPE_AGENTS,
        .max = 256,
        AT_SERVER(plain_404_agents),
        .fallback = "Go-http-client/",
        .help = "Clients that need a plain 404",
        .paragraph = "Beginnings of the User-Agent of clients that notice a lost session only "
                     "when the 404 has a plain text body."},
    {.name = "stop_after",
        .arg = "DURATION",
        .type = LP_TYPE_DURATION,
        AT_TOP(stop_ms),
        .fallback = "10s",
        .min = 0,
        .max = MINUTES(60),
        .help = "How long a graceful stop may take",
        .paragraph = "How long exchanges may go on after SIGTERM before they are cut."},
    {.name = "connections_max",
        .arg = "N",
        .type = LP_TYPE_COUNT,
        AT_TOP(conn_max),
        .fallback = "9000",
        .min = 1,
        .max = 1000000,
        .help = "Client connections at the same time",
        .paragraph = "How many client connections there may be at the same time. "
                     "Each thread takes its equal share of them. "
                     "Each may need a second one to a replica, so the limit of open files must be "
                     "over twice this number."},
    {.name = "waiting_max",
        .arg = "N",
        .type = LP_TYPE_COUNT,
        AT_TOP(waiting_max),
        .fallback = "1000",
        .max = 1000000,
        .help = "Requests that wait for one owner's answer",
        .paragraph = "How many requests of sessions may wait for the answer of one replica, or of "
                     "one peer, at the same time, GET streams aside. One more gets 503 with "
                     "Retry-After, so that an owner that hangs takes no more than this from the "
                     "others. Each thread takes its equal share. 0 is no limit."},
    {.name = "pass",
        .owner = LP_KEY_OF_GATEWAY,
        .flag = "--pass",
        .arg = "PATH",
        .type = LP_TYPE_PASSES,
        .max = 256,
        AT_SERVER(passes),
        .help = "Another path of the replicas, pinned to one; may be given again",
        .paragraph = "Other paths that the replicas have, like those of a login: a list of paths, "
                     "or of mappings of path and to. What lies below a path is meant too; the "
                     "longest path wins. Such requests, of any method, go to a replica without a "
                     "session; path, query, fields and body are passed on as they are, but for "
                     "Host, which is the replica's, and the forwarding fields. Host and Origin are "
                     "checked as everywhere. What may lead to an MCP path, or can be read in two "
                     "ways (an encoded slash, dot segments, //), gets 404."},
    {.name = "path",
        .arg = "PATH",
        .type = LP_TYPE_PATH,
        AT_PASS(path),
        .help = "The path",
        .paragraph = "The path, as clients ask for it and as the replicas have it. "
                     "Must be there."},
    {.name = "to",
        .arg = "HOW",
        .type = LP_TYPE_CHOICE,
        AT_PASS(to),
        .fallback = "pinned",
        .choices = "pinned|any",
        .help = "Which replica gets it",
        .paragraph = "Which replica gets such requests. With pinned it is one for all pinned paths "
                     "of the server, the same in every gateway, and another one only while that "
                     "one is down: for registrations and codes that are in one process's memory. "
                     "With any each request may go to another."},
    {.name = "url",
        .arg = "URL",
        .type = LP_TYPE_URL,
        AT_REPLICA(name),
        .help = "Where it is",
        .paragraph = "http://host:port/path, https://host:port/path or unix:/path.sock:/path. "
                     "Must be there."},
    {.name = "name",
        .arg = "NAME",
        .type = LP_TYPE_NAME,
        AT_REPLICA(name),
        .help = "Its name",
        .paragraph = "The name that sessions remember their replica by. The default is host, port "
                     "and path. With a name, a replica may move to another address and keep its "
                     "sessions' way to it."},
    {.name = "weight",
        .arg = "N",
        .type = LP_TYPE_COUNT,
        AT_REPLICA(weight),
        .fallback = "1",
        .min = 1,
        .max = 100,
        .help = "Its share of new sessions",
        .paragraph = "Its share of new sessions compared with the others."},
    {.name = "status",
        .arg = "N",
        .type = LP_TYPE_STATUS,
        AT_DIALECT(status),
        .min = 400,
        .max = 599,
        .help = "The HTTP status",
        .paragraph = "The HTTP status. Must be there."},
    {.name = "code",
        .arg = "N",
        .type = LP_TYPE_CODE,
        AT_DIALECT(code),
        .fallback = "0",
        .help = "The JSON-RPC error code",
        .paragraph = "The JSON-RPC error code; then text is its whole message. "
                     "Without it text is the whole body."},
    {.name = "text",
        .arg = "TEXT",
        .type = LP_TYPE_TEXT,
        AT_DIALECT(text),
        .help = "The message or body",
        .paragraph = "The message or body. Must be there."},
    {.name = "discover", .type = LP_TYPE_LATER, .scope = LP_SCOPE_SERVER},
    {.name = "store", .type = LP_TYPE_LATER, .scope = LP_SCOPE_TOP},
};

enum { KEY_COUNT = sizeof KEYS / sizeof KEYS[0], WORD_MAX = 32 };

_Static_assert(KEY_COUNT <= (int)LP_CONF_KEYS_MAX, "LP_CONF_KEYS_MAX is too small");

const struct lp_conf_key *lp_conf_keys(uint32_t *ret_count)
{
    *ret_count = KEY_COUNT;
    return KEYS;
}

bool lp_conf_key_is_of(const struct lp_conf_key *key, enum lp_conf_seat seat)
{
    return key->owner == LP_KEY_OF_BOTH ||
        (key->owner == LP_KEY_OF_SIDECAR) == (seat == LP_SEAT_SIDECAR);
}

uint32_t lp_conf_key_index(const struct lp_conf_key *key)
{
    LP_ASSERT(key >= KEYS && key < KEYS + KEY_COUNT);
    return (uint32_t)(key - KEYS);
}

static bool may_stand_in(const struct lp_conf_key *key, enum lp_conf_scope scope)
{
    return key->scope == scope || (key->scope == LP_SCOPE_SERVER && scope == LP_SCOPE_TOP);
}

/* What follows `prefix` in the row's name; a null pointer when the row is not below it. */
static struct lp_span below(const struct lp_conf_key *key, struct lp_span prefix)
{
    struct lp_span name = lp_span_str(key->name);
    return lp_span_starts(name, prefix) ? lp_span_from(name, prefix.len) : lp_span(NULL, 0);
}

const struct lp_conf_key *lp_conf_key_find(
    enum lp_conf_scope scope, struct lp_span prefix, struct lp_span name)
{
    if (lp_span_find(name, '.') < name.len)
        return NULL;
    for (uint32_t i = 0; i < KEY_COUNT; i++)
        if (may_stand_in(&KEYS[i], scope) && lp_span_eq(below(&KEYS[i], prefix), name) && name.len)
            return &KEYS[i];
    return NULL;
}

bool lp_conf_key_is_group(enum lp_conf_scope scope, struct lp_span prefix, struct lp_span name)
{
    for (uint32_t i = 0; i < KEY_COUNT; i++) {
        struct lp_span rest = below(&KEYS[i], prefix);
        size_t dot = lp_span_find(rest, '.');
        if (may_stand_in(&KEYS[i], scope) && dot < rest.len &&
            lp_span_eq(lp_span(rest.ptr, dot), name))
            return true;
    }
    return false;
}

static uint8_t least(uint8_t a, uint8_t b, uint8_t c)
{
    uint8_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* How many letters must be added, taken or changed to get from `a` to `b` (Levenshtein). */
static uint8_t distance(struct lp_span a, struct lp_span b)
{
    uint8_t row[WORD_MAX + 1];
    for (size_t j = 0; j <= b.len; j++)
        row[j] = (uint8_t)j;
    for (size_t i = 1; i <= a.len; i++) {
        uint8_t diagonal = row[0];
        row[0] = (uint8_t)i;
        for (size_t j = 1; j <= b.len; j++) {
            uint8_t up = row[j];
            uint8_t changed = (uint8_t)(diagonal + (a.ptr[i - 1] != b.ptr[j - 1]));
            row[j] = least((uint8_t)(up + 1), (uint8_t)(row[j - 1] + 1), changed);
            diagonal = up;
        }
    }
    return row[b.len];
}

/* Whether `word` is nearer to `name` than *best letters; a word of which more than a third would
 * have to change is no help. */
static bool is_nearer(struct lp_span name, struct lp_span word, uint8_t *best)
{
    if (name.len > WORD_MAX || word.len > WORD_MAX || word.len == 0)
        return false;
    uint8_t letters = distance(name, word);
    if (letters >= *best || letters * 3u > word.len + 1)
        return false;
    *best = letters;
    return true;
}

struct lp_span lp_conf_key_nearest(
    enum lp_conf_scope scope, struct lp_span prefix, struct lp_span name)
{
    struct lp_span nearest = {NULL, 0};
    uint8_t best = UINT8_MAX;
    for (uint32_t i = 0; i < KEY_COUNT; i++) {
        struct lp_span rest = below(&KEYS[i], prefix);
        struct lp_span word = lp_span(rest.ptr, lp_span_find(rest, '.'));
        if (may_stand_in(&KEYS[i], scope) && KEYS[i].type != LP_TYPE_LATER &&
            is_nearer(name, word, &best))
            nearest = word;
    }
    return nearest;
}

const struct lp_conf_key *lp_conf_flag_find(struct lp_span flag)
{
    if (lp_span_eq(flag, LP_SPAN("-c")))
        return &KEYS[0];
    for (uint32_t i = 0; i < KEY_COUNT; i++)
        if (KEYS[i].flag && lp_span_eq(lp_span_str(KEYS[i].flag), flag))
            return &KEYS[i];
    return NULL;
}

const char *lp_conf_flag_nearest(struct lp_span flag)
{
    const char *nearest = NULL;
    uint8_t best = UINT8_MAX;
    for (uint32_t i = 0; i < KEY_COUNT; i++)
        if (KEYS[i].flag && is_nearer(flag, lp_span_str(KEYS[i].flag), &best))
            nearest = KEYS[i].flag;
    return nearest;
}
