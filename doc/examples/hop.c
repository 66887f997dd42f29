/* A request that was already judged, passed on from the process m1 to m2, which owns its session;
 * and what m2 makes of the mark that came with it (limpet_hop(3)). */
#include <limpet.h>
#include <stdio.h>

/* What both processes are given: a line of "limpet key new". */
static const char KEY_FILE[] = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";

static const char *sentence(enum limpet_hop_state state)
{
    switch (state) {
    case LIMPET_HOP_GOOD:
        return "serve it, and pass it on to nobody";
    case LIMPET_HOP_OTHER_TARGET:
        return "404, somebody has a wrong list";
    case LIMPET_HOP_STALE:
    case LIMPET_HOP_REPLAYED:
        return "403";
    case LIMPET_HOP_NO_MEMORY:
        return "503";
    case LIMPET_HOP_FORGED:
        break;
    }
    return "an ordinary request";
}

int main(void)
{
    struct limpet_keyring *ring = NULL;
    struct limpet_hops *hops = NULL;
    struct limpet_hop hop = LIMPET_ZERO;
    unsigned char nonce[LIMPET_HOP_NONCE_BYTES] = LIMPET_ZERO; /* random in a real program */
    char mark[LIMPET_HOP_ROOM];
    size_t len = 0;
    uint32_t line = 0;
    if (limpet_keyring_new(NULL, limpet_str(KEY_FILE), &ring, &line) ||
        limpet_hops_new(NULL, &hops))
        return 1;

    hop.method = limpet_str("POST");
    hop.path = limpet_str("/mcp?tenant=a");
    hop.session = limpet_str("m2.90ab12cd");
    hop.target = limpet_str("m2");
    hop.wall_ms = 1800000000000ull; /* now */
    if (limpet_hop_sign(ring, &hop, nonce, mark, &len))
        return 1;
    printf("Limpet-Hop: %.6s... (%u bytes)\n", mark, (unsigned)len);

    struct limpet_span came = limpet_bytes(mark, len);
    hop.session = limpet_str("m2.another");
    printf("for another session: %s\n", sentence(limpet_hop_judge(hops, ring, &hop, came)));
    hop.session = limpet_str("m2.90ab12cd");
    printf("as it came: %s\n", sentence(limpet_hop_judge(hops, ring, &hop, came)));
    printf("again: %s\n", sentence(limpet_hop_judge(hops, ring, &hop, came)));
    hop.target = limpet_str("m3");
    printf("at m3: %s\n", sentence(limpet_hop_judge(hops, ring, &hop, came)));

    limpet_hops_free(hops);
    limpet_keyring_free(ring);
    return 0;
}
