/* Why a call failed. 0 is success, every failure is a negative LP_E...; feeding functions return
 * bytes consumed or a negative code. Not to be mixed up with reasons (base/reason.h), which say why
 * an exchange, stream or connection ended. One row here is the code and its sentence. */
#ifndef LP_BASE_ERROR_H
#define LP_BASE_ERROR_H

#define LP_ERRORS(X)                                                                               \
    X(NOMEM, -1, "out of memory")                                                                  \
    X(LIMIT, -2, "a limit was reached")                                                            \
    X(SYNTAX, -3, "the input is malformed")                                                        \
    X(RANGE, -4, "a value is out of range")                                                        \
    X(UNSUPPORTED, -5, "the input asks for something that is not supported")                       \
    X(AMBIGUOUS, -6, "the input can be read in two ways")                                          \
    X(TOO_LONG, -7, "the input is longer than the limit")                                          \
    X(FORGED, -8, "the seal does not match")                                                       \
    X(UNKNOWN_KEY, -9, "sealed with a key that is not in the ring")                                \
    X(EXPIRED, -10, "older than the age limit")                                                    \
    X(NOT_FOUND, -11, "no such thing")                                                             \
    X(BROKEN, -12, "the connection is broken")                                                     \
    X(REFUSED, -13, "the connection was refused")                                                  \
    X(TIMEOUT, -14, "no answer in time")                                                           \
    X(UNREACHABLE, -15, "the address cannot be reached")                                           \
    X(IO, -16, "an input or output operation failed")                                              \
    X(EXISTS, -17, "it is there already")                                                          \
    X(USAGE, -18, "the command was not understood")                                                \
    X(TLS, -19, "the TLS handshake failed; see whether that port speaks https and not http")       \
    X(TLS_UNTRUSTED, -20, "nobody we trust has signed the certificate; name its CA with --cacert") \
    X(TLS_NAME, -21, "the certificate is for another name; use one of its names in the URL")       \
    X(TLS_EXPIRED, -22, "the certificate is too old or too new; renew it or set the clock")

enum lp_error {
    LP_OK = 0,
#define X(name, value, sentence) LP_E##name = value,
    LP_ERRORS(X)
#undef X
};

/* A sentence without a full stop; "unknown error" for a number that is not in the list. */
const char *lp_error_sentence(int error);

/* "NOMEM" and so on; "UNKNOWN" for a number that is not in the list. */
const char *lp_error_name(int error);

#endif
