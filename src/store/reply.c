/* Reading a reply's tree (store/store.h). */
#include "store/store.h"

const struct lp_store_reply *lp_store_reply_item(const struct lp_store_reply *reply, uint32_t index)
{
    const struct lp_store_reply *item = reply ? reply->first : NULL;
    while (item && index--)
        item = item->next;
    return item;
}
