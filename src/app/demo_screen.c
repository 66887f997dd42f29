/* The demo's screen (app/demo_screen.h). Colour only on a terminal, and not with NO_COLOR; without
 * it nothing is lost. */
#include "app/demo_screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool has_colour(void)
{
    const char *no = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    bool is_dumb = !term || strcmp(term, "dumb") == 0;
    return isatty(STDOUT_FILENO) && !is_dumb && !(no && no[0]);
}

/* `code`: "1" bold, "31" red, "32" green, "2" faint. */
static void put(const char *code, const char *text)
{
    if (has_colour())
        printf("\033[%sm%s\033[0m", code, text);
    else
        fputs(text, stdout);
}

static void put_results(const char *results)
{
    for (size_t i = 0; results[i]; i++)
        put(results[i] == 'O' ? "1;32" : "1;31", (char[2]){results[i], '\0'});
}

void lp_demo_show_intro(void)
{
    put("1", "Limpet demo: one client, one MCP session, three copies of the server\n");
    fputs("\n"
          "An MCP server keeps a session in the memory of the process that opened it.\n"
          "Behind a plain load balancer the next request goes to another copy, which has\n"
          "never heard of that session. Here are 12 tool calls of one session, sent to\n"
          "the same three replicas A, B and C in two ways (O answered, x failed):\n"
          "\n",
        stdout);
    fflush(stdout);
}

static void show_row(const struct lp_demo_row *row)
{
    printf("     went to   %s\n     answer    ", row->replica);
    put_results(row->result);
    printf("   %u of %d\n", row->answered, LP_DEMO_CALLS);
}

void lp_demo_show_naive(const struct lp_demo_row *row)
{
    put("1", "  1. A plain round robin in front\n");
    show_row(row);
    if (row->last_bad_status == 404)
        puts("     The x are HTTP 404, \"Session not found\": they reached a wrong replica.");
    else if (row->last_bad_status)
        printf("     The x are HTTP %u: they reached a wrong replica.\n", row->last_bad_status);
    puts("");
    fflush(stdout);
}

void lp_demo_show_gateway(const struct lp_demo_row *row)
{
    put("1", "  2. Limpet in front\n");
    show_row(row);
    if (row->answered == LP_DEMO_CALLS)
        printf("     The counter that this session keeps in replica %c's memory says %llu.\n",
            row->replica[0], (unsigned long long)row->last_count);
    puts("");
    fflush(stdout);
}

void lp_demo_show_end(void)
{
    fputs("Nothing was changed in client or server: no cookies, no shared store. The\n"
          "session id that the client holds is a sealed note that says who owns it.\n"
          "\n"
          "In front of your own replicas:\n",
        stdout);
    put("1", "  limpet gateway http://10.0.0.1:3000/mcp http://10.0.0.2:3000/mcp\n");
    fflush(stdout);
}

void lp_demo_show_running(uint16_t gateway_port, uint16_t naive_port)
{
    printf("\nAll of it goes on running until Ctrl-C. Open a session of your own:\n"
           "  curl -i http://127.0.0.1:%u/mcp -H 'Content-Type: application/json' \\\n"
           "    -d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}'\n"
           "Gateway http://127.0.0.1:%u/mcp   round robin http://127.0.0.1:%u/mcp\n",
        gateway_port, gateway_port, naive_port);
    fflush(stdout);
}
