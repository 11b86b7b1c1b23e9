/* SPDX-License-Identifier: Apache-2.0 */
#include "report/timeline/curve.h"

#include "report/timeline/timeline_parts.h"

#include <math.h>

/* One point under way. */
struct drawing {
	struct place *to;
	const struct curve *curve;
	bool dense;
	int64_t start_ns, end_ns;
	double sum, weight, min, max;
};

static void put_point(struct drawing *d)
{
	struct writer *w = d->to->writer;
	double mean = d->sum / d->weight;

	if (d->weight > 0 && isfinite(mean) && d->end_ns > d->to->view->from_ns) {
		writer_begin(d->to, 'C', d->to->first_tid, MAX(d->start_ns, d->to->view->from_ns));
		(void)fputs(",\"name\":", w->out);
		writer_text(w, d->curve->name);
		(void)fprintf(w->out, ",\"args\":{\"mean\":%.6g", mean);
		if (d->dense)
			(void)fprintf(w->out, ",\"min\":%.6g,\"max\":%.6g", d->min, d->max);
		(void)fputs("}}", w->out);
	}
	d->weight = 0;
}

static void see(struct drawing *d, int64_t start_ns, int64_t end_ns, double value)
{
	start_ns = MAX(start_ns, d->end_ns);
	value *= d->curve->scale;
	if (start_ns >= end_ns || !isfinite(value))
		return;
	if (d->weight > 0 && (!d->dense || start_ns - d->start_ns >= TIMELINE_POINT_NS))
		put_point(d);
	if (d->weight <= 0) {
		d->start_ns = start_ns;
		d->sum = 0;
		d->min = d->max = value;
	}
	d->weight += (double)(end_ns - start_ns);
	d->sum += value * (double)(end_ns - start_ns);
	d->min = fmin(d->min, value);
	d->max = fmax(d->max, value);
	d->end_ns = end_ns;
}

static bool are_dense(const curve_sample_vec *samples)
{
	int64_t span_ns;

	if (samples->cnt < 2)
		return false;
	span_ns = samples->data[samples->cnt - 1].time_ns - samples->data[0].time_ns;
	return span_ns / (int64_t)(samples->cnt - 1) < TIMELINE_POINT_NS;
}

int64_t timeline_curve(struct place *to, const struct curve *curve, const curve_sample_vec *samples)
{
	struct drawing d = {
		.to = to, .curve = curve, .dense = are_dense(samples), .end_ns = curve->from_ns
	};
	const struct curve_sample *before = NULL;

	vec_foreach(sample, samples) {
		if (before != NULL && sample->time_ns <= before->time_ns)
			continue;
		if (curve->meaning == CURVE_NOW && before != NULL)
			see(&d, before->time_ns, sample->time_ns, before->value);
		if (curve->meaning == CURVE_MEAN)
			see(&d, before != NULL ? before->time_ns : curve->from_ns, sample->time_ns,
			    sample->value);
		if (curve->meaning == CURVE_COUNTER && before != NULL)
			see(&d, before->time_ns, sample->time_ns,
			    fmax(sample->value - before->value, 0) * NSEC_PER_SEC /
				    (double)(sample->time_ns - before->time_ns));
		before = sample;
	}
	if (curve->meaning == CURVE_NOW && before != NULL)
		see(&d, before->time_ns, before->time_ns + 1, before->value);
	put_point(&d);
	return d.end_ns;
}
