/* Loading a configuration in a test: text and words in, snapshot or messages out. */
#ifndef LP_TEST_CONF_HARNESS_H
#define LP_TEST_CONF_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/error.h"
#include "conf/conf.h"

enum { WORDS_MAX = 16 };

#define assert_span(span, text) assert_true(lp_span_eq((span), lp_span_str(text)))

struct loaded {
    struct lp_conf *conf;
    struct lp_buf errors;
    int err;
    const char *message; /* zero-terminated text of `errors` */
};

static inline struct loaded load_source(const struct lp_conf_source *source)
{
    struct loaded loaded = {.conf = NULL};
    lp_buf_init(&loaded.errors, 1 << 20);
    loaded.err = lp_conf_load(source, &loaded.conf, &loaded.errors);
    assert_int_equal(lp_buf_append(&loaded.errors, lp_span("", 1)), LP_OK);
    loaded.message = lp_buf_span(&loaded.errors).ptr;
    return loaded;
}

/* `text` NULL: no file. `words`: what follows the sub-command, up to a NULL. */
static inline struct loaded load(const char *text, const char *const *words)
{
    struct lp_conf_source source = {.argv = words};
    if (text) {
        source.file_name = LP_SPAN("limpet.yaml");
        source.file_text = lp_span_str(text);
    }
    while (words && words[source.argc])
        source.argc++;
    return load_source(&source);
}

static inline void unload(struct loaded *loaded)
{
    lp_conf_free(loaded->conf);
    lp_buf_release(&loaded->errors);
}

/* One row of a table of mistakes. */
struct mistake {
    const char *text;
    const char *words[WORDS_MAX];
    const char *message; /* all lines, exactly */
};

static inline void check_mistakes(const struct mistake *rows, size_t count)
{
    size_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        struct loaded loaded = load(rows[i].text, rows[i].words);
        /* A mistake of the words alone is wrong usage, one of the file a wrong configuration. */
        int err = strstr(rows[i].message, "limpet.yaml:") ? LP_ESYNTAX : LP_EUSAGE;
        if (loaded.err != err || strcmp(loaded.message, rows[i].message) != 0) {
            print_error("row %zu: %d\n--- got\n%s--- want\n%s", i, loaded.err, loaded.message,
                rows[i].message);
            bad++;
        }
        unload(&loaded);
    }
    assert_int_equal(bad, 0);
}

#endif
