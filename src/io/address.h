/* Socket addresses as values, and their text forms. Used inside this room only. */
#ifndef LP_IO_ADDRESS_H
#define LP_IO_ADDRESS_H

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/span.h"

enum {
    LP_ADDRESS_TEXT_MAX = 128, /* "unix:" and the longest path, zero byte included */
    LP_ADDRESSES_MAX = 8,      /* of one name; further ones are not looked at */
};

struct lp_address {
    socklen_t len;
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    } u;
};

/* IPv4 or bare IPv6; LP_ENOT_FOUND when `host` is neither, that is: a name. */
LP_MUST int lp_address_numeric(struct lp_span host, uint16_t port, struct lp_address *ret);

/* LP_ETOO_LONG, LP_ERANGE (empty, or a zero byte in it). */
LP_MUST int lp_address_unix(struct lp_span path, struct lp_address *ret);

/* Takes the first LP_ADDRESSES_MAX of a resolver's list; how many it took. */
uint32_t lp_address_list(const struct addrinfo *list, uint16_t port, struct lp_address *ret);

/* "192.0.2.7:1234", "[::1]:99", "unix:/path" or "unix:"; how many characters. */
size_t lp_address_text(const struct lp_address *address, char room[LP_ADDRESS_TEXT_MAX]);

uint16_t lp_address_port(const struct lp_address *address); /* 0 for unix */
void lp_address_set_port(struct lp_address *address, uint16_t port);

bool lp_address_is_loopback(const struct lp_address *address);
/* Reachable from anywhere, as far as its number tells: not loopback, private (RFC 1918, 4193),
 * shared (RFC 6598), link-local, multicast or unspecified. */
bool lp_address_is_public(const struct lp_address *address); /* unix counts as loopback */
bool lp_address_is_wildcard(const struct lp_address *address);

#endif
