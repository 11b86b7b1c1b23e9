/* SPDX-License-Identifier: Apache-2.0 */
/* Sets that no clock and no collective relates, but which look like hosts of one job. */
#include "cmd/jobfiles/jobfiles_parts.h"
#include "model/thresholds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Whether the traces say whose they are, and the hosts are two. */
static bool are_two_hosts(const struct jobfile *a, const struct jobfile *b)
{
	const struct fingerprint *x = a->fp, *y = b->fp;

	if (a->rank < 0 || b->rank < 0 || x->world_size <= 0 || x->world_size != y->world_size)
		return false;
	if (x->job_id[0] != '\0' && y->job_id[0] != '\0' && strcmp(x->job_id, y->job_id) != 0)
		return false;
	return x->host[0] != '\0' && y->host[0] != '\0' && strcmp(x->host, y->host) != 0;
}

static const struct fp_iteration *step_of(const struct fingerprint *fp, int64_t number)
{
	for (size_t i = 0; i < fp->iteration_cnt; i++) {
		if (fp->iterations[i].number == number)
			return &fp->iterations[i];
	}
	return NULL;
}

/* Whether the steps are the same and take as long together. One step more at an end is fine. */
static bool step_alike(const struct fingerprint *a, const struct fingerprint *b)
{
	double a_ns = 0, b_ns = 0;
	size_t common = 0;

	for (size_t i = 0; i < a->iteration_cnt; i++) {
		const struct fp_iteration *other = step_of(b, a->iterations[i].number);

		if (other == NULL)
			continue;
		common++;
		a_ns += (double)a->iterations[i].dur_ns;
		b_ns += (double)other->dur_ns;
	}
	return common >= JOBFILES_ALIKE_CNT && common + 1 >= a->iteration_cnt &&
	       common + 1 >= b->iteration_cnt &&
	       fabs(a_ns - b_ns) <= JOBFILES_ALIKE * fmax(a_ns, b_ns);
}

static bool says_steps(const struct fingerprint *fp)
{
	return fp->iterations_by == ITERATIONS_ANNOTATION && fp->iteration_cnt > 0 &&
	       fp->iterations[0].number >= 0;
}

static bool is_near(const struct fingerprint *a, const struct fingerprint *b)
{
	return llabs(a->window_start_wall_ns - b->window_start_wall_ns) <= JOBFILES_ALIKE_NS;
}

/* Each pair may be of one job, and the iterations of one are as long. */
bool jobfiles_alike(const struct jobfiles *j, uint32_t a, uint32_t b)
{
	bool alike = false;

	for (size_t i = 0; i < j->used_cnt; i++) {
		for (size_t k = 0; k < j->used_cnt && j->files[i].set == a; k++) {
			const struct fingerprint *x = j->files[i].fp, *y = j->files[k].fp;

			if (j->files[k].set != b)
				continue;
			if (!are_two_hosts(&j->files[i], &j->files[k]) || !says_steps(x) ||
			    !says_steps(y) || !is_near(x, y))
				return false;
			alike |= step_alike(x, y);
		}
	}
	return alike;
}

bool jobfiles_complete(const struct jobfiles *j)
{
	int world_size = j->used_cnt > 0 ? j->files[0].fp->world_size : 0;

	return world_size > 0 && j->worker_cnt == (uint32_t)world_size &&
	       j->used_cnt == j->worker_cnt;
}
