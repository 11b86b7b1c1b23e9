/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fingerprints between hosts and the center: all workers of one host in one
 * message, in columns of 16-bit numbers (code16.h), with the names of functions
 * left out where the center knows them (fpnames.h). fingerprint.h has the file of
 * one worker, complete and exact; here bytes count, and every loss is stated:
 *
 *	exact		ranks, ids, times of day, window_ns, iteration numbers, collectives'
 *			group, name, size, seq and bytes, counts of events and drops
 *	1/2048		of itself: share_ns, rest_ns, gc_ns, executions, mu, sigma, fractions
 *			of the host (2^-31 where that is more), times of shares and leads;
 *			elements and bytes of functions (1/32 where that is more)
 *	1/512		of itself: beta, thread_ns; 1/128: total_ns. A number this near to the
 *			one expected is taken for it (2^-30 and 4 ns where that is more)
 *	below 1 us	start and end of collectives, class_ns; those that add up to the
 *			window still do
 *	below 1/4096	of the mean iteration: starts and ends of iterations
 *	derived		critical_ns: beta * window (eq. 2)
 *	left out	frames that no function is in or below; functions beyond function_max
 *			(their share is in rest_ns); why GPUs were not sampled
 *
 * Protocol. Any message may get lost, come twice or in any order.
 *	host    fingerprints, without names unless the center is new
 *	center  asks for the names that it does not know: fpwire_ask()
 *	host    those names: fpwire_encode_names()
 *	center  asks for more detail of some workers: fpwire_ask_workers()
 *	host    their fingerprints again
 * The center asks again after a time-out. Places in its dictionary depend on whom it
 * heard first; what is added up or printed goes by ids, ranks and keys.
 * Source: docs/center.md for what it costs.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "center/wire/fpwire_message.h"

struct fpwire_options {
	uint64_t profile; /* the order it answers */
	enum fpwire_detail detail;
	bool names;		 /* with the names of all functions */
	uint32_t function_max;	 /* of one worker, the largest; 0: all */
	int64_t lead_min_ns;	 /* shorter shares of leads are joined to "not listed" */
	uint64_t collective_max; /* of one worker, the last; 0: all; the rest counts as dropped */
};

/*
 * Appends one message with fps[cnt], of one host. Returns 0; -EINVAL with a line in
 * err for more than FPWIRE_WORKER_MAX workers or a fingerprint that breaks the
 * promises of fingerprint.h; -ENOMEM. Same fingerprints, same bytes.
 */
_must_check_ int fpwire_encode(const struct fingerprint *const *fps, size_t cnt,
			       const struct fpwire_options *options, struct str *out,
			       struct err *err);

/* Takes one message, borrowed. Returns 0 or a negative errno, which ends the sending. */
typedef int fpwire_emit(void *arg, const void *data, size_t len);

/*
 * fpwire_encode() for a bus that has a limit: hands over messages of at most limit
 * bytes, as few as halving gives, each complete in itself. A worker that is too large
 * alone goes without leads, then with ever fewer of its last collectives, which its
 * message says. Errors as fpwire_encode(); -EMSGSIZE when its functions alone are too
 * large; what emit() returned. Encodes up to 2 log(cnt) times as much as it sends.
 */
_must_check_ int fpwire_encode_parts(const struct fingerprint *const *fps, size_t cnt,
				     const struct fpwire_options *options, size_t limit,
				     fpwire_emit *emit, void *arg, struct err *err);

/*
 * Appends a message with names that the frames of fps[cnt] have, and with those of
 * their callers: ask[ask_cnt], or all with ask NULL. What is asked and is not there
 * is left out. Errors as above.
 */
_must_check_ int fpwire_encode_names(const struct fingerprint *const *fps, size_t cnt,
				     const struct fpname_id *ask, size_t ask_cnt, struct str *out,
				     struct err *err);

/*
 * Decodes one message of any type into *message, and what it names into *names, which
 * may be NULL: then every place is FRAME_NONE. Every length, index and value is
 * checked, and a hash over all bytes: -EINVAL with offset, expected and found in err
 * for what is truncated, foreign, damaged or of another version; -ENOMEM; -ENOBUFS for
 * a full dictionary. After an error *message holds nothing, *names at most more names.
 * Allocates only to grow. O(len + rows).
 */
_must_check_ int fpwire_decode(struct fpwire *message, const void *data, size_t len,
			       struct fpnames *names, struct err *err);

/*
 * Appends a message that asks for the names that message lacks and fewer than
 * ask_max senders were asked for, and notes that in names. Returns how many it asks for
 * (0: nothing was appended) or -ENOMEM.
 */
_must_check_ int fpwire_ask(struct fpnames *names, const struct fpwire *message, uint8_t ask_max,
			    struct str *out);

/* Appends a message that asks for ranks[cnt] of a profile in more detail. 0 or -ENOMEM. */
_must_check_ int fpwire_ask_workers(uint64_t profile, enum fpwire_detail detail, const int *ranks,
				    size_t cnt, struct str *out);

/*
 * The fingerprint of workers.data[worker], with everything it needs in its own arena:
 * functions largest first, the equal ones by id; frames of functions that have no
 * name yet are called "unresolved" and are roots. names: as given to fpwire_decode();
 * what else it holds makes no difference. ret_unresolved, may be NULL: how many they are. Returns 0
 * or -ENOMEM; *ret is initialized by this call and must be freed by fingerprint_done() on success
 * only.
 */
_must_check_ int fpwire_rebuild(const struct fpwire *message, size_t worker,
				const struct fpnames *names, struct fingerprint *ret,
				size_t *ret_unresolved);
