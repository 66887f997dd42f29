/* The command line of `limpet gateway` and `limpet sidecar` -> value tree, by the key table:
 * "--flag value",
 * "--flag=value", "--" before words that are no flags, and URLs. A flag with a list may be given
 * again; any other only once. What a value means is value.c's, as for the file. */
#include "conf/conf_priv.h"

struct words {
    int argc;
    const char *const *argv;
    int next;
    bool only_urls;
};

struct word {
    const struct lp_conf_key *row; /* NULL: no such flag, or a URL */
    struct lp_span flag;           /* as written; empty for a URL */
    struct lp_span value;
    bool has_value;
};

static bool looks_like_flag(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

static void take_value(struct words *words, struct word *word)
{
    if (!word->row || word->has_value)
        return;
    if (word->row->type == LP_TYPE_SWITCH) {
        word->value = LP_SPAN("true");
        word->has_value = true;
    } else if (words->next < words->argc &&
        !lp_span_starts(lp_span_str(words->argv[words->next]), LP_SPAN("--"))) {
        word->value = lp_span_str(words->argv[words->next++]);
        word->has_value = true;
    }
}

static bool next_word(struct words *words, struct word *ret)
{
    *ret = (struct word){0};
    if (words->next < words->argc && !words->only_urls &&
        lp_span_eq(lp_span_str(words->argv[words->next]), LP_SPAN("--"))) {
        words->only_urls = true;
        words->next++;
    }
    if (words->next >= words->argc)
        return false;
    const char *text = words->argv[words->next++];
    if (words->only_urls || !looks_like_flag(text)) {
        ret->value = lp_span_str(text);
        return true;
    }
    ret->flag = lp_span_split(lp_span_str(text), '=', &ret->value);
    ret->has_value = ret->value.ptr != NULL;
    ret->row = lp_conf_flag_find(ret->flag);
    take_value(words, ret);
    return true;
}

struct lp_span lp_conf_file_flag(int argc, const char *const *argv)
{
    struct words words = {.argc = argc, .argv = argv};
    struct word word;
    while (next_word(&words, &word))
        if (word.row && word.row->type == LP_TYPE_FILE)
            return word.value;
    return lp_span(NULL, 0);
}

static bool is_list(enum lp_conf_type type)
{
    return type == LP_TYPE_LISTENS || type == LP_TYPE_HOSTS || type == LP_TYPE_ORIGINS ||
        type == LP_TYPE_PUBLIC_URLS || type == LP_TYPE_REPLICAS || type == LP_TYPE_PEERS ||
        type == LP_TYPE_PASSES;
}

/* What is needed to put a word into the tree. */
struct filler {
    struct lp_arena *arena;
    struct lp_conf_problems *problems;
    struct lp_conf_value *root;
    uint32_t room; /* items a list can get */
};

static struct lp_conf_value *find_member(struct lp_conf_value *root, const struct lp_conf_key *row)
{
    for (uint32_t i = 0; i < root->count; i++)
        if (root->items[i].row == row)
            return &root->items[i];
    return NULL;
}

/* The member's new last item; NULL when memory is out. */
static struct lp_conf_value *add_item(struct filler *filler, struct lp_conf_value *member)
{
    if (!member->items) {
        member->kind = LP_VALUE_LIST;
        member->items = lp_arena_alloc(filler->arena, filler->room * sizeof *member->items);
    }
    return member->items ? &member->items[member->count++] : NULL;
}

static int add(
    struct filler *filler, const struct lp_conf_key *row, struct lp_span where, struct lp_span text)
{
    struct lp_conf_value *member = find_member(filler->root, row);
    if (member && !is_list(row->type)) {
        member->is_refused = false;
        lp_conf_problem(filler->problems, member, "given twice");
        return LP_OK;
    }
    if (!member) {
        member = &filler->root->items[filler->root->count++];
        *member = (struct lp_conf_value){.row = row, .where = where};
    }
    if (is_list(row->type))
        member = add_item(filler, member);
    if (!member)
        return LP_ENOMEM;
    *member = (struct lp_conf_value){.row = row, .where = where, .text = text};
    return LP_OK;
}

static const struct lp_conf_key *replicas_row(void)
{
    return lp_conf_key_find(LP_SCOPE_SERVER, LP_SPAN(""), LP_SPAN("replicas"));
}

static int add_url(struct filler *filler, struct lp_span text)
{
    const struct lp_conf_key *row = replicas_row();
    const struct lp_conf_value *list = find_member(filler->root, row);
    struct lp_span where =
        lp_conf_text(filler->arena, "URL %u", list ? (unsigned)list->count + 1 : 1);
    return where.ptr ? add(filler, row, where, text) : LP_ENOMEM;
}

static void refuse_flag(struct filler *filler, const struct word *word)
{
    struct lp_conf_value at = {.where = word->flag};
    if (word->row) {
        lp_conf_problem(
            filler->problems, &at, "a value must follow: %s %s", word->row->flag, word->row->arg);
        return;
    }
    const char *nearest = lp_conf_flag_nearest(word->flag);
    if (nearest)
        lp_conf_problem(filler->problems, &at, "unknown flag; did you mean %s?", nearest);
    else
        lp_conf_problem(filler->problems, &at, "unknown flag; limpet %s --help lists them",
            filler->problems->seat == LP_SEAT_SIDECAR ? "sidecar" : "gateway");
}

int lp_conf_flags_read(int argc, const char *const *argv, struct lp_arena *arena,
    struct lp_conf_problems *problems, struct lp_conf_value *ret_root)
{
    struct words words = {.argc = argc, .argv = argv};
    struct filler filler = {arena, problems, ret_root, argc > 0 ? (uint32_t)argc : 1};
    struct word word;
    int err = LP_OK;
    *ret_root = (struct lp_conf_value){.kind = LP_VALUE_MAP};
    ret_root->items = lp_arena_alloc(arena, filler.room * sizeof *ret_root->items);
    if (!ret_root->items)
        return LP_ENOMEM;
    while (!err && next_word(&words, &word)) {
        if (!word.flag.len)
            err = add_url(&filler, word.value);
        else if (!word.row || !word.has_value)
            refuse_flag(&filler, &word);
        else
            err = add(&filler, word.row, word.flag, word.value);
    }
    return err;
}
