/* Key rings and tickets as the public header has them (limpet.h; mcp/keyring.h, mcp/ticket.h).
 *
 * What the rooms below assert of their caller is checked here, because this caller is somebody
 * else's program. */
#include "mcp/ticket.h"
#include "lib/glue.h"

_Static_assert((int)LIMPET_KEY_BYTES == LP_KEY_BYTES, "");
_Static_assert((int)LIMPET_KEYS_MAX == LP_KEYRING_MAX, "");
_Static_assert((int)LIMPET_NONCE_BYTES == LP_TICKET_NONCE_BYTES, "");
_Static_assert((int)LIMPET_TICKET_ROOM == LP_TICKET_TEXT_MAX, "");
_Static_assert((int)LIMPET_UPSTREAM_ID_MAX == LP_TICKET_UPSTREAM_ID_MAX, "");
_Static_assert((int)LIMPET_TICKET_COOKIES_MAX == LP_TICKET_COOKIES_MAX, "");
_Static_assert((int)LIMPET_TICKET_HTTP == LP_TICKET_HTTP, "");
_Static_assert((int)LIMPET_TICKET_SSE == LP_TICKET_SSE, "");
_Static_assert((int)LIMPET_TICKET_TASK == LP_TICKET_TASK, "");
_Static_assert((int)LIMPET_TICKET_STATE == LP_TICKET_STATE, "");
_Static_assert(sizeof((struct limpet_ticket *)0)->replica == LP_REPLICA_HASH_BYTES, "");

/* --- keys ------------------------------------------------------------------------------------- */

void limpet_key_write(const unsigned char key[LIMPET_KEY_BYTES], char room[LIMPET_KEY_ROOM])
{
    (void)lp_keyring_format(key, room);
}

int limpet_keyring_new(const struct limpet_alloc *alloc, struct limpet_span key_file,
    struct limpet_keyring **ret_ring, uint32_t *ret_line)
{
    struct limpet_keyring *ring = lp_lib_new(alloc, sizeof *ring);
    if (!ring)
        return LIMPET_ENOMEM;
    int err = lp_keyring_parse(lp_lib_in(key_file), &ring->ring, ret_line);
    if (err)
        lp_lib_free(ring);
    else
        *ret_ring = ring;
    return err;
}

void limpet_keyring_free(struct limpet_keyring *ring)
{
    if (ring)
        lp_keyring_fini(&ring->ring);
    lp_lib_free(ring);
}

size_t limpet_keyring_count(const struct limpet_keyring *ring)
{
    return ring->ring.count;
}

int limpet_keyring_id(
    const struct limpet_keyring *ring, size_t index, char room[LIMPET_KEY_ID_ROOM])
{
    if (index >= ring->ring.count)
        return LIMPET_ENOT_FOUND;
    lp_ring_key_id_hex(&ring->ring.keys[index], room);
    return LIMPET_OK;
}

/* --- tickets ---------------------------------------------------------------------------------- */

static bool is_kind(enum limpet_ticket_kind kind)
{
    return kind == LIMPET_TICKET_HTTP || kind == LIMPET_TICKET_SSE || kind == LIMPET_TICKET_TASK ||
        kind == LIMPET_TICKET_STATE;
}

static bool is_context(const struct limpet_ticket_context *context)
{
    return is_kind(context->kind) && context->server.len <= LIMPET_SERVER_NAME_MAX;
}

static struct lp_ticket_scope scope_of(const struct limpet_ticket_context *context)
{
    return (struct lp_ticket_scope){
        .kind = (enum lp_ticket_kind)context->kind, .server = lp_lib_in(context->server)};
}

static struct lp_ticket_context context_of(
    const struct limpet_ticket_context *context, const struct lp_ticket_scope *scope)
{
    return (struct lp_ticket_context){.ring = &context->ring->ring,
        .scope = scope,
        .wall_ms = context->wall_ms,
        .age_max_ms = context->age_max_ms};
}

int limpet_ticket_seal(const struct limpet_ticket_context *context, const struct limpet_note *note,
    const unsigned char nonce[LIMPET_NONCE_BYTES], char *room, size_t *ret_len)
{
    if (!is_context(context))
        return LIMPET_ERANGE;
    struct lp_ticket_scope scope = scope_of(context);
    struct lp_ticket_context inner = context_of(context, &scope);
    struct lp_ticket ticket = {.issued_ms = note->issued_ms,
        .has_principal = note->has_principal,
        .cookies = lp_lib_in(note->cookies),
        .upstream_id = lp_lib_in(note->upstream_id)};
    memcpy(ticket.principal, note->principal, sizeof ticket.principal);
    lp_ring_key_hash_name(&inner.ring->keys[0], lp_lib_in(note->replica), ticket.replica);
    return lp_ticket_seal(&inner, &ticket, nonce, room, ret_len);
}

static void write_number(unsigned char room[8], uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        room[i] = (unsigned char)value;
}

int limpet_ticket_open(const struct limpet_ticket_context *context, struct limpet_span text,
    char *room, struct limpet_ticket *ret_ticket)
{
    struct lp_ticket ticket;
    if (!is_context(context))
        return LIMPET_ERANGE;
    struct lp_ticket_scope scope = scope_of(context);
    struct lp_ticket_context inner = context_of(context, &scope);
    int err = lp_ticket_open(&inner, lp_lib_in(text), room, &ticket);
    if (err)
        return err;
    *ret_ticket = (struct limpet_ticket){.upstream_id = lp_lib_out(ticket.upstream_id),
        .cookies = lp_lib_out(ticket.cookies),
        .issued_ms = ticket.issued_ms,
        .has_principal = ticket.has_principal,
        .key_index = ticket.ring_index};
    memcpy(ret_ticket->principal, ticket.principal, sizeof ticket.principal);
    memcpy(ret_ticket->replica, ticket.replica, sizeof ticket.replica);
    write_number(ret_ticket->session, ticket.key.hi);
    write_number(ret_ticket->session + 8, ticket.key.lo);
    return LIMPET_OK;
}

bool limpet_ticket_names(const struct limpet_keyring *ring, const struct limpet_ticket *ticket,
    struct limpet_span replica)
{
    unsigned char hash[LP_REPLICA_HASH_BYTES];
    if (ticket->key_index >= ring->ring.count)
        return false;
    lp_ring_key_hash_name(&ring->ring.keys[ticket->key_index], lp_lib_in(replica), hash);
    return memcmp(hash, ticket->replica, sizeof hash) == 0;
}
