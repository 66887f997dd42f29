/* Other paths of a server than its MCP paths (key `pass`; requirements [G11], cases AFF-13): which
 * rule a path falls under, and whether it may be passed on. Servers read paths generously: letters
 * in any case, percent codes, a slash more at the end. What one of them could take for an MCP path
 * must not get there without its checks, so a path is judged by what it could be read as. Pure. */
#ifndef LP_GATE_PASS_H
#define LP_GATE_PASS_H

#include "conf/conf.h"

/* The rule with the longest path that `path` is, or lies below; NULL: none. */
const struct lp_conf_pass *lp_pass_find(const struct lp_conf_server *conf, struct lp_span path);

/* The path as the most generous of servers reads it, in `room` (path.len bytes): decoded, without
 * parameters (";x") and without a slash at its end. False when that is not one reading: then there
 * is an encoded slash or per cent sign, a backslash, a control byte, or an empty segment, "." or
 * "..". */
bool lp_pass_read(struct lp_span path, char *room, struct lp_span *ret);

/* Whether what was read leads to an MCP path: it is that, or lies below, and the rule itself does
 * not lie below. Letters are the same in any case. */
bool lp_pass_leads_to(
    struct lp_span read, const struct lp_conf_pass *rule, struct lp_span mcp_path);

#endif
