/* Socket addresses (io/address.h). Decides how an address is written and which are loopback; leaves
 * the asking of resolvers to dial.c (while running) and listener.c (at start). IPv6 in text stands
 * in brackets (RFC 3986 3.2.2). */
#include "io/address.h"

#include <arpa/inet.h>
#include <stdio.h>

int lp_address_numeric(struct lp_span host, uint16_t port, struct lp_address *ret)
{
    char text[INET6_ADDRSTRLEN];
    if (host.len == 0 || host.len >= sizeof text)
        return LP_ENOT_FOUND;
    memcpy(text, host.ptr, host.len);
    text[host.len] = 0;
    struct lp_address address = {0};
    if (inet_pton(AF_INET, text, &address.u.in.sin_addr) == 1) {
        address.len = sizeof address.u.in;
        address.u.in.sin_family = AF_INET;
    } else if (inet_pton(AF_INET6, text, &address.u.in6.sin6_addr) == 1) {
        address.len = sizeof address.u.in6;
        address.u.in6.sin6_family = AF_INET6;
    } else {
        return LP_ENOT_FOUND;
    }
    lp_address_set_port(&address, port);
    *ret = address;
    return LP_OK;
}

int lp_address_unix(struct lp_span path, struct lp_address *ret)
{
    struct lp_address address = {.len = sizeof address.u.un};
    if (path.len == 0 || lp_span_find(path, 0) < path.len)
        return LP_ERANGE;
    if (path.len >= sizeof address.u.un.sun_path)
        return LP_ETOO_LONG;
    address.u.un.sun_family = AF_UNIX;
    memcpy(address.u.un.sun_path, path.ptr, path.len);
    *ret = address;
    return LP_OK;
}

uint32_t lp_address_list(const struct addrinfo *list, uint16_t port, struct lp_address *ret)
{
    uint32_t count = 0;
    for (; list && count < LP_ADDRESSES_MAX; list = list->ai_next) {
        if (list->ai_family != AF_INET && list->ai_family != AF_INET6)
            continue;
        struct lp_address *address = &ret[count++];
        *address = (struct lp_address){.len = list->ai_addrlen};
        memcpy(&address->u, list->ai_addr, list->ai_addrlen);
        lp_address_set_port(address, port);
    }
    return count;
}

size_t lp_address_text(const struct lp_address *address, char room[LP_ADDRESS_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN] = "";
    int n = 0;
    switch (address->u.any.sa_family) {
    case AF_INET:
        (void)inet_ntop(AF_INET, &address->u.in.sin_addr, host, sizeof host);
        n = snprintf(room, LP_ADDRESS_TEXT_MAX, "%s:%u", host, lp_address_port(address));
        break;
    case AF_INET6:
        (void)inet_ntop(AF_INET6, &address->u.in6.sin6_addr, host, sizeof host);
        n = snprintf(room, LP_ADDRESS_TEXT_MAX, "[%s]:%u", host, lp_address_port(address));
        break;
    default:
        /* A client's unix socket has no name: only the family is set then. */
        n = snprintf(room, LP_ADDRESS_TEXT_MAX, "unix:%s",
            address->len > sizeof(sa_family_t) ? address->u.un.sun_path : "");
    }
    LP_ASSERT(n > 0 && n < LP_ADDRESS_TEXT_MAX);
    return (size_t)n;
}

uint16_t lp_address_port(const struct lp_address *address)
{
    switch (address->u.any.sa_family) {
    case AF_INET:
        return ntohs(address->u.in.sin_port);
    case AF_INET6:
        return ntohs(address->u.in6.sin6_port);
    default:
        return 0;
    }
}

void lp_address_set_port(struct lp_address *address, uint16_t port)
{
    if (address->u.any.sa_family == AF_INET)
        address->u.in.sin_port = htons(port);
    else if (address->u.any.sa_family == AF_INET6)
        address->u.in6.sin6_port = htons(port);
}

bool lp_address_is_loopback(const struct lp_address *address)
{
    switch (address->u.any.sa_family) {
    case AF_INET:
        return ntohl(address->u.in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(&address->u.in6.sin6_addr);
    default:
        return true;
    }
}

static bool is_public_ipv4(uint32_t ip)
{
    static const struct {
        uint32_t first;
        uint32_t bits;
    } KEPT[] = {{0x00000000, 8}, {0x0A000000, 8}, {0x64400000, 10}, {0x7F000000, 8},
        {0xA9FE0000, 16}, {0xAC100000, 12}, {0xC0A80000, 16}, {0xE0000000, 3}};
    for (size_t i = 0; i < sizeof KEPT / sizeof *KEPT; i++)
        if ((ip ^ KEPT[i].first) >> (32 - KEPT[i].bits) == 0)
            return false;
    return true;
}

bool lp_address_is_public(const struct lp_address *address)
{
    const struct in6_addr *ip6 = &address->u.in6.sin6_addr;
    uint32_t tail;
    switch (address->u.any.sa_family) {
    case AF_INET:
        return is_public_ipv4(ntohl(address->u.in.sin_addr.s_addr));
    case AF_INET6:
        memcpy(&tail, ip6->s6_addr + 12, sizeof tail);
        if (IN6_IS_ADDR_V4MAPPED(ip6))
            return is_public_ipv4(ntohl(tail));
        return !IN6_IS_ADDR_LOOPBACK(ip6) && !IN6_IS_ADDR_UNSPECIFIED(ip6) &&
            !IN6_IS_ADDR_LINKLOCAL(ip6) && !IN6_IS_ADDR_MULTICAST(ip6) &&
            (ip6->s6_addr[0] & 0xFE) != 0xFC;
    default:
        return false;
    }
}

bool lp_address_is_wildcard(const struct lp_address *address)
{
    switch (address->u.any.sa_family) {
    case AF_INET:
        return address->u.in.sin_addr.s_addr == htonl(INADDR_ANY);
    case AF_INET6:
        return IN6_IS_ADDR_UNSPECIFIED(&address->u.in6.sin6_addr);
    default:
        return false;
    }
}
