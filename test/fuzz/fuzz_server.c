/* The library's server against any play of four clients, their connections, the clock and the
 * program: see test/prop/server_play.h for what the bytes choose and what must never happen. */
#include "../prop/server_play.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { SIZE_MAX_PLAYED = 8192 };
    static struct play p;
    play_all(&p, data, size < SIZE_MAX_PLAYED ? size : SIZE_MAX_PLAYED);
    return 0;
}
