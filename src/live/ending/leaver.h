/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank that ends its program well while it is as far as the others usually means that the job is
 * over, so ranks that are silent then shut down (hang_job_is_ending()). But if the others wait in a
 * collective and go on to do so, they wait for the rank that has left: it called exit(), or its
 * data ended sooner.
 */
#pragma once

#include "live/link/wire.h"
#include "live/link/wire_hang.h"

/* Silence in a collective from which on no job only shuts down. */
#define LEAVER_NS (60 * NSEC_PER_SEC)

/* Whether a blocked worker has been in a collective for so long. */
bool leaver_is_awaited(const struct wire_state *states, size_t cnt, const struct wire_where *wheres,
		       size_t where_cnt, int64_t now_ns);
