/* SPDX-License-Identifier: Apache-2.0 */
/* The two processes of fleetsockets_bench: the one that plays all hosts, and what they share. */
#pragma once

#include "base/base.h"

struct fleetsockets {
	volatile int64_t order_ns; /* when the hub gave it */
	volatile uint32_t resent;  /* results that were not acknowledged in time */
	int64_t heard_ns[];	   /* by host: when it had the order */
};

/* Never returns; ends the process after an error. port: of a nats-server here, without users. */
void fleetsockets_play(struct fleetsockets *shared, unsigned port, uint32_t hosts)
	__attribute__((noreturn));
