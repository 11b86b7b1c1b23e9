/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training processes that go on when the job's command has failed: a launcher that is killed cannot
 * end its ranks. They keep their devices, and their ports, until they are ended.
 */
#pragma once

#include "base/str.h"
#include "live/link/wire.h"

/*
 * Appends "; 2 ranks still run without it (pids 77, 78): ..." for the workers of this host whose
 * processes run, else nothing. proc_root: as of procfs.h.
 */
void orphans_append(const char *proc_root, const struct wire_state *states, size_t cnt,
		    struct str *out);
