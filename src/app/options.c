/* Flags of the small commands. The gateway's come from the key table of conf. */
#include "app/app.h"
#include "wire/uri.h"

static const struct lp_option *find_option(
    const struct lp_option *options, uint32_t count, struct lp_span name)
{
    for (uint32_t i = 0; i < count; i++)
        if (lp_span_eq(name, lp_span_str(options[i].name)))
            return &options[i];
    return NULL;
}

static int take_value(const struct lp_option *option, const char *value)
{
    struct lp_option_list *list = option->list;
    if (!list)
        *option->value = value;
    else if (list->count == LP_OPTION_LIST_MAX)
        return lp_app_fail(
            LP_EXIT_USAGE, "%s is there more than %d times", option->name, LP_OPTION_LIST_MAX);
    else
        list->values[list->count++] = value;
    return LP_EXIT_OK;
}

/* `after` is what follows a '=' in the word, or NULL; `next` the word behind it, or NULL. */
static int take_flag(const struct lp_option *option, const char *after, const char *next)
{
    if (option->is_set && after)
        return lp_app_fail(LP_EXIT_USAGE, "%s takes no value", option->name);
    if (!option->is_set && !after && !next)
        return lp_app_fail(LP_EXIT_USAGE, "%s needs a value after it", option->name);
    if (!option->is_set)
        return take_value(option, after ? after : next);
    *option->is_set = true;
    return LP_EXIT_OK;
}

int lp_options_read(const struct lp_option *options, uint32_t option_count, int argc,
    const char *const *argv, const char *words[LP_WORDS_MAX + 1])
{
    int word_count = 0;
    for (int i = 0; i < argc; i++) {
        bool is_flag = argv[i][0] == '-' && argv[i][1];
        if (!is_flag && word_count == LP_WORDS_MAX)
            return lp_app_fail(LP_EXIT_USAGE, "there is a word too many: \"%s\"", argv[i]);
        if (!is_flag) {
            words[word_count++] = argv[i];
            continue;
        }
        struct lp_span after;
        struct lp_span name = lp_span_split(lp_span_str(argv[i]), '=', &after);
        const struct lp_option *option = find_option(options, option_count, name);
        if (!option)
            return lp_app_fail(LP_EXIT_USAGE,
                "there is no flag %.*s here; --help lists the flags of this command", (int)name.len,
                name.ptr);
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        int status = take_flag(option, after.ptr, next);
        if (status != LP_EXIT_OK)
            return status;
        i += !option->is_set && !after.ptr;
    }
    words[word_count] = NULL;
    return LP_EXIT_OK;
}

int lp_options_address(
    const char *flag, const char *text, struct lp_span *ret_host, uint16_t *ret_port)
{
    struct lp_uri uri;
    uint64_t port = 0;
    bool is_fine = lp_uri_parse_authority(lp_span_str(text), &uri) == LP_OK && uri.host.len &&
        lp_span_to_u64(uri.port, &port) && port <= UINT16_MAX;
    if (!is_fine)
        return lp_app_fail(LP_EXIT_USAGE,
            "%s: \"%s\" is no address; write host:port, for example 127.0.0.1:3001", flag, text);
    *ret_host = uri.host;
    *ret_port = (uint16_t)port;
    return LP_EXIT_OK;
}

int lp_options_number(const char *flag, const char *text, uint32_t max, uint32_t *ret_number)
{
    uint64_t number;
    if (!lp_span_to_u64(lp_span_str(text), &number) || !number || number > max)
        return lp_app_fail(
            LP_EXIT_USAGE, "%s: \"%s\" is no whole number from 1 to %u", flag, text, max);
    *ret_number = (uint32_t)number;
    return LP_EXIT_OK;
}
