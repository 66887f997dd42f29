/* The key table as text: --help of gateway and sidecar, and the reference of keys in limpet.yaml(5)
 * as an mdoc fragment. */
#include <stdio.h>

#include "conf/conf_priv.h"

enum { WIDTH = 80, HELP_COLUMN = 28 };

static int put_word(struct lp_buf *out, struct lp_span word, int *column)
{
    bool fits = *column + 1 + (int)word.len <= WIDTH;
    if (!fits || *column < HELP_COLUMN) {
        int err = lp_buf_printf(
            out, "%s%*s", fits ? "" : "\n", fits ? HELP_COLUMN - *column : HELP_COLUMN, "");
        if (err)
            return err;
        *column = HELP_COLUMN;
    } else {
        int err = lp_buf_append(out, LP_SPAN(" "));
        if (err)
            return err;
        *column += 1;
    }
    *column += (int)word.len;
    return lp_buf_append(out, word);
}

static int put_words(struct lp_buf *out, struct lp_span text, int *column)
{
    int err = LP_OK;
    while (text.ptr && !err)
        err = put_word(out, lp_span_split(text, ' ', &text), column);
    return err;
}

/* In brackets, and never parted. */
static int put_note(struct lp_buf *out, const char *before, const char *note, int *column)
{
    char text[160];
    (void)snprintf(text, sizeof text, "(%s%s)", before, note);
    return put_word(out, lp_span_str(text), column);
}

static int put_flag(struct lp_buf *out, const struct lp_conf_key *row)
{
    char text[160];
    const char *letter = row->type == LP_TYPE_FILE ? "-c, " : "";
    int column = snprintf(text, sizeof text, "  %s%s%s%s", letter, row->flag, row->arg ? " " : "",
        row->arg ? row->arg : "");
    int err = lp_buf_append(out, lp_span(text, (size_t)column));
    if (!err)
        err = put_words(out, lp_span_str(row->help), &column);
    if (!err && row->choices && strchr(row->choices, '|'))
        err = put_note(out, "", row->choices, &column);
    if (!err && row->fallback && row->type != LP_TYPE_SWITCH)
        err = put_note(out, "default ", row->fallback, &column);
    return err ? err : lp_buf_append(out, LP_SPAN("\n"));
}

static int put_help(struct lp_buf *out, enum lp_conf_seat seat)
{
    uint32_t count;
    int err = LP_OK;
    const struct lp_conf_key *keys = lp_conf_keys(&count);
    for (uint32_t i = 0; i < count && !err; i++)
        if (keys[i].flag && lp_conf_key_is_of(&keys[i], seat))
            err = put_flag(out, &keys[i]);
    return err;
}

int lp_conf_help(struct lp_buf *out)
{
    return put_help(out, LP_SEAT_GATEWAY);
}

int lp_conf_sidecar_help(struct lp_buf *out)
{
    return put_help(out, LP_SEAT_SIDECAR);
}

/* A line of text as roff sees it: a backslash is doubled, and a dot or a quote at the front is not
 * taken for a request. */
static int put_line(struct lp_buf *out, struct lp_span text)
{
    int err = LP_OK;
    if (lp_span_starts(text, LP_SPAN(".")) || lp_span_starts(text, LP_SPAN("'")))
        err = lp_buf_append(out, LP_SPAN("\\&"));
    while (text.len && !err) {
        size_t plain = lp_span_find(text, '\\');
        bool has_more = plain < text.len;
        err = lp_buf_printf(out, "%.*s%s", (int)plain, text.ptr, has_more ? "\\e" : "");
        text = lp_span_from(text, plain + has_more);
    }
    return err ? err : lp_buf_append(out, LP_SPAN("\n"));
}

/* Each sentence begins on a line of its own, as mdoc wants it. */
static int put_paragraph(struct lp_buf *out, struct lp_span text)
{
    int err = LP_OK;
    while (text.len && !err) {
        size_t end = lp_span_search(text, LP_SPAN(". "));
        bool has_more = end < text.len;
        err = put_line(out, lp_span(text.ptr, end + has_more));
        text = lp_span_from(text, end + 2 * has_more);
    }
    return err;
}

static int put_choices(struct lp_buf *out, struct lp_span rest)
{
    int err = lp_buf_append(out, LP_SPAN("One of\n"));
    while (rest.ptr && !err) {
        struct lp_span word = lp_span_split(rest, '|', &rest);
        err = lp_buf_printf(out, ".Cm %.*s%s\n", (int)word.len, word.ptr, rest.ptr ? " ," : " .");
    }
    return err;
}

static int put_range(struct lp_buf *out, const struct lp_conf_key *row)
{
    int err = lp_buf_append(out, LP_SPAN("From "));
    if (!err)
        err = lp_conf_write_bound(out, row->type, row->min);
    if (!err)
        err = lp_buf_append(out, LP_SPAN(" to "));
    if (!err)
        err = lp_conf_write_bound(out, row->type, row->max);
    return err ? err : lp_buf_append(out, LP_SPAN(".\n"));
}

static int put_facts(struct lp_buf *out, const struct lp_conf_key *row)
{
    int err = LP_OK;
    if (row->choices && strchr(row->choices, '|'))
        err = put_choices(out, lp_span_str(row->choices));
    if (!err && row->max && row->type < LP_TYPE_LISTENS)
        err = put_range(out, row);
    if (!err && row->fallback)
        err = lp_buf_printf(out, "The default is\n.Cm %s .\n", row->fallback);
    if (!err && row->flag)
        err = lp_buf_printf(out, "The flag is\n.Fl Fl %s .\n", row->flag + 2);
    if (!err && row->owner)
        err = lp_buf_printf(out, "It is a key of\n.Nm limpet %s\nonly.\n",
            row->owner == LP_KEY_OF_SIDECAR ? "sidecar" : "gateway");
    return err;
}

static int put_row(struct lp_buf *out, const struct lp_conf_key *row)
{
    int err = lp_buf_printf(
        out, ".It Ic %s%s%s\n", row->name, row->arg ? " Ar " : "", row->arg ? row->arg : "");
    if (!err)
        err = put_paragraph(out, lp_span_str(row->paragraph));
    return err ? err : put_facts(out, row);
}

static int put_section(struct lp_buf *out, enum lp_conf_scope scope, const char *title)
{
    uint32_t count;
    const struct lp_conf_key *keys = lp_conf_keys(&count);
    int err = lp_buf_printf(out, ".Ss %s\n.Bl -tag -width Ds\n", title);
    for (uint32_t i = 0; i < count && !err; i++)
        if (keys[i].scope == scope && keys[i].paragraph)
            err = put_row(out, &keys[i]);
    return err ? err : lp_buf_append(out, LP_SPAN(".El\n"));
}

static int put_later(struct lp_buf *out)
{
    uint32_t count;
    const struct lp_conf_key *keys = lp_conf_keys(&count);
    int err = lp_buf_append(out,
        LP_SPAN(".Ss Keys of a later release\n"
                "These words are known, and refused until then:\n"
                ".Bl -bullet -compact\n"));
    for (uint32_t i = 0; i < count && !err; i++)
        if (keys[i].type == LP_TYPE_LATER)
            err = lp_buf_printf(out, ".It\n.Ic %s\n", keys[i].name);
    return err ? err : lp_buf_append(out, LP_SPAN(".El\n"));
}

int lp_conf_manual(struct lp_buf *out)
{
    static const struct {
        enum lp_conf_scope scope;
        const char *title;
    } SECTIONS[] = {
        {LP_SCOPE_TOP, "Keys of the top level"},
        {LP_SCOPE_SERVER, "Keys of a server"},
        {LP_SCOPE_REPLICA, "Keys of a replica"},
        {LP_SCOPE_DIALECT, "Keys of an item of lost_dialects"},
        {LP_SCOPE_PASS, "Keys of an item of pass"},
    };
    int err = LP_OK;
    for (size_t i = 0; i < sizeof SECTIONS / sizeof SECTIONS[0] && !err; i++)
        err = put_section(out, SECTIONS[i].scope, SECTIONS[i].title);
    return err ? err : put_later(out);
}
