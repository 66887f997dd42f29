/* What may reach a terminal and what may not (app/terminal.h). Servers choose names, descriptions
 * and bodies of errors; a byte sequence among them must not be able to rename the window, hide a
 * line, or answer in the user's place. C1 is left out as UTF-8 too, because terminals obey U+009B
 * as they obey ESC [. */
#include "app/terminal.h"

#include <stdint.h>

static bool is_obeyed(uint32_t point)
{
    bool is_c0 = point < ' ' && point != '\n' && point != '\t';
    bool is_c1 = point >= 0x7F && point <= 0x9F;
    bool is_bidi = (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
    return is_c0 || is_c1 || is_bidi;
}

static size_t length_by_lead(unsigned char lead)
{
    return lead < 0x80 ? 1
        : lead < 0xC2  ? 0
        : lead < 0xE0  ? 2
        : lead < 0xF0  ? 3
        : lead < 0xF5  ? 4
                       : 0;
}

/* The bytes of the character that `text` begins with; 0: it is none, or not to be shown. */
static size_t take_character(struct lp_span text)
{
    static const unsigned char LEAD_BITS[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    size_t len = length_by_lead((unsigned char)text.ptr[0]);
    if (!len || len > text.len)
        return 0;
    uint32_t point = (unsigned char)text.ptr[0] & LEAD_BITS[len];
    for (size_t i = 1; i < len; i++) {
        unsigned char next = (unsigned char)text.ptr[i];
        if ((next & 0xC0) != 0x80)
            return 0;
        point = point << 6 | (next & 0x3F);
    }
    return is_obeyed(point) ? 0 : len;
}

void lp_terminal_put(FILE *to, struct lp_span text)
{
    while (text.len) {
        size_t len = take_character(text);
        if (len)
            fwrite(text.ptr, 1, len, to);
        else
            fputc('?', to);
        text = lp_span_from(text, len ? len : 1);
    }
}
