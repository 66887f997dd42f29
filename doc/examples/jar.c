/* The cookies of a balancer, kept for one session by a client that has no others (limpet_jar(3)).
 */
#include <limpet.h>
#include <stdio.h>

#define SERVER "https://mcp.example.org/mcp"
#define NOW 1800000000000

static void on_answer(struct limpet_jar *jar, const char *set_cookie)
{
    struct limpet_span name;
    enum limpet_jar_verdict verdict =
        limpet_jar_store(jar, limpet_str(SERVER), limpet_str(set_cookie), NOW, &name);
    printf("the cookie %.*s %s\n", (int)name.len, name.ptr, limpet_jar_words(verdict));
}

static int show(struct limpet_jar *jar, const char *url, const char *own)
{
    struct limpet_span value;
    int err = limpet_jar_cookie(jar, limpet_str(url), NOW, limpet_str(own), &value);
    if (err)
        return err;
    printf("Cookie: %.*s\n", (int)value.len, value.ptr);
    return LIMPET_OK;
}

int main(void)
{
    struct limpet_jar *jar = NULL;
    int err = limpet_jar_new(NULL, limpet_str(SERVER), 8192, &jar);
    if (err) {
        fprintf(stderr, "the jar: %s\n", limpet_error_sentence(err));
        return 1;
    }
    on_answer(jar, "lb_affinity=pod-2; Path=/; HttpOnly");
    on_answer(jar, "__Host-x=1; Path=/");
    err = show(jar, SERVER, "theme=dark");
    if (!err)
        err = show(jar, "https://login.example.org/token", "theme=dark");
    limpet_jar_free(jar);
    return err ? 1 : 0;
}
