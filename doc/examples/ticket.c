/* A session id that says who owns the session: sealed by one gateway, opened by another one that
 * has the same key file (limpet_ticket(3)). */
#include <limpet.h>
#include <stdio.h>

/* In life: 32 and 24 bytes of getrandom(2), and the text comes from a file. */
static const unsigned char KEY[LIMPET_KEY_BYTES] = {1, 2, 3};
static const unsigned char NONCE[LIMPET_NONCE_BYTES] = {4, 5, 6};

static int fail(const char *what, int error)
{
    fprintf(stderr, "%s: %s\n", what, limpet_error_sentence(error));
    return 1;
}

int main(void)
{
    char key_file[LIMPET_KEY_ROOM], text[LIMPET_TICKET_ROOM], room[LIMPET_TICKET_ROOM];
    struct limpet_keyring *ring = NULL;
    uint32_t line = 0;
    size_t len = 0;

    limpet_key_write(KEY, key_file);
    int err = limpet_keyring_new(NULL, limpet_str(key_file), &ring, &line);
    if (err)
        return fail("the key file", err);

    struct limpet_ticket_context context = LIMPET_ZERO;
    context.ring = ring;
    context.kind = LIMPET_TICKET_HTTP;
    context.server = limpet_str("tools");
    context.wall_ms = 1800000000000;
    context.age_max_ms = 30ull * 24 * 3600 * 1000;

    /* The answer to initialize came from replica-b with its own session id. */
    struct limpet_note note = LIMPET_ZERO;
    note.replica = limpet_str("replica-b");
    note.upstream_id = limpet_str("7d6f3c1e");
    note.issued_ms = context.wall_ms;
    err = limpet_ticket_seal(&context, &note, NONCE, text, &len);
    if (err)
        return fail("sealing", err);

    /* Any later request has the ticket in Mcp-Session-Id. */
    struct limpet_ticket ticket = LIMPET_ZERO;
    err = limpet_ticket_open(&context, limpet_bytes(text, len), room, &ticket);
    if (err)
        return fail("opening", err);
    static const char *const FLEET[] = {"replica-a", "replica-b", "replica-c"};
    for (size_t i = 0; i < sizeof FLEET / sizeof *FLEET; i++)
        if (limpet_ticket_names(ring, &ticket, limpet_str(FLEET[i])))
            printf(
                "to %s as %.*s\n", FLEET[i], (int)ticket.upstream_id.len, ticket.upstream_id.ptr);

    text[len - 1] = text[len - 1] == 'A' ? 'Q' : 'A';
    err = limpet_ticket_open(&context, limpet_bytes(text, len), room, &ticket);
    printf("one letter changed: %s\n", limpet_error_name(err));
    limpet_keyring_free(ring);
    return 0;
}
