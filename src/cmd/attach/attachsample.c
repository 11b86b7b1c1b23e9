/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/attach/attachsample.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/* Readers find Python before the first round, and names after the last one. */
enum { BEGIN_MS = 300, NAMES_MS = 60000, CHECK_MS = 100 };

static int begin_all(struct attachsample *sample, const struct jobranks *ranks,
		     const struct sampling_plan *plan, struct err *err)
{
	int error = vec_reserve(&sample->readers, ranks->ranks.cnt + 1);

	for (size_t i = 0; i < ranks->ranks.cnt && error == 0; i++) {
		const struct jobrank *rank = &ranks->ranks.data[i];
		struct sampling reader;

		error = sampling_begin(&reader, plan, rank->pid, rank->rank);
		if (error == 0)
			sample->readers.data[sample->readers.cnt++] = reader;
	}
	return error < 0 ? err_set(err, -error, "cannot start a reader: %s", strerror(-error)) : 0;
}

static bool all_ended(const struct attachsample *sample)
{
	vec_foreach(reader, &sample->readers) {
		struct pollfd end = { .fd = reader->end, .events = POLLIN };

		if (poll(&end, 1, 0) == 0)
			return false;
	}
	return true;
}

/* Until the window is over, all readers have ended, or the user has had enough. */
static void await(struct attachsample *sample, int64_t end_ns, const volatile sig_atomic_t *stop)
{
	while (clock_mono_ns() < end_ns && !all_ended(sample)) {
		if (*stop != 0) {
			sample->interrupted = true;
			break;
		}
		(void)poll(NULL, 0, CHECK_MS);
	}
	if (sample->interrupted)
		vec_foreach(reader, &sample->readers)
			sampling_stop(reader);
}

static int finish_all(struct attachsample *sample, struct err *err)
{
	const int64_t limit_ns = clock_mono_ns() + NAMES_MS * NSEC_PER_MSEC;
	int error = 0;

	vec_foreach(reader, &sample->readers) {
		const struct sampled_rank *rank = sampling_finish(reader, limit_ns);

		if (error == 0 && rank->moment_cnt > 0)
			error = vec_push(&sample->ranks, *rank);
		else if (error == 0)
			error = vec_push(&sample->failed, rank);
	}
	if (error < 0)
		return err_set(err, ENOMEM, "out of memory");
	if (sample->ranks.cnt > 0)
		return 0;
	return err_set(err, EIO, "%s",
		       sample->failed.cnt > 0 && sample->failed.data[0]->error[0] != '\0'
			       ? sample->failed.data[0]->error
			       : "no rank could be sampled: the window ended at once");
}

int attachsample_take(struct attachsample *sample, const struct jobranks *ranks, int64_t period_ns,
		      uint32_t round_cnt, const volatile sig_atomic_t *stop, struct err *err)
{
	const struct sampling_plan plan = {
		.begin_ns = clock_mono_ns() + BEGIN_MS * NSEC_PER_MSEC,
		.period_ns = period_ns,
		.round_cnt = round_cnt,
	};
	int error;

	*sample = (struct attachsample){ 0 };
	error = begin_all(sample, ranks, &plan, err);
	if (error < 0)
		return error;
	await(sample, plan.begin_ns + (int64_t)round_cnt * period_ns, stop);
	error = finish_all(sample, err);
	sample->job = (struct sampled_job){
		.ranks = sample->ranks.data,
		.cnt = sample->ranks.cnt,
		.world_size = ranks->world_size,
		.round_cnt = round_cnt,
		.period_ns = period_ns,
	};
	return error;
}

void attachsample_done(struct attachsample *sample)
{
	vec_foreach(reader, &sample->readers)
		sampling_done(reader);
	vec_done(&sample->readers);
	vec_done(&sample->ranks);
	vec_done(&sample->failed);
}
