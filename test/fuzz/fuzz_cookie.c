/* A jar's history from any bytes, and any bytes as a date: the laws of test/prop/cookie_laws.h, and
 * packed entries that nobody packed. */
#include "../prop/cookie_laws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void unpack_anything(struct lp_span bytes)
{
    struct lp_uri origin = law_uri("http://a.test/");
    struct lp_jar jar;
    lp_jar_init(&jar, &origin, LP_JAR_SESSION_BYTES_MAX);
    int err = lp_jar_unpack(&jar, bytes, 1);
    LP_ASSERT(!err || err == LP_ESYNTAX || err == LP_ETOO_LONG);
    LP_ASSERT(jar.count <= LP_JAR_COOKIES_MAX && jar.len <= jar.max);
    lp_jar_fini(&jar);
}

/* The first byte is the kind: a history over http or https, large or small; packed bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size || size > 65536)
        return 0;
    struct lp_span text = lp_span((const char *)data + 1, size - 1);
    if (data[0] == 'p')
        unpack_anything(text);
    else if (data[0] == 'd')
        check_date_law(text);
    else
        check_jar_laws(
            text, data[0] & 1, data[0] & 2 ? LP_JAR_SESSION_BYTES_MAX : LP_JAR_BYTES_MAX);
    return 0;
}
