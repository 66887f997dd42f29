/* Any bytes as an mcp.json: the laws of test/prop/mcp_json_laws.h. */
#include "../prop/mcp_json_laws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= 65536)
        check_mcp_json_laws(lp_span((const char *)data, size));
    return 0;
}
