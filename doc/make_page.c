/* Builds the manual page of the configuration from its template: the line @KEYS@ becomes the
 * reference of keys that the key table makes (conf/conf.h). And checks that the page of the
 * commands names every flag of that table, so that no flag is added without a word for its reader.
 *
 *   make-page page TEMPLATE >PAGE
 *   make-page check PAGE */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "conf/conf.h"

enum { TEXT_MAX = 1 << 20, CHUNK = 4096 };

static int fail(const char *what, const char *which)
{
    fprintf(stderr, "make-page: %s %s\n", what, which);
    return EXIT_FAILURE;
}

static int read_file(const char *path, struct lp_buf *text)
{
    char chunk[CHUNK];
    FILE *file = fopen(path, "rb");
    int err = file ? LP_OK : LP_EIO;
    for (size_t n = 1; n && !err;) {
        n = fread(chunk, 1, sizeof chunk, file);
        err = lp_buf_append(text, lp_span(chunk, n));
    }
    if (file && fclose(file) && !err)
        err = LP_EIO;
    return err;
}

static int print_page(struct lp_span template, struct lp_span keys)
{
    struct lp_span mark = LP_SPAN("@KEYS@\n");
    size_t at = lp_span_search(template, mark);
    if (at == template.len)
        return fail("no @KEYS@ in", "the template");
    struct lp_span rest = lp_span_from(template, at + mark.len);
    fwrite(template.ptr, 1, at, stdout);
    fwrite(keys.ptr, 1, keys.len, stdout);
    fwrite(rest.ptr, 1, rest.len, stdout);
    return fflush(stdout) || ferror(stdout) ? fail("cannot write", "the page") : EXIT_SUCCESS;
}

/* The flag of a line of the help text ("  -c, --config FILE ..."); empty for other lines. */
static struct lp_span flag_of(struct lp_span line)
{
    size_t at = lp_span_search(line, LP_SPAN("--"));
    if (at > 6 || at == line.len)
        return lp_span(NULL, 0);
    struct lp_span rest;
    return lp_span_split(lp_span_from(line, at + 2), ' ', &rest);
}

static int check_flags(struct lp_span page, struct lp_span help)
{
    int status = EXIT_SUCCESS;
    while (help.len) {
        char item[64], name[48];
        struct lp_span flag = flag_of(lp_span_split(help, '\n', &help));
        snprintf(name, sizeof name, "%.*s", (int)flag.len, flag.len ? flag.ptr : "");
        snprintf(item, sizeof item, " Fl Fl %s", name);
        if (flag.len && lp_span_search(page, lp_span_str(item)) == page.len)
            status = fail("the page does not name the flag", name);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct lp_buf page, made;
    int status = EXIT_FAILURE;
    bool is_page = argc == 3 && strcmp(argv[1], "page") == 0;
    bool is_check = argc == 3 && strcmp(argv[1], "check") == 0;
    if (!is_page && !is_check)
        return fail("say", "page TEMPLATE or check PAGE");
    lp_buf_init(&page, TEXT_MAX);
    lp_buf_init(&made, TEXT_MAX);
    if (read_file(argv[2], &page))
        fail("cannot read", argv[2]);
    else if (is_page ? lp_conf_manual(&made) : lp_conf_help(&made))
        fail("out of memory for", argv[2]);
    else if (is_page)
        status = print_page(lp_buf_span(&page), lp_buf_span(&made));
    else
        status = check_flags(lp_buf_span(&page), lp_buf_span(&made));
    lp_buf_release(&page);
    lp_buf_release(&made);
    return status;
}
