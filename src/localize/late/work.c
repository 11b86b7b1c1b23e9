/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/late/work.h"

#include "model/thresholds.h"

#include <math.h>

static double executions(const struct job *job, const struct job_function *f, size_t w)
{
	return f->of[w] != NULL ? (double)f->of[w]->executions / job->workers[w].iterations : 0;
}

bool work_is_same(const struct job *job, size_t a, size_t b)
{
	if (job->workers[a].group != job->workers[b].group)
		return false;
	vec_foreach(f, &job->functions) {
		double once = executions(job, f, a), other = executions(job, f, b);
		double beta = fmax(f->of[a] != NULL ? f->of[a]->beta_frac : 0,
				   f->of[b] != NULL ? f->of[b]->beta_frac : 0);

		if (f->class == CLASS_COMPUTE && beta >= WORK_MIN_BETA &&
		    fabs(once - other) > WORK_AS_OFTEN * fmax(once, other))
			return false;
	}
	return true;
}

bool work_is_common(const struct job *job, const struct job_function *f, size_t a, size_t b)
{
	double once = executions(job, f, a), other = executions(job, f, b);

	if (f->class != CLASS_COMPUTE || once <= 0 || other <= 0)
		return false;
	return fabs(once - other) <= WORK_AS_OFTEN * fmax(once, other) &&
	       fabs(f->of[a]->elements - f->of[b]->elements) <=
		       WORK_AS_MANY * fmax(fabs(f->of[a]->elements), fabs(f->of[b]->elements));
}

double work_elements_ratio(const struct job *job, size_t a, size_t b)
{
	double of_a = 0, of_b = 0;

	vec_foreach(f, &job->functions) {
		if (f->class != CLASS_COMPUTE || f->of[a] == NULL || f->of[b] == NULL ||
		    !(f->of[a]->elements > 0) || !(f->of[b]->elements > 0))
			continue;
		of_a += f->of[a]->elements * executions(job, f, a);
		of_b += f->of[b]->elements * executions(job, f, b);
	}
	return of_b > 0 ? of_a / of_b : (double)NAN;
}

double work_compute_ns(const struct job *job, size_t w)
{
	return (double)job->workers[w].fp->class_ns[CLASS_COMPUTE] / job->workers[w].iterations;
}

double work_compute_ratio(const struct job *job, size_t a, size_t b)
{
	return work_compute_ns(job, a) / work_compute_ns(job, b);
}
