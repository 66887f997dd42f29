/* The keys that seal tickets. The first key seals, every key opens (requirements [G3]).
 *
 * From each 32-byte key three are derived (BLAKE2b keyed hash): one for the AEAD, one for hashing
 * replica names, one for signing hops (mcp/hop.h), and a public 4-byte key id by which a ticket
 * says who sealed it. */
#ifndef LP_MCP_KEYRING_H
#define LP_MCP_KEYRING_H

#include "base/assert.h"
#include "base/error.h"
#include "base/map.h"
#include "base/span.h"

enum { LP_KEY_BYTES = 32, LP_KEY_ID_BYTES = 4, LP_KEYRING_MAX = 16, LP_REPLICA_HASH_BYTES = 8 };

struct lp_ring_key {
    unsigned char id[LP_KEY_ID_BYTES];
    unsigned char aead[LP_KEY_BYTES];
    unsigned char naming[LP_KEY_BYTES];
    unsigned char hop[LP_KEY_BYTES];
};

struct lp_keyring {
    uint32_t count;
    struct lp_ring_key keys[LP_KEYRING_MAX];
};

/* Parses a key file: one base64 (standard, padded) 32-byte key a line; empty lines and lines that
 * begin with '#' are skipped; CRLF is fine. LP_ESYNTAX or LP_ELIMIT with the 1-based line at
 * *ret_line; LP_ENOT_FOUND when there is no key at all; LP_EEXISTS when a key is given twice. */
LP_MUST int lp_keyring_parse(struct lp_span text, struct lp_keyring *ret, uint32_t *ret_line);

/* A ring of one key: 32 random bytes, which are wiped. */
void lp_keyring_make(unsigned char key[LP_KEY_BYTES], struct lp_keyring *ret);

/* The line (with LF) for a new key made of 32 random bytes. `room` holds at least 46 bytes. */
size_t lp_keyring_format(const unsigned char key[LP_KEY_BYTES], char room[46]);

/* The key id as 8 hex digits and a zero byte. */
void lp_ring_key_id_hex(const struct lp_ring_key *key, char room[9]);

/* Keyed hash of a replica's name under one key. */
void lp_ring_key_hash_name(const struct lp_ring_key *key, struct lp_span name,
    unsigned char ret_hash[LP_REPLICA_HASH_BYTES]);

/* 128 bits that stand for a session id where the id itself is no secret note (mcp/owner.h). */
struct lp_key lp_ring_key_hash_id(const struct lp_ring_key *key, struct lp_span id);

/* Wipes the keys. */
void lp_keyring_fini(struct lp_keyring *ring);

#endif
