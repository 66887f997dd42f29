/* The heart of a proxy: from the session id of a request to the replica that gets it
 * (limpet_ticket(3) and limpet_route(3)). */
#include <limpet.h>
#include <stdio.h>

#define NOW 1800000000000

static const char *const FLEET[] = {"replica-a", "replica-b"};

struct proxy {
    struct limpet_keyring *ring;
    struct limpet_ticket_context context;
};

static struct limpet_verdict decide(const struct proxy *proxy, struct limpet_span session_id)
{
    struct limpet_facts facts = LIMPET_ZERO;
    struct limpet_view view = LIMPET_ZERO;
    struct limpet_ticket ticket;
    char room[LIMPET_TICKET_ROOM];

    int err = limpet_ticket_open(&proxy->context, session_id, room, &ticket);
    facts.method = LIMPET_METHOD_POST;
    facts.id = limpet_id_state_of(err);
    view.any_up = true;
    for (uint32_t i = 0; i < 2 && !err; i++)
        if (limpet_ticket_names(proxy->ring, &ticket, limpet_str(FLEET[i]))) {
            view.owner_known = true;
            view.owner = i;
        }
    return limpet_route(&facts, &view);
}

static void show(const struct proxy *proxy, struct limpet_span session_id)
{
    struct limpet_verdict verdict = decide(proxy, session_id);
    if (verdict.kind == LIMPET_FORWARD)
        printf("to %s\n", FLEET[verdict.replica]);
    else
        printf("HTTP %d: %s\n", verdict.ending.http_status, verdict.ending.sentence);
}

int main(void)
{
    static const unsigned char KEY[LIMPET_KEY_BYTES] = {1, 2, 3};     /* in life: random, */
    static const unsigned char NONCE[LIMPET_NONCE_BYTES] = {4, 5, 6}; /* and each time anew */
    char key_file[LIMPET_KEY_ROOM], text[LIMPET_TICKET_ROOM];
    struct proxy proxy = LIMPET_ZERO;
    struct limpet_note note = LIMPET_ZERO;
    uint32_t line;
    size_t len = 0;

    limpet_key_write(KEY, key_file);
    if (limpet_keyring_new(NULL, limpet_str(key_file), &proxy.ring, &line))
        return 1;
    proxy.context.ring = proxy.ring;
    proxy.context.kind = LIMPET_TICKET_HTTP;
    proxy.context.server = limpet_str("tools");
    proxy.context.wall_ms = NOW;
    proxy.context.age_max_ms = 1000;
    note.replica = limpet_str("replica-b");
    note.upstream_id = limpet_str("7d6f3c1e");
    note.issued_ms = NOW;
    if (limpet_ticket_seal(&proxy.context, &note, NONCE, text, &len) == LIMPET_OK)
        show(&proxy, limpet_bytes(text, len));
    show(&proxy, limpet_str("an id of somebody else"));
    limpet_keyring_free(proxy.ring);
    return 0;
}
