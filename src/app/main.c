/* The program's door: the table of commands, --help, --version, and how everything is said.
 *
 * Each command is a file of its own; adding one is a row here. */
#include <poll.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/app.h"

enum { TEXT_MAX = 1 << 20 };

static const struct lp_command *const COMMANDS[] = {
    &lp_command_gateway,
    &lp_command_sidecar,
    &lp_command_demo,
    &lp_command_replica,
    &lp_command_probe,
    &lp_command_inspect,
    &lp_command_connect,
    &lp_command_status,
    &lp_command_config,
    &lp_command_key,
};
enum { COMMAND_COUNT = sizeof COMMANDS / sizeof *COMMANDS };

int lp_app_fail(enum lp_exit status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("limpet: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    return (int)status;
}

int lp_app_cannot_start(int err)
{
    /* lp_loop_new does not tell which of the two was missing. */
    return lp_app_fail(LP_EXIT_FAILED, "cannot start: %s",
        err == LP_ENOMEM ? "out of memory or of open files (ulimit -n)" : lp_error_sentence(err));
}

void lp_app_print(const struct lp_buf *text)
{
    if (text->len)
        fwrite(lp_buf_span(text).ptr, 1, text->len, stdout);
}

int lp_app_text(struct lp_buf *out, const char *text)
{
    return lp_buf_append(out, lp_span_str(text));
}

static const struct lp_command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(COMMANDS[i]->name, name) == 0)
            return COMMANDS[i];
    return NULL;
}

static int print_help(FILE *to)
{
    fputs("Limpet holds MCP sessions to the replica that opened them: a gateway in front\n"
          "of any number of copies of an MCP server.\n"
          "\n"
          "Usage: limpet COMMAND [FLAG...]\n"
          "\n"
          "Commands:\n",
        to);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "  %-9s %s\n", COMMANDS[i]->name, COMMANDS[i]->summary);
    fputs("\n"
          "limpet COMMAND --help tells the rest; limpet --version tells the version.\n"
          "\n"
          "Examples:\n"
          "  limpet demo\n"
          "  limpet gateway http://10.0.0.1:3000/mcp http://10.0.0.2:3000/mcp\n",
        to);
    return LP_EXIT_OK;
}

static int print_command_help(const struct lp_command *command)
{
    struct lp_buf text;
    lp_buf_init(&text, TEXT_MAX);
    int err = command->help(&text);
    if (!err)
        lp_app_print(&text);
    lp_buf_release(&text);
    return err ? lp_app_fail(LP_EXIT_FAILED, "%s", lp_error_sentence(err)) : LP_EXIT_OK;
}

static bool asks_for_help(int argc, const char *const *argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static int run(int argc, const char *const *argv)
{
    if (argc < 2) {
        print_help(stderr);
        return LP_EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return print_help(stdout);
    if (strcmp(word, "--version") == 0) {
        puts("limpet " LP_VERSION);
        return LP_EXIT_OK;
    }
    bool is_help = strcmp(word, "help") == 0;
    if (is_help && argc == 2)
        return print_help(stdout);
    const struct lp_command *command = find_command(is_help ? argv[2] : word);
    if (!command)
        return lp_app_fail(LP_EXIT_USAGE, "there is no command \"%s\"; limpet --help lists them",
            is_help ? argv[2] : word);
    if (is_help || asks_for_help(argc - 2, argv + 2))
        return print_command_help(command);
    return command->run(argc - 2, argv + 2);
}

/* `limpet inspect ... | head -1` wants no complaint. */
static bool reader_is_gone(void)
{
    struct pollfd out = {STDOUT_FILENO, POLLOUT, 0};
    return poll(&out, 1, 0) == 1 && out.revents & POLLERR;
}

int main(int argc, char **argv)
{
    if (sodium_init() < 0)
        return lp_app_fail(LP_EXIT_FAILED, "the crypto library does not start");
    int status = run(argc, (const char *const *)argv);
    bool is_lost = fflush(stdout) || ferror(stdout);
    if (is_lost && !reader_is_gone())
        (void)lp_app_fail(LP_EXIT_FAILED, "the output could not be written");
    return is_lost && status == LP_EXIT_OK ? LP_EXIT_FAILED : status;
}
