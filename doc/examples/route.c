/* Where each request of a session goes while the replica that owns it comes and goes
 * (limpet_route(3)). */
#include <limpet.h>
#include <stdio.h>

static void show(const char *what, const struct limpet_facts *facts, const struct limpet_view *view)
{
    struct limpet_verdict verdict = limpet_route(facts, view);
    switch (verdict.kind) {
    case LIMPET_FORWARD:
        printf("%s: to replica %u\n", what, (unsigned)verdict.replica);
        break;
    case LIMPET_NEW_SESSION:
        printf("%s: to the replica with the fewest sessions\n", what);
        break;
    case LIMPET_NEW_STREAM:
    case LIMPET_ANY:
        printf("%s: to any replica\n", what);
        break;
    case LIMPET_FORWARD_PEER:
    case LIMPET_REPLAY: /* only where ids name their owners in the open */
        break;
    case LIMPET_ANSWER:
        printf("%s: HTTP %d, %d %s (log: %s)\n", what, verdict.ending.http_status,
            verdict.ending.jsonrpc_code, verdict.ending.sentence, verdict.ending.name);
        break;
    }
}

int main(void)
{
    struct limpet_facts facts = LIMPET_ZERO;
    struct limpet_view view = LIMPET_ZERO;
    view.any_up = true;
    view.mints_ids = LIMPET_YES;

    facts.method = limpet_method_of(limpet_str("POST"));
    facts.is_initialize = true;
    show("initialize", &facts, &view);

    facts.is_initialize = false;
    show("no id", &facts, &view);

    facts.id = limpet_id_state_of(LIMPET_OK); /* what limpet_ticket_open returned */
    view.owner_known = true;
    view.owner = 2;
    view.owner_state = LIMPET_REPLICA_UP;
    show("its owner is up", &facts, &view);

    view.owner_state = LIMPET_REPLICA_GONE;
    show("its owner is gone", &facts, &view);

    facts.id = limpet_id_state_of(LIMPET_EFORGED);
    show("a forged id", &facts, &view);
    return 0;
}
