/* Notes of a probe: how they are taken. See call/seen.h. */
#include "call/seen.h"

struct lp_seen_row *lp_seen_add_row(struct lp_seen *seen, enum lp_seen_arm arm, bool is_serial)
{
    if (seen->row_count == LP_SEEN_ROWS_MAX)
        return NULL;
    struct lp_seen_row *row = &seen->rows[seen->row_count++];
    *row = (struct lp_seen_row){.arm = (uint8_t)arm, .is_serial = is_serial};
    return row;
}

void lp_seen_add_call(struct lp_seen_row *row, enum lp_seen_mark mark, uint32_t distance)
{
    if (row->count == LP_SEEN_CALLS_MAX)
        return;
    row->marks[row->count] = (uint8_t)mark;
    row->distance[row->count++] = (uint16_t)(distance < UINT16_MAX ? distance : UINT16_MAX);
}

void lp_seen_add_request(struct lp_seen *seen, uint16_t status, bool is_fault)
{
    uint32_t i = 0;
    seen->requests++;
    while (i < seen->fault_count && seen->faults[i].status != status)
        i++;
    if (!is_fault || i == LP_SEEN_FAULTS_MAX)
        return;
    if (i == seen->fault_count)
        seen->faults[seen->fault_count++] = (struct lp_seen_fault){.status = status};
    seen->faults[i].count++;
}

static char shown(char c)
{
    bool is_blank = c == '\n' || c == '\r' || c == '\t';
    return is_blank ? ' ' : c >= ' ' && c < 0x7F ? c : '?';
}

void lp_seen_text(char *room, size_t room_len, struct lp_span text)
{
    size_t n = text.len < room_len - 1 ? text.len : room_len - 1;
    for (size_t i = 0; i < n; i++)
        room[i] = shown(text.ptr[i]);
    room[n] = '\0';
}

bool lp_seen_same(const struct lp_seen_answer *a, const struct lp_seen_answer *b)
{
    return a->is_asked && b->is_asked && a->status && a->status == b->status &&
        a->code == b->code && a->print == b->print;
}
