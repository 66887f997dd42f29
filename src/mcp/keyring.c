/* The key ring (mcp/keyring.h): from the text of a key file to derived keys.
 *
 * The file's keys themselves are not kept: what seals, what hashes names, what signs hops and what
 * may be printed are outputs of a keyed hash with different labels, so that none tells anything
 * about another. Reading the file and its permissions are the shell's business; wiping is ours
 * (requirements [G3]).
 */
#include "mcp/keyring.h"

#include <sodium.h>

#include "wire/base64url.h"

enum { KEY_TEXT_LEN = 44, HASH_MIN = crypto_generichash_BYTES_MIN };

/* Length-limited keyed BLAKE2b: libsodium makes no hash shorter than 16 bytes, so short ones are
 * cut. */
static void keyed_hash(
    const unsigned char key[LP_KEY_BYTES], struct lp_span text, unsigned char *room, size_t n)
{
    unsigned char full[LP_KEY_BYTES];
    size_t full_len = n < HASH_MIN ? HASH_MIN : n;
    LP_ASSERT(full_len <= sizeof full);
    int err = crypto_generichash(
        full, full_len, (const unsigned char *)text.ptr, text.len, key, LP_KEY_BYTES);
    LP_ASSERT(err == 0);
    memcpy(room, full, n);
    sodium_memzero(full, sizeof full);
}

static void derive(const unsigned char key[LP_KEY_BYTES], struct lp_ring_key *ret)
{
    keyed_hash(key, LP_SPAN("limpet ring 1: key id"), ret->id, sizeof ret->id);
    keyed_hash(key, LP_SPAN("limpet ring 1: tickets"), ret->aead, sizeof ret->aead);
    keyed_hash(key, LP_SPAN("limpet ring 1: replica names"), ret->naming, sizeof ret->naming);
    keyed_hash(key, LP_SPAN("limpet ring 1: hops"), ret->hop, sizeof ret->hop);
}

static bool holds(const struct lp_keyring *ring, const struct lp_ring_key *key)
{
    for (uint32_t i = 0; i < ring->count; i++)
        if (sodium_memcmp(ring->keys[i].aead, key->aead, sizeof key->aead) == 0)
            return true;
    return false;
}

static int add_line(struct lp_keyring *ring, struct lp_span line)
{
    unsigned char key[LP_KEY_BYTES];
    struct lp_ring_key derived;
    size_t len = 0;
    int err = LP_OK;
    if (lp_base64_decode(line, (char *)key, sizeof key, &len) || len != sizeof key)
        err = LP_ESYNTAX;
    if (!err) {
        derive(key, &derived);
        if (holds(ring, &derived))
            err = LP_EEXISTS;
        else if (ring->count == LP_KEYRING_MAX)
            err = LP_ELIMIT;
        else
            ring->keys[ring->count++] = derived;
        sodium_memzero(&derived, sizeof derived);
    }
    sodium_memzero(key, sizeof key);
    return err;
}

int lp_keyring_parse(struct lp_span text, struct lp_keyring *ret, uint32_t *ret_line)
{
    struct lp_keyring ring = {0};
    uint32_t line_no = 0;
    int err = LP_OK;
    while (text.len && !err) {
        struct lp_span line = lp_span_split(text, '\n', &text);
        line_no++;
        if (lp_span_ends(line, LP_SPAN("\r")))
            line.len--;
        line = lp_span_trim(line);
        if (line.len && line.ptr[0] != '#')
            err = add_line(&ring, line);
    }
    if (err)
        *ret_line = line_no;
    else if (ring.count == 0)
        err = LP_ENOT_FOUND;
    else
        *ret = ring;
    lp_keyring_fini(&ring);
    return err;
}

void lp_keyring_make(unsigned char key[LP_KEY_BYTES], struct lp_keyring *ret)
{
    *ret = (struct lp_keyring){.count = 1};
    derive(key, &ret->keys[0]);
    sodium_memzero(key, LP_KEY_BYTES);
}

size_t lp_keyring_format(const unsigned char key[LP_KEY_BYTES], char room[46])
{
    size_t len = lp_base64_encode(lp_span((const char *)key, LP_KEY_BYTES), room);
    LP_ASSERT(len == KEY_TEXT_LEN);
    room[len++] = '\n';
    room[len] = '\0';
    return len;
}

void lp_ring_key_id_hex(const struct lp_ring_key *key, char room[9])
{
    static const char DIGITS[] = "0123456789abcdef";
    for (size_t i = 0; i < LP_KEY_ID_BYTES; i++) {
        room[2 * i] = DIGITS[key->id[i] >> 4];
        room[2 * i + 1] = DIGITS[key->id[i] & 15];
    }
    room[2 * LP_KEY_ID_BYTES] = '\0';
}

void lp_ring_key_hash_name(const struct lp_ring_key *key, struct lp_span name,
    unsigned char ret_hash[LP_REPLICA_HASH_BYTES])
{
    keyed_hash(key->naming, name, ret_hash, LP_REPLICA_HASH_BYTES);
}

struct lp_key lp_ring_key_hash_id(const struct lp_ring_key *key, struct lp_span id)
{
    struct lp_key hash; /* as long as a whole key, so it has nothing in common with a name's */
    unsigned char full[LP_KEY_BYTES];
    keyed_hash(key->naming, id, full, sizeof full);
    memcpy(&hash, full, sizeof hash);
    return hash;
}

void lp_keyring_fini(struct lp_keyring *ring)
{
    sodium_memzero(ring, sizeof *ring);
}
