/* Assertions: a programming error stops the program at the place where it is seen.
 *
 * LP_ASSERT is always on, in release builds too, and must be cheap. LP_EXPENSIVE is for checks
 * that walk a structure; it is compiled in when LP_CHECK_EXPENSIVE is set (fuzz and simulator
 * builds). Neither is ever used for bad input: that is an error code. */
#ifndef LP_BASE_ASSERT_H
#define LP_BASE_ASSERT_H

/* Says what is broken and where on stderr, and aborts. */
_Noreturn void lp_assert_failed(const char *expr, const char *file, int line);

#define LP_ASSERT(expr) ((expr) ? (void)0 : lp_assert_failed(#expr, __FILE__, __LINE__))

#ifdef LP_CHECK_EXPENSIVE
#define LP_EXPENSIVE(expr) LP_ASSERT(expr)
#else
#define LP_EXPENSIVE(expr) ((void)0)
#endif

/* A place that no path can reach. */
#define LP_UNREACHABLE() lp_assert_failed("unreachable", __FILE__, __LINE__)

/* The result must be looked at. */
#define LP_MUST __attribute__((warn_unused_result))
#define LP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

#endif
