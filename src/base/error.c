/* Names and sentences of the error list (base/error.h). */
#include "base/error.h"

const char *lp_error_sentence(int error)
{
    switch (error) {
    case LP_OK:
        return "success";
#define X(name, value, sentence)                                                                   \
    case value:                                                                                    \
        return sentence;
        LP_ERRORS(X)
#undef X
    default:
        return "unknown error";
    }
}

const char *lp_error_name(int error)
{
    switch (error) {
    case LP_OK:
        return "OK";
#define X(name, value, sentence)                                                                   \
    case value:                                                                                    \
        return #name;
        LP_ERRORS(X)
#undef X
    default:
        return "UNKNOWN";
    }
}
