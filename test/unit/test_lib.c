/* The public library where it keeps nothing: keys, tickets, owner ids, header rules and the routing
 * decision, by limpet.h alone and through the shared library; beside it only gate/route.h, to hold
 * every verdict against. What the rooms below do in full is proved by their own tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <limpet.h>

#include "gate/route.h"

#define KEY_1 "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
#define KEY_2 "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=\n"
#define BYTES_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static bool is_text(struct limpet_span span, const char *text)
{
    return span.len == strlen(text) && (!span.len || memcmp(span.ptr, text, span.len) == 0);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(limpet_version(), LIMPET_VERSION);
    assert_string_equal(limpet_version(), LP_VERSION);
    assert_string_equal(limpet_error_name(LIMPET_EFORGED), "FORGED");
    assert_string_equal(limpet_error_sentence(LIMPET_EFORGED), "the seal does not match");
    assert_string_equal(limpet_error_name(-999), "UNKNOWN");
    assert_string_equal(limpet_error_sentence(1), "unknown error");
    assert_int_equal(limpet_str(NULL).len, 0);
    assert_null(limpet_str(NULL).ptr);
    assert_true(is_text(limpet_bytes("abc", 2), "ab"));
}

/* --- keys and tickets ------------------------------------------------------------------------- */

static struct limpet_keyring *ring_of(const char *text)
{
    struct limpet_keyring *ring = NULL;
    uint32_t line = 0;
    assert_int_equal(limpet_keyring_new(NULL, limpet_str(text), &ring, &line), LIMPET_OK);
    return ring;
}

static void test_key_files(void **state)
{
    (void)state;
    unsigned char key[LIMPET_KEY_BYTES];
    char line[LIMPET_KEY_ROOM], id[LIMPET_KEY_ID_ROOM] = "", other[LIMPET_KEY_ID_ROOM] = "";
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (unsigned char)i;
    limpet_key_write(key, line);
    assert_string_equal(line, KEY_1);
    struct limpet_keyring *ring = ring_of("# a comment\n\n" KEY_1 KEY_2);
    assert_int_equal(limpet_keyring_count(ring), 2);
    assert_int_equal(limpet_keyring_id(ring, 0, id), LIMPET_OK);
    assert_int_equal(limpet_keyring_id(ring, 1, other), LIMPET_OK);
    assert_int_equal(strlen(id), 8);
    assert_string_not_equal(id, other);
    assert_int_equal(limpet_keyring_id(ring, 2, id), LIMPET_ENOT_FOUND);
    limpet_keyring_free(ring);
    limpet_keyring_free(NULL);
}

static void test_bad_key_files(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int error;
        uint32_t line;
    } CASES[] = {
        {"", LIMPET_ENOT_FOUND, 0},
        {"# nothing\n", LIMPET_ENOT_FOUND, 0},
        {KEY_1 "no key\n", LIMPET_ESYNTAX, 2},
        {KEY_1 "\n" KEY_1, LIMPET_EEXISTS, 3},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct limpet_keyring *ring = NULL;
        uint32_t line = 0;
        int err = limpet_keyring_new(NULL, limpet_str(CASES[i].text), &ring, &line);
        assert_int_equal(err, CASES[i].error);
        assert_int_equal(line, CASES[i].line);
        assert_null(ring);
    }
}

struct sealed {
    struct limpet_ticket_context context;
    struct limpet_note note;
    unsigned char nonce[LIMPET_NONCE_BYTES];
    char text[LIMPET_TICKET_ROOM];
    size_t len;
};

static int seal(struct sealed *s)
{
    return limpet_ticket_seal(&s->context, &s->note, s->nonce, s->text, &s->len);
}

static struct sealed sealed_by(const struct limpet_keyring *ring)
{
    struct sealed s = {
        .context = {.ring = ring,
            .kind = LIMPET_TICKET_HTTP,
            .server = limpet_str("tools"),
            .wall_ms = 5000,
            .age_max_ms = 1000},
        .note = {.replica = limpet_str("replica-a"),
            .upstream_id = limpet_str("7d6f3c1e"),
            .cookies = limpet_str("lb=a"),
            .issued_ms = 4500,
            .has_principal = true,
            .principal = "1234567"},
        .nonce = "fresh random bytes, 24.",
    };
    assert_int_equal(seal(&s), LIMPET_OK);
    return s;
}

static int open_sealed(const struct sealed *s, char *room, struct limpet_ticket *ret)
{
    return limpet_ticket_open(&s->context, limpet_bytes(s->text, s->len), room, ret);
}

static void test_a_ticket_says_what_was_put_in(void **state)
{
    (void)state;
    char room[LIMPET_TICKET_ROOM];
    struct limpet_ticket ticket = {0};
    struct limpet_keyring *ring = ring_of(KEY_1), *rotated = ring_of(KEY_2 KEY_1);
    struct sealed s = sealed_by(ring);
    assert_true(s.len <= 512 && memcmp(s.text, "lp1_", 4) == 0);
    s.context.ring = rotated;
    assert_int_equal(open_sealed(&s, room, &ticket), LIMPET_OK);
    assert_true(is_text(ticket.upstream_id, "7d6f3c1e"));
    assert_true(is_text(ticket.cookies, "lb=a"));
    assert_int_equal(ticket.issued_ms, 4500);
    assert_int_equal(ticket.key_index, 1);
    assert_true(ticket.has_principal);
    assert_memory_equal(ticket.principal, "1234567", 8);
    assert_memory_equal(ticket.session, "fresh random byt", 16);
    assert_true(limpet_ticket_names(rotated, &ticket, limpet_str("replica-a")));
    assert_false(limpet_ticket_names(rotated, &ticket, limpet_str("replica-b")));
    assert_false(limpet_ticket_names(ring, &ticket, limpet_str("replica-a"))); /* no key 1 there */
    limpet_keyring_free(ring);
    limpet_keyring_free(rotated);
}

static void test_what_does_not_open(void **state)
{
    (void)state;
    char room[LIMPET_TICKET_ROOM];
    struct limpet_ticket ticket = {.issued_ms = 77};
    struct limpet_keyring *ring = ring_of(KEY_1), *stranger = ring_of(KEY_2);
    struct sealed s = sealed_by(ring);
    struct sealed other = s;
    other.context.ring = stranger;
    assert_int_equal(open_sealed(&other, room, &ticket), LIMPET_EUNKNOWN_KEY);
    other = s;
    other.context.kind = LIMPET_TICKET_SSE;
    assert_int_equal(open_sealed(&other, room, &ticket), LIMPET_EFORGED);
    other = s;
    other.context.server = limpet_str("other");
    assert_int_equal(open_sealed(&other, room, &ticket), LIMPET_EFORGED);
    other = s;
    other.context.wall_ms = 5501;
    assert_int_equal(open_sealed(&other, room, &ticket), LIMPET_EEXPIRED);
    other = s;
    other.text[other.len / 2] ^= 1;
    assert_int_equal(open_sealed(&other, room, &ticket), LIMPET_EFORGED);
    other = s;
    other.len = 3;
    assert_int_equal(open_sealed(&other, room, &ticket), LIMPET_ESYNTAX);
    assert_int_equal(ticket.issued_ms, 77); /* untouched by all of them */
    limpet_keyring_free(ring);
    limpet_keyring_free(stranger);
}

/* A caller's mistake is an error, where the rooms below assert. */
static void test_what_is_not_sealed(void **state)
{
    (void)state;
    char room[LIMPET_TICKET_ROOM];
    char long_id[LIMPET_UPSTREAM_ID_MAX + 1];
    struct limpet_ticket ticket;
    struct limpet_keyring *ring = ring_of(KEY_1);
    struct sealed s = sealed_by(ring), bad = s;
    memset(long_id, 'x', sizeof long_id);
    bad.context.server = limpet_str(BYTES_64 "x");
    assert_int_equal(seal(&bad), LIMPET_ERANGE);
    assert_int_equal(open_sealed(&bad, room, &ticket), LIMPET_ERANGE);
    bad = s;
    bad.context.server = limpet_str(BYTES_64);
    assert_int_equal(seal(&bad), LIMPET_OK);
    assert_int_equal(open_sealed(&bad, room, &ticket), LIMPET_OK);
    bad = s;
    memset(&bad.context.kind, 0x7F, sizeof bad.context.kind);
    assert_int_equal(seal(&bad), LIMPET_ERANGE);
    assert_int_equal(open_sealed(&bad, room, &ticket), LIMPET_ERANGE);
    bad = s;
    bad.note.upstream_id = limpet_bytes(long_id, sizeof long_id);
    assert_int_equal(seal(&bad), LIMPET_ETOO_LONG);
    bad.note.upstream_id = limpet_str("");
    assert_int_equal(seal(&bad), LIMPET_ERANGE);
    bad = s;
    bad.note.cookies = limpet_bytes(long_id, sizeof long_id);
    assert_int_equal(seal(&bad), LIMPET_ERANGE);
    for (size_t i = 0; i < 4; i++) {
        static const enum limpet_ticket_kind KINDS[] = {
            LIMPET_TICKET_HTTP, LIMPET_TICKET_SSE, LIMPET_TICKET_TASK, LIMPET_TICKET_STATE};
        s.context.kind = KINDS[i];
        assert_int_equal(seal(&s), LIMPET_OK);
        assert_int_equal(open_sealed(&s, room, &ticket), LIMPET_OK);
    }
    limpet_keyring_free(ring);
}

/* --- owner ids -------------------------------------------------------------------------------- */

static void test_owner_ids(void **state)
{
    (void)state;
    char room[LIMPET_OWNER_ROOM];
    size_t len = 0;
    struct limpet_span owner, rest;
    assert_true(limpet_owner_is_id(limpet_str("m2")));
    assert_false(limpet_owner_is_id(limpet_str("m2;x=y")));
    assert_int_equal(limpet_owner_mint(limpet_str("m2"), limpet_str("a.b"), room, &len), LIMPET_OK);
    assert_true(is_text(limpet_bytes(room, len), "m2.a.b"));
    assert_int_equal(limpet_owner_split(limpet_bytes(room, len), &owner, &rest), LIMPET_OK);
    assert_true(is_text(owner, "m2") && is_text(rest, "a.b"));
    len = 99;
    assert_int_equal(
        limpet_owner_mint(limpet_str("m 2"), limpet_str("a"), room, &len), LIMPET_ESYNTAX);
    assert_int_equal(
        limpet_owner_mint(limpet_str("m2"), limpet_str(""), room, &len), LIMPET_ESYNTAX);
    assert_int_equal(limpet_owner_split(limpet_str("plain"), &owner, &rest), LIMPET_ESYNTAX);
    assert_true(len == 99 && is_text(owner, "m2"));
}

static void test_the_longest_owner_id_has_room(void **state)
{
    (void)state;
    char room[LIMPET_OWNER_ROOM], rest[2049];
    size_t len = 0;
    const char *owner = "0123456789abcdef0123456789abcdef";
    memset(rest, '~', sizeof rest);
    assert_int_equal(
        limpet_owner_mint(limpet_str(owner), limpet_bytes(rest, 2048), room, &len), LIMPET_OK);
    assert_int_equal(len, sizeof room);
    assert_int_equal(
        limpet_owner_mint(limpet_str(owner), limpet_bytes(rest, 2049), room, &len), LIMPET_ESYNTAX);
}

static void test_owner_sources(void **state)
{
    (void)state;
    struct limpet_owner owner = {.len = 55};
    struct limpet_owner_sources from = {.configured = limpet_str("not good")};
    assert_int_equal(limpet_owner_choose(&from, &owner), LIMPET_ESYNTAX);
    assert_int_equal(owner.len, 55);
    from = (struct limpet_owner_sources){.configured = limpet_str("m1")};
    assert_int_equal(limpet_owner_choose(&from, &owner), LIMPET_OK);
    assert_int_equal(owner.source, LIMPET_OWNER_CONFIGURED);
    assert_true(is_text(limpet_bytes(owner.text, owner.len), "m1"));
    from = (struct limpet_owner_sources){.machine = limpet_str("d8d9")};
    assert_int_equal(limpet_owner_choose(&from, &owner), LIMPET_OK);
    assert_int_equal(owner.source, LIMPET_OWNER_MACHINE);
    from.machine = limpet_str("d8-9");
    assert_int_equal(limpet_owner_choose(&from, &owner), LIMPET_OK);
    assert_int_equal(owner.source, LIMPET_OWNER_MACHINE_BAD);
    assert_int_equal(owner.len, 0);
    from = (struct limpet_owner_sources){.hostname = limpet_str("abc")};
    assert_int_equal(limpet_owner_choose(&from, &owner), LIMPET_OK);
    assert_int_equal(owner.source, LIMPET_OWNER_NOWHERE);
    from.takes_hostname = true;
    assert_int_equal(limpet_owner_choose(&from, &owner), LIMPET_OK);
    assert_int_equal(owner.source, LIMPET_OWNER_HOSTNAME);
    assert_true(is_text(limpet_bytes(owner.text, owner.len), "ba7816bf8f01cfea"));
}

static void test_replay(void **state)
{
    (void)state;
    char room[LIMPET_REPLAY_ROOM];
    size_t len = 0;
    memset(room, 'x', sizeof room);
    assert_int_equal(limpet_replay_value(limpet_str("m2"), false, room, &len), LIMPET_OK);
    assert_string_equal(room, "prefer_instance=m2;timeout=5s");
    assert_int_equal(len, strlen(room));
    assert_int_equal(limpet_replay_value(limpet_str("m2"), true, room, &len), LIMPET_OK);
    assert_string_equal(room, "instance=m2");
    assert_int_equal(
        limpet_replay_value(limpet_str("m2\r\nx: y"), true, room, &len), LIMPET_ESYNTAX);
}

/* --- hop marks ---------------------------------------------------------------------------------
 */

enum { SIGNED_MS = 1000000 };

static void test_hop_marks(void **state)
{
    (void)state;
    struct limpet_keyring *ring = ring_of(KEY_1), *stranger = ring_of(KEY_2);
    struct limpet_hops *hops = NULL;
    unsigned char nonce[LIMPET_HOP_NONCE_BYTES] = {1};
    char room[LIMPET_HOP_ROOM];
    size_t len = 99;
    struct limpet_hop hop = {limpet_str("POST"), limpet_str("/mcp"), limpet_str("m2.a"),
                          limpet_str("m2"), SIGNED_MS},
                      other = hop;
    assert_int_equal(limpet_hops_new(NULL, &hops), LIMPET_OK);
    other.target = limpet_str("m 2");
    assert_int_equal(limpet_hop_sign(ring, &other, nonce, room, &len), LIMPET_ESYNTAX);
    assert_int_equal(len, 99);
    assert_int_equal(limpet_hop_sign(ring, &hop, nonce, room, &len), LIMPET_OK);
    assert_int_equal(strlen(room), len);
    struct limpet_span mark = limpet_bytes(room, len);
    static const char *const OTHERS[] = {"GET", "/mcp?a", "m2.b"};
    for (int i = 0; i < 3; i++) { /* each part counts */
        other = hop;
        *(i == 0 ? &other.method : i == 1 ? &other.path : &other.session) = limpet_str(OTHERS[i]);
        assert_int_equal(limpet_hop_judge(hops, ring, &other, mark), LIMPET_HOP_FORGED);
    }
    other = hop;
    other.target = limpet_str("m3");
    assert_int_equal(limpet_hop_judge(hops, ring, &other, mark), LIMPET_HOP_OTHER_TARGET);
    assert_int_equal(limpet_hop_judge(hops, stranger, &hop, mark), LIMPET_HOP_FORGED);
    assert_int_equal(limpet_hop_judge(hops, ring, &hop, limpet_str("h1.m2.x")), LIMPET_HOP_FORGED);
    other = hop;
    other.wall_ms = SIGNED_MS + 30001;
    assert_int_equal(limpet_hop_judge(hops, ring, &other, mark), LIMPET_HOP_STALE);
    other.wall_ms = SIGNED_MS - 5001;
    assert_int_equal(limpet_hop_judge(hops, ring, &other, mark), LIMPET_HOP_STALE);
    assert_int_equal(limpet_hop_judge(hops, ring, &hop, mark), LIMPET_HOP_GOOD);
    assert_int_equal(limpet_hop_judge(hops, ring, &hop, mark), LIMPET_HOP_REPLAYED);
    limpet_hops_free(hops);
    limpet_hops_free(NULL);
    limpet_keyring_free(ring);
    limpet_keyring_free(stranger);
}

static void test_the_longest_mark_has_room(void **state)
{
    (void)state;
    struct limpet_keyring *ring = ring_of(KEY_1);
    unsigned char nonce[LIMPET_HOP_NONCE_BYTES] = {2};
    char room[LIMPET_HOP_ROOM];
    size_t len = 0;
    struct limpet_hop hop = {.target = limpet_str("0123456789abcdef0123456789abcdef")};
    assert_int_equal(limpet_hop_sign(ring, &hop, nonce, room, &len), LIMPET_OK);
    assert_int_equal(len, LIMPET_HOP_ROOM - 1);
    limpet_keyring_free(ring);
}

/* --- header rules ----------------------------------------------------------------------------- */

#define META                                                                                       \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define CALL                                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"," META  \
    "}}"

struct judged {
    bool passes;
    struct limpet_message message;
    struct limpet_ending ending;
};

static struct judged judge(const struct limpet_field *fields, size_t count, const char *body)
{
    struct judged j = {0};
    struct limpet_post post = {.fields = fields, .field_count = count, .body = limpet_str(body)};
    j.passes = limpet_post_judge(&post, &j.message, &j.ending);
    return j;
}

static struct limpet_field field(const char *name, const char *value)
{
    return (struct limpet_field){limpet_str(name), limpet_str(value)};
}

static void test_a_modern_call(void **state)
{
    (void)state;
    struct limpet_field fields[] = {field("Content-Type", "application/json"),
        field("MCP-Protocol-Version", " 2026-07-28 "), field("mcp-method", "tools/call"),
        field("Mcp-Name", "echo")};
    struct judged j = judge(fields, 4, CALL);
    assert_true(j.passes);
    assert_int_equal(j.message.era, LIMPET_ERA_MODERN);
    assert_string_equal(j.message.method, "tools/call");
    assert_true(is_text(j.message.id, "7"));
    assert_false(j.message.is_initialize || j.message.is_listen || j.message.is_response);
    assert_false(j.message.may_repeat || j.message.is_batch);
    j = judge(fields, 3, CALL);
    assert_false(j.passes);
    assert_string_equal(j.ending.name, "header_mismatch");
    assert_string_equal(j.ending.detail, "Mcp-Name is missing");
    assert_int_equal(j.ending.http_status, 400);
    assert_int_equal(j.ending.jsonrpc_code, -32020);
    assert_true(is_text(j.message.id, "7"));
    assert_string_equal(j.message.method, "");
}

/* So many of them that no head could hold all; the first two already contradict. */
static void test_any_number_of_fields(void **state)
{
    (void)state;
    static struct limpet_field fields[600];
    for (size_t i = 0; i < 600; i++)
        fields[i] = i < 300 ? field("X-Other", "1") : field("Mcp-Method", "ping");
    struct judged j = judge(fields, 600, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    assert_true(j.passes);
    assert_true(j.message.may_repeat);
    fields[0] = field("MCP-Protocol-Version", "2026-07-28");
    j = judge(fields, 600, CALL);
    assert_false(j.passes);
    assert_string_equal(j.ending.detail, "Mcp-Method is given twice");
}

static void test_kinds_of_messages(void **state)
{
    (void)state;
    struct limpet_field old = field("MCP-Protocol-Version", "2025-03-26");
    struct judged j =
        judge(NULL, 0, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"initialize\"}");
    assert_true(j.passes && j.message.is_initialize && is_text(j.message.id, "\"a\""));
    assert_int_equal(j.message.era, LIMPET_ERA_LEGACY);
    j = judge(NULL, 0, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    assert_true(j.passes && j.message.is_response);
    assert_string_equal(j.message.method, "");
    j = judge(&old, 1, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]");
    assert_true(j.passes && j.message.is_batch && !j.message.is_response);
    j = judge(NULL, 0, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/mine\"}");
    assert_true(j.passes && !j.message.id.ptr);
    assert_string_equal(j.message.method, "other");
    struct limpet_field modern[] = {
        field("MCP-Protocol-Version", "2026-07-28"), field("Mcp-Method", "subscriptions/listen")};
    j = judge(modern, 2,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\",\"params\":{" META "}}");
    assert_true(j.passes && j.message.is_listen);
}

static void test_bodies_that_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *body, *name, *id;
    } CASES[] = {
        {"", "bad_json", ""},
        {"{\"id\":5,\"method\":", "bad_json", ""},
        {"7", "bad_message", ""},
        {"{\"id\":5,\"jsonrpc\":\"2.0\"}", "bad_message", "5"},
        {"{\"id\":1.5,\"method\":\"ping\"}", "bad_message", ""},
        {"{\"id\":5,\"method\":\"ping\",\"method\":\"pong\"}", "bad_message", "5"},
        {"[]", "bad_batch", ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct judged j = judge(NULL, 0, CASES[i].body);
        assert_false(j.passes);
        assert_string_equal(j.ending.name, CASES[i].name);
        assert_true(is_text(j.message.id, CASES[i].id));
        assert_int_equal(j.ending.http_status, 400);
    }
    char deep[400];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    assert_string_equal(judge(NULL, 0, deep).ending.detail, "the body is nested too deep");
}

static void test_fields(void **state)
{
    (void)state;
    assert_true(limpet_field_is_name(limpet_str("Mcp-Session-Id")));
    assert_false(limpet_field_is_name(limpet_str("Mcp Session")));
    assert_false(limpet_field_is_name(limpet_str("")));
    assert_true(limpet_field_is_value(limpet_str("a b\tc")));
    assert_false(limpet_field_is_value(limpet_str("a\r\nb")));
    assert_true(limpet_field_is_hop_by_hop(limpet_str("Transfer-Encoding")));
    assert_false(limpet_field_is_hop_by_hop(limpet_str("Mcp-Session-Id")));
}

/* --- the routing decision --------------------------------------------------------------------- */

static void test_words_of_the_decision(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum limpet_method method;
    } METHODS[] = {{"GET", LIMPET_METHOD_GET}, {"POST", LIMPET_METHOD_POST},
        {"DELETE", LIMPET_METHOD_DELETE}, {"OPTIONS", LIMPET_METHOD_OPTIONS},
        {"PUT", LIMPET_METHOD_OTHER}, {"get", LIMPET_METHOD_OTHER}, {"", LIMPET_METHOD_OTHER}};
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++)
        assert_int_equal(limpet_method_of(limpet_str(METHODS[i].name)), METHODS[i].method);
    assert_int_equal(limpet_id_state_of(LIMPET_OK), LIMPET_ID_GOOD);
    assert_int_equal(limpet_id_state_of(LIMPET_EUNKNOWN_KEY), LIMPET_ID_UNKNOWN_KEY);
    assert_int_equal(limpet_id_state_of(LIMPET_EEXPIRED), LIMPET_ID_EXPIRED);
    assert_int_equal(limpet_id_state_of(LIMPET_EFORGED), LIMPET_ID_FORGED);
    assert_int_equal(limpet_id_state_of(LIMPET_ESYNTAX), LIMPET_ID_FORGED);
}

/* Takes the next digit of a number written in mixed bases. */
static uint32_t take(uint32_t *number, uint32_t base)
{
    uint32_t digit = *number % base;
    *number /= base;
    return digit;
}

enum { ALL_FACTS = 5 * 7 * 512, ALL_VIEWS = 4 * 3 * 1024, STEP = 13 };

static void nth_facts(uint32_t n, struct limpet_facts *outer, struct lp_route_facts *inner)
{
    static const enum lp_method METHODS[] = {
        LP_METHOD_OTHER, LP_METHOD_GET, LP_METHOD_POST, LP_METHOD_DELETE, LP_METHOD_OPTIONS};
    outer->method = (enum limpet_method)take(&n, 5);
    outer->id = (enum limpet_id_state)take(&n, 7);
    outer->door = (enum limpet_door)take(&n, 2);
    outer->era = (enum limpet_era)take(&n, 2);
    outer->is_initialize = take(&n, 2);
    outer->is_listen = take(&n, 2);
    outer->id_is_sse = take(&n, 2);
    outer->has_credential = take(&n, 2);
    outer->stream_closed = take(&n, 2);
    outer->was_passed = take(&n, 2);
    outer->is_too_large = take(&n, 2);
    *inner = (struct lp_route_facts){.method = METHODS[outer->method],
        .id = (enum lp_id_state)outer->id,
        .door = (enum lp_door)outer->door,
        .era = (enum lp_era)outer->era,
        .is_initialize = outer->is_initialize,
        .is_listen = outer->is_listen,
        .id_is_sse = outer->id_is_sse,
        .has_credential = outer->has_credential,
        .stream_closed = outer->stream_closed,
        .was_passed = outer->was_passed,
        .is_too_large = outer->is_too_large};
}

static void nth_view(uint32_t n, struct limpet_view *outer, struct lp_route_view *inner)
{
    outer->owner_state = (enum limpet_replica_state)take(&n, 4);
    outer->mints_ids = (enum limpet_knowledge)take(&n, 3);
    outer->owner_known = take(&n, 2);
    outer->owner_unreachable = take(&n, 2);
    outer->any_up = take(&n, 2);
    outer->sse_configured = take(&n, 2);
    outer->sse_on_mcp_path = take(&n, 2);
    outer->challenges = take(&n, 2);
    outer->stopping = take(&n, 2);
    outer->owner_is_other = take(&n, 2);
    outer->replays = take(&n, 2);
    outer->unsettled = take(&n, 2);
    outer->owner = n + 3;
    *inner = (struct lp_route_view){.owner_state = (enum lp_replica_state)outer->owner_state,
        .mints_ids = (enum lp_knowledge)outer->mints_ids,
        .owner_known = outer->owner_known,
        .owner_unreachable = outer->owner_unreachable,
        .any_up = outer->any_up,
        .sse_configured = outer->sse_configured,
        .sse_on_mcp_path = outer->sse_on_mcp_path,
        .challenges = outer->challenges,
        .stopping = outer->stopping,
        .owner_is_other = outer->owner_is_other,
        .replays = outer->replays,
        .unsettled = outer->unsettled,
        .owner = outer->owner};
}

static bool agree(const struct limpet_verdict *outer, const struct lp_verdict *inner)
{
    if ((int)outer->kind != (int)inner->kind || outer->replica != inner->replica)
        return false;
    if (inner->kind != LP_VERDICT_ANSWER)
        return !outer->ending.name;
    const struct lp_reason_info *info = lp_reason_info(inner->reason);
    return strcmp(outer->ending.name, info->name) == 0 &&
        outer->ending.http_status == info->http_status &&
        outer->ending.jsonrpc_code == info->jsonrpc_code &&
        strcmp(outer->ending.sentence, lp_reason_public(inner->reason)) == 0;
}

/* The gateway's own decision, word for word: all facts, each with a thirteenth of all views and
 * another thirteenth than the ones before. */
static void test_the_gateways_own_decision(void **state)
{
    (void)state;
    struct limpet_facts facts;
    struct limpet_view view;
    struct lp_route_facts inner_facts;
    struct lp_route_view inner_view;
    uint32_t kinds_seen = 0;
    for (uint32_t f = 0; f < ALL_FACTS; f++) {
        nth_facts(f, &facts, &inner_facts);
        for (uint32_t v = f % STEP; v < ALL_VIEWS; v += STEP) {
            nth_view(v, &view, &inner_view);
            struct limpet_verdict outer = limpet_route(&facts, &view);
            struct lp_verdict inner = lp_route(&inner_facts, &inner_view);
            if (!agree(&outer, &inner))
                fail_msg("facts %u and view %u differ", f, v);
            kinds_seen |= 1u << outer.kind;
        }
    }
    assert_int_equal(kinds_seen, 127);
}

/* Numbers that are in no list are the first of theirs, not a read behind a table. */
static void test_numbers_that_are_made_up(void **state)
{
    (void)state;
    struct limpet_facts facts = {0};
    struct limpet_view view = {.any_up = true};
    memset(&facts.method, 0x7F, sizeof facts.method);
    assert_string_equal(limpet_route(&facts, &view).ending.name, "method_not_allowed");
    facts.method = LIMPET_METHOD_POST;
    memset(&facts.id, 0x7F, sizeof facts.id);
    memset(&view.mints_ids, 0xFF, sizeof view.mints_ids);
    memset(&view.owner_state, 0xFF, sizeof view.owner_state);
    assert_int_equal(limpet_route(&facts, &view).kind, LIMPET_ANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_key_files),
        cmocka_unit_test(test_bad_key_files),
        cmocka_unit_test(test_a_ticket_says_what_was_put_in),
        cmocka_unit_test(test_what_does_not_open),
        cmocka_unit_test(test_what_is_not_sealed),
        cmocka_unit_test(test_owner_ids),
        cmocka_unit_test(test_the_longest_owner_id_has_room),
        cmocka_unit_test(test_owner_sources),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_hop_marks),
        cmocka_unit_test(test_the_longest_mark_has_room),
        cmocka_unit_test(test_a_modern_call),
        cmocka_unit_test(test_any_number_of_fields),
        cmocka_unit_test(test_kinds_of_messages),
        cmocka_unit_test(test_bodies_that_are_none),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_words_of_the_decision),
        cmocka_unit_test(test_the_gateways_own_decision),
        cmocka_unit_test(test_numbers_that_are_made_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
