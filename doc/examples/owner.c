/* Session ids that name their owner, for a server with several processes behind a platform's
 * balancer: what does the process m1 do with each of these ids? (limpet_owner(3)) */
#include <limpet.h>
#include <stdio.h>

static struct limpet_span own_id(const struct limpet_owner *self)
{
    return limpet_bytes(self->text, self->len);
}

static bool is_same(struct limpet_span a, struct limpet_span b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

static void judge(const struct limpet_owner *self, const char *id, bool was_passed)
{
    struct limpet_span owner, rest;
    char value[LIMPET_REPLAY_ROOM];
    size_t len;
    struct limpet_facts facts = LIMPET_ZERO;
    struct limpet_view view = LIMPET_ZERO;
    bool is_owned = limpet_owner_split(limpet_str(id), &owner, &rest) == LIMPET_OK;

    facts.method = LIMPET_METHOD_POST;
    facts.id = is_owned ? LIMPET_ID_GOOD : LIMPET_ID_NO_OWNER;
    facts.was_passed = was_passed; /* fly-replay-src or fly-replay-failed came along */
    view.any_up = true;
    view.replays = true;
    view.owner_is_other = is_owned && !is_same(owner, own_id(self));
    view.owner_known = !view.owner_is_other;
    struct limpet_verdict verdict = limpet_route(&facts, &view);
    if (verdict.kind == LIMPET_FORWARD)
        printf("the session %.*s of this process, or 404\n", (int)rest.len, rest.ptr);
    else if (verdict.kind == LIMPET_REPLAY && !limpet_replay_value(owner, false, value, &len))
        printf("204, fly-replay: %s\n", value);
    else
        printf("%d %s (%s)\n", verdict.ending.http_status, verdict.ending.sentence,
            verdict.ending.name);
}

int main(void)
{
    struct limpet_owner self;
    struct limpet_owner_sources sources = LIMPET_ZERO;
    char id[LIMPET_OWNER_ROOM];
    size_t len = 0;
    sources.configured = limpet_str("m1");
    sources.machine = limpet_str(NULL); /* getenv("FLY_MACHINE_ID") */
    if (limpet_owner_choose(&sources, &self)) {
        fprintf(stderr, "the owner id must be 1 to 32 letters and digits\n");
        return 1;
    }
    if (limpet_owner_mint(own_id(&self), limpet_str("7d6f3c1e"), id, &len))
        return 1;
    printf("a new session: %.*s\n", (int)len, id);
    judge(&self, "m1.7d6f3c1e", false);
    judge(&self, "m2.90ab12cd", false);
    judge(&self, "m2.90ab12cd", true);
    judge(&self, "m2;x=y.90ab12cd", false);
    return 0;
}
