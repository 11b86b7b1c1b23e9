/* SPDX-License-Identifier: Apache-2.0 */
/* A host's fingerprints in messages of a limited size. */
#include "center/wire/fpwire.h"

#include <errno.h>

/* What a message says less of when one worker is too large for it. */
static int say_less(const struct fingerprint *fp, struct fpwire_options *options)
{
	uint64_t max = options->collective_max > 0
			       ? MIN(options->collective_max, (uint64_t)fp->collective_cnt)
			       : fp->collective_cnt;

	if (options->detail == FPWIRE_FUNCTIONS)
		return -EMSGSIZE;
	if (options->detail == FPWIRE_LEADS)
		options->detail = FPWIRE_TIMES;
	else if (max > 1)
		options->collective_max = max / 2;
	else
		options->detail = FPWIRE_FUNCTIONS;
	return 0;
}

int fpwire_encode_parts(const struct fingerprint *const *fps, size_t cnt,
			const struct fpwire_options *options, size_t limit, fpwire_emit *emit,
			void *arg, struct err *err)
{
	struct fpwire_options less = *options;
	struct str out = { 0 };
	int error = fpwire_encode(fps, cnt, options, &out, err);
	bool fits = out.len <= limit;

	if (error == 0 && fits)
		error = emit(arg, out.data, out.len);
	str_done(&out);
	if (error < 0 || fits)
		return error;
	if (cnt > 1) {
		error = fpwire_encode_parts(fps, cnt / 2, options, limit, emit, arg, err);
		if (error < 0)
			return error;
		return fpwire_encode_parts(fps + cnt / 2, cnt - cnt / 2, options, limit, emit, arg,
					   err);
	}
	error = cnt == 1 ? say_less(fps[0], &less) : -EMSGSIZE;
	if (error < 0)
		return err_set(err, -error, "%zu bytes are too few for one worker", limit);
	return fpwire_encode_parts(fps, cnt, &less, limit, emit, arg, err);
}
