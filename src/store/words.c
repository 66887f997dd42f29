/* The words for outcomes and troubles (store/store.h), made from their lists. */
#include "base/assert.h"
#include "store/store.h"

static const char *const OUTCOME_NAMES[] = {
#define X(name, word, sentence) #name,
    LP_STORE_OUTCOMES(X)
#undef X
};

static const char *const OUTCOME_SENTENCES[] = {
#define X(name, word, sentence) sentence,
    LP_STORE_OUTCOMES(X)
#undef X
};

static const char *const TROUBLE_NAMES[] = {
#define X(name, sentence) #name,
    LP_STORE_TROUBLES(X)
#undef X
};

const char *lp_store_outcome_name(enum lp_store_outcome outcome)
{
    return OUTCOME_NAMES[outcome];
}

const char *lp_store_outcome_sentence(enum lp_store_outcome outcome)
{
    return OUTCOME_SENTENCES[outcome];
}

const char *lp_store_trouble_name(enum lp_store_trouble trouble)
{
    return TROUBLE_NAMES[trouble];
}
