/* YAML text -> value tree with the line of each value (requirements [G13]). libyaml reads; its
 * document is kept, because the tree points into it. Decided here: what a document may be (one, a
 * mapping, no key twice, a bounded number of values); what its keys mean is build.c's. */
#include <stdlib.h>
#include <yaml.h>

#include "conf/conf_priv.h"

struct walk {
    yaml_document_t *document;
    struct lp_arena *arena;
    struct lp_conf_problems *problems;
    uint32_t value_count;
};

/* The line of an offset; one behind the last line end belongs to the last line. */
static uint32_t line_at(struct lp_span text, size_t offset)
{
    uint32_t line = 1;
    for (size_t i = 0; i < offset && i + 1 < text.len; i++)
        line += text.ptr[i] == '\n';
    return line;
}

static int report_syntax(
    const yaml_parser_t *parser, struct lp_span text, struct lp_conf_problems *problems)
{
    uint32_t last = line_at(text, text.len);
    uint32_t line = (uint32_t)parser->problem_mark.line + 1;
    uint32_t begin = (uint32_t)parser->context_mark.line + 1;
    const char *problem = parser->problem ? parser->problem : "unreadable";
    if (parser->error == YAML_MEMORY_ERROR)
        return LP_ENOMEM;
    /* The reader has no mark. */
    if (parser->error == YAML_READER_ERROR)
        line = line_at(text, parser->problem_offset);
    struct lp_conf_value at = {.line = line < last ? line : last};
    if (parser->context)
        lp_conf_problem(problems, &at, "this is not valid YAML: %s, %s that begins on line %u",
            problem, parser->context, (unsigned)(begin < last ? begin : last));
    else
        lp_conf_problem(problems, &at, "this is not valid YAML: %s", problem);
    return LP_OK;
}

static struct lp_span scalar_text(const yaml_node_t *node)
{
    return lp_span((const char *)node->data.scalar.value, node->data.scalar.length);
}

static int read_node(struct walk *walk, int index, uint32_t depth, struct lp_conf_value *value);

/* Whether there may be `count` more values; reports when not. */
static bool may_grow(struct walk *walk, struct lp_conf_value *value, size_t count, uint32_t depth)
{
    if (depth >= LP_CONF_DEPTH_MAX)
        lp_conf_problem(walk->problems, value, "nested too deep");
    else if (count > LP_CONF_VALUES_MAX - walk->value_count)
        lp_conf_problem(
            walk->problems, value, "the file has more than %d values", LP_CONF_VALUES_MAX);
    return !value->is_refused;
}

static int grow(struct walk *walk, struct lp_conf_value *value, size_t count)
{
    struct lp_conf_value *items = lp_arena_alloc(walk->arena, count * sizeof *items);
    if (!items)
        return LP_ENOMEM;
    memset(items, 0, count * sizeof *items);
    walk->value_count += (uint32_t)count;
    value->items = items;
    value->count = (uint32_t)count;
    return LP_OK;
}

static int read_list(
    struct walk *walk, const yaml_node_t *node, uint32_t depth, struct lp_conf_value *value)
{
    const yaml_node_item_t *first = node->data.sequence.items.start;
    size_t count = (size_t)(node->data.sequence.items.top - first);
    value->kind = LP_VALUE_LIST;
    if (count == 0 || !may_grow(walk, value, count, depth))
        return LP_OK;
    int err = grow(walk, value, count);
    for (uint32_t i = 0; i < count && !err; i++) {
        struct lp_conf_value *item = &value->items[i];
        item->where = lp_conf_text(
            walk->arena, "%.*s[%u]", (int)value->where.len, value->where.ptr, (unsigned)i);
        err = item->where.ptr ? read_node(walk, first[i], depth + 1, item) : LP_ENOMEM;
    }
    return err;
}

/* The name of a member, and its place in words; refuses what cannot be a name. */
static int read_key(
    struct walk *walk, int index, const struct lp_conf_value *map, struct lp_conf_value *member)
{
    enum { KEY_SHOWN_MAX = 40 };
    const yaml_node_t *node = yaml_document_get_node(walk->document, index);
    member->line = (uint32_t)node->start_mark.line + 1;
    member->where = map->where;
    if (node->type != YAML_SCALAR_NODE) {
        lp_conf_problem(walk->problems, member, "a key must be a word");
        return LP_OK;
    }
    member->key = scalar_text(node);
    struct lp_span shown = member->key.len ? member->key : LP_SPAN("\"\"");
    if (shown.len > KEY_SHOWN_MAX)
        shown.len = KEY_SHOWN_MAX;
    member->where = lp_conf_text(walk->arena, "%.*s%s%.*s", (int)map->where.len, map->where.ptr,
        map->where.len ? "." : "", (int)shown.len, shown.ptr);
    return member->where.ptr ? LP_OK : LP_ENOMEM;
}

static void refuse_second(struct walk *walk, struct lp_conf_value *map, uint32_t index)
{
    struct lp_conf_value *member = &map->items[index];
    for (uint32_t i = 0; i < index; i++)
        if (!member->is_refused && lp_span_eq(map->items[i].key, member->key))
            lp_conf_problem(walk->problems, member, "given twice, first on line %u",
                (unsigned)map->items[i].line);
}

static int read_map(
    struct walk *walk, const yaml_node_t *node, uint32_t depth, struct lp_conf_value *value)
{
    const yaml_node_pair_t *first = node->data.mapping.pairs.start;
    size_t count = (size_t)(node->data.mapping.pairs.top - first);
    value->kind = LP_VALUE_MAP;
    if (count > LP_CONF_MEMBERS_MAX)
        lp_conf_problem(walk->problems, value, "more than %d keys", LP_CONF_MEMBERS_MAX);
    if (count == 0 || !may_grow(walk, value, count, depth))
        return LP_OK;
    int err = grow(walk, value, count);
    for (uint32_t i = 0; i < count && !err; i++) {
        struct lp_conf_value *member = &value->items[i];
        err = read_key(walk, first[i].key, value, member);
        refuse_second(walk, value, i);
        if (!err)
            err = read_node(walk, first[i].value, depth + 1, member);
    }
    return err;
}

/* libyaml has no node without a place; an alias stands where its anchor stands, so a key's line is
 * kept where there is one. */
static int read_node(struct walk *walk, int index, uint32_t depth, struct lp_conf_value *value)
{
    const yaml_node_t *node = yaml_document_get_node(walk->document, index);
    LP_ASSERT(node);
    if (value->line == 0)
        value->line = (uint32_t)node->start_mark.line + 1;
    if (node->type == YAML_SEQUENCE_NODE)
        return read_list(walk, node, depth, value);
    if (node->type == YAML_MAPPING_NODE)
        return read_map(walk, node, depth, value);
    value->kind = LP_VALUE_SCALAR;
    value->is_plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    value->text = scalar_text(node);
    return LP_OK;
}

/* LP_OK also when a problem was reported, and when there is no document at all. */
static int load(yaml_parser_t *parser, yaml_document_t *document, struct lp_span text,
    struct lp_conf_problems *problems)
{
    yaml_document_t second;
    if (!yaml_parser_load(parser, document)) {
        memset(document, 0, sizeof *document);
        return report_syntax(parser, text, problems);
    }
    if (!yaml_document_get_root_node(document))
        return LP_OK;
    if (!yaml_parser_load(parser, &second))
        return report_syntax(parser, text, problems);
    const yaml_node_t *root = yaml_document_get_root_node(&second);
    if (root) {
        struct lp_conf_value at = {.line = (uint32_t)root->start_mark.line + 1};
        lp_conf_problem(problems, &at, "a second YAML document begins here; one is accepted");
    }
    yaml_document_delete(&second);
    return LP_OK;
}

static int parse(struct lp_span text, struct lp_conf_problems *problems, yaml_document_t *document)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return LP_ENOMEM;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.ptr, text.len);
    int err = load(&parser, document, text, problems);
    yaml_parser_delete(&parser);
    return err;
}

int lp_conf_yaml_read(struct lp_span text, struct lp_arena *arena,
    struct lp_conf_problems *problems, struct lp_conf_value *ret_root,
    struct yaml_document_s **ret_document)
{
    uint32_t count_before = problems->count;
    *ret_root = (struct lp_conf_value){.kind = LP_VALUE_MAP, .line = 1};
    if (text.len > LP_CONF_FILE_MAX) {
        lp_conf_problem(problems, ret_root, "the file is longer than 1 MiB");
        return LP_ESYNTAX;
    }
    yaml_document_t *document = calloc(1, sizeof *document);
    if (!document)
        return LP_ENOMEM;
    *ret_document = document;
    int err = parse(text.ptr ? text : LP_SPAN(""), problems, document);
    if (!err && problems->count > count_before)
        err = LP_ESYNTAX;
    if (err || !yaml_document_get_root_node(document))
        return err;
    struct walk walk = {.document = document, .arena = arena, .problems = problems};
    ret_root->line = 0;
    return read_node(&walk, 1, 0, ret_root);
}

void lp_conf_yaml_free(struct yaml_document_s *document)
{
    if (document)
        yaml_document_delete(document);
    free(document);
}
