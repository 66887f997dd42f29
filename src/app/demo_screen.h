/* What the demo shows: one screen of 80 columns for somebody who has never heard of all this. */
#ifndef LP_APP_DEMO_SCREEN_H
#define LP_APP_DEMO_SCREEN_H

#include "app/demo_client.h"

/* The first part: what it is about. */
void lp_demo_show_intro(void);
/* One row of calls: through the round robin, or through the gateway. */
void lp_demo_show_naive(const struct lp_demo_row *row);
void lp_demo_show_gateway(const struct lp_demo_row *row);
/* What to take home. */
void lp_demo_show_end(void);
/* How to try the running gateway. */
void lp_demo_show_running(uint16_t gateway_port, uint16_t naive_port);

#endif
