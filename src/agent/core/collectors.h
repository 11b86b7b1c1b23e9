/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which collectors of the agent run now: one place decides, from what this
 * process can record, whether a window is open, the daemon's self-audit, and how
 * much it told us to leave out.
 *
 *			marks	10 Hz + collectives	500 Hz + operators
 *	between windows	  x		x
 *	in a window	  x		x			x
 *	audit, off	  x	  (x, of a window)
 *
 * A GPU is recorded in windows only; audits leave it alone, since attaching is dear.
 *
 * Called on the training thread, with the interpreter lock held.
 * Source: ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "format/shared/recorder.h"

/* Attaches to the recorder; what it can record is opened one by one afterwards. */
void collectors_attach(struct flight *flight);

/* Notes that a source works (why NULL) or is absent, for everybody who reads the recorder. */
void collectors_note(enum flight_source source, const char *why);

/* Notes that a source works, and what there is to say of it nevertheless. */
void collectors_remark(enum flight_source source, const char *what);

/*
 * codes[cnt]: addresses of the code objects of the calling thread's stack,
 * innermost first, as Python itself says; what the sampler reads must be the same.
 */
void collectors_open_stacks(const uintptr_t *codes, size_t cnt);

/* Look for torch's hook; then between begin and end the caller runs torch.empty(0). */
void collectors_open_operators(const char *torch_version);
void collectors_check_operators(bool begin);

/* Starts the helper thread and what is always on. Returns 0 or -errno. */
_must_check_ int collectors_run(void);

/*
 * A window of the order. hz: stack samples a second, 0 the default. exact: trace Python
 * calls; if that can't be done FLIGHT_SOURCE_EXACT says why, and samples are all there is.
 * whole: a GPU that the process uses must be recorded, too. Returns 0; -ENOTSUP when
 * stacks or operators can't be recorded; when a GPU can't, FLIGHT_SOURCE_GPU says why:
 * -EBUSY, another tool records it, or -ENODEV. Nothing is open then.
 */
_must_check_ int collectors_open_window(uint64_t order_id, uint32_t hz, bool exact, bool whole);
void collectors_close_window(void);
bool collectors_window_is_open(void);

/* Whether all that was recorded in the last window is in the recorder: a GPU's events come late. */
bool collectors_window_is_complete(void);

/* Nobody waits for that any more. */
void collectors_abandon_window(void);

/* At each iteration mark. Two loads when there is nothing to do. */
void collectors_step(uint64_t step);

/* Ends all of it, for good. */
void collectors_stop(void);

/* In a forked child: nothing is touched that is the parent's. */
void collectors_forked(void);
