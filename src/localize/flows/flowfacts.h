/* SPDX-License-Identifier: Apache-2.0 */
/* What an accusation of a link is based on where TCP shows its rate. Zeroed: no such accusation. */
#pragma once

#include "base/base.h"

#include <stddef.h>

struct flow_facts {
	size_t slow_cnt; /* paths that the accused link slows down */
	/* The slowest of them: hosts, addresses, the card of the sender ("" unknown). Borrowed. */
	const char *from_host, *to_host, *local, *remote, *card;
	double bytes_per_sec;	     /* while data is on the way */
	double busy_frac;	     /* of the window: data is on the way */
	double before_bytes_per_sec; /* in the job's own past; 0 unknown */
	double retransmitted_frac;   /* of its bytes */
	size_t usual_cnt;	     /* paths that are not slow, 0: none to compare with */
	double usual_bytes_per_sec, usual_busy_frac; /* of these */
	bool either_end; /* the path alone is known, not which of its hosts */
};
