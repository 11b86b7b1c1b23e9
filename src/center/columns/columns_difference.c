/* SPDX-License-Identifier: Apache-2.0 */
#include "center/columns/columns_accuse.h"
#include "center/columns/differ_codes.h"
#include "localize/late/randompauses.h"
#include "model/code16.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* One function in one peer group, or in some of its members. */
struct comparison {
	const struct columns *columns;
	const struct columns_function *f;
	const struct accuse_options *options;
	size_t begin_place, member_cnt; /* of the group */
	size_t first;			/* its rows */
	struct differ_codes codes;
	uint32_t *sample; /* places, counted from the group's first */
	size_t sample_cnt;
	uint32_t *rows; /* scratch: the sample as rows */
	uint32_t *far;
	uint32_t *order;   /* scratch of the draw */
	uint16_t *some[3]; /* columns of some of the members */
	uint32_t *histogram;
	double *iteration_ns; /* by place */
	struct differ_found found;
};

static void comparison_done(struct comparison *c)
{
	free(c->sample);
	free(c->rows);
	free(c->far);
	free(c->order);
	free(c->histogram);
	free(c->iteration_ns);
	for (int dim = 0; dim < 3; dim++)
		free(c->some[dim]);
}

static int comparison_init(struct comparison *c, const struct columns *columns,
			   const struct accuse_options *options)
{
	size_t cnt = columns->workers.cnt + 1;

	*c = (struct comparison){ .columns = columns, .options = options };
	c->sample = calloc(DIFFER_PEERS, sizeof(*c->sample));
	c->rows = calloc(DIFFER_PEERS, sizeof(*c->rows));
	c->far = malloc(cnt * sizeof(*c->far));
	c->order = malloc(cnt * sizeof(*c->order));
	c->histogram = calloc(UINT16_MAX + 1, sizeof(*c->histogram));
	c->iteration_ns = malloc(cnt * sizeof(*c->iteration_ns));
	for (int dim = 0; dim < 3; dim++) {
		c->some[dim] = malloc(cnt * sizeof(uint16_t));
		if (c->some[dim] == NULL)
			return -ENOMEM;
	}
	if (c->sample == NULL || c->rows == NULL || c->far == NULL || c->order == NULL ||
	    c->histogram == NULL || c->iteration_ns == NULL)
		return -ENOMEM;
	for (size_t place = 0; place < columns->workers.cnt; place++) {
		const struct columns_worker *w = &columns->workers.data[columns->worker_at[place]];

		c->iteration_ns[place] = (double)w->window_ns / (double)w->iterations;
	}
	return 0;
}

/* The peers that all functions of the group are compared with. */
static void choose_group(struct comparison *c, uint32_t group)
{
	c->begin_place = c->columns->group_first.data[group];
	c->member_cnt = c->columns->group_first.data[group + 1] - c->begin_place;
	c->sample_cnt = MIN(c->member_cnt, (size_t)DIFFER_PEERS);
	differ_draw(c->order, c->member_cnt, c->sample_cnt, c->options->differ.seed);
	memcpy(c->sample, c->order, c->sample_cnt * sizeof(*c->sample));
}

static void choose_function(struct comparison *c, const struct columns_function *f)
{
	size_t end = columns_row_from(c->columns, f, c->begin_place + c->member_cnt);

	c->f = f;
	c->first = columns_row_from(c->columns, f, c->begin_place);
	c->codes = (struct differ_codes){ c->columns->codes[COLUMN_BETA] + c->first,
					  c->columns->codes[COLUMN_MU] + c->first,
					  c->columns->codes[COLUMN_SIGMA] + c->first,
					  end - c->first, c->member_cnt - (end - c->first) };
}

static double beta_of(const struct comparison *c, size_t row)
{
	return code16_frac(c->codes.beta[row]);
}

/* Time per iteration that a row has more than is normal. */
static double excess_ns(const struct comparison *c, size_t row, double normal_beta)
{
	return (beta_of(c, row) - normal_beta) * c->iteration_ns[c->columns->place[c->first + row]];
}

/* Rows of sample[cnt] places; those that list nothing are counted in *ret_absent. */
static size_t rows_at(const struct comparison *c, const uint32_t *sample, size_t cnt,
		      uint32_t *ret_rows, size_t *ret_absent)
{
	size_t kept = 0;

	for (size_t i = 0; i < cnt; i++) {
		size_t row =
			columns_row_find(c->columns, c->f, (uint32_t)c->begin_place + sample[i]);

		if (row != SIZE_MAX)
			ret_rows[kept++] = (uint32_t)(row - c->first);
	}
	*ret_absent = cnt - kept;
	return kept;
}

/*
 * Cost of a slow link, computed from the unused bandwidth: the ring is as slow on
 * all its members, so no worker's share of time is an outlier.
 */
static double unused_bandwidth_ns(const struct comparison *c, size_t row, double normal_mu)
{
	double mu = code16_frac(c->codes.mu[row]);

	if (isnan(mu) || normal_mu <= mu)
		return 0;
	return beta_of(c, row) * (1 - mu / normal_mu) * c->columns->iteration_ns;
}

/*
 * Rows that could be worth a finding: for their time or, in communication, for the
 * bandwidth that they leave unused. normal_mu: NAN for other functions.
 */
static size_t find_costly(const struct comparison *c, double normal_beta, double normal_mu,
			  uint32_t *ret_rows)
{
	double limit = c->options->min_gain_frac * c->columns->iteration_ns;
	size_t cnt = 0;

	for (uint32_t row = 0; row < c->codes.row_cnt; row++) {
		if (beta_of(c, row) > DIFFER_MIN_BETA &&
		    (excess_ns(c, row, normal_beta) >= limit ||
		     (!isnan(normal_mu) && unused_bandwidth_ns(c, row, normal_mu) >= limit)))
			ret_rows[cnt++] = row;
	}
	return cnt;
}

/*
 * With all members of a large group as peers: the threshold is computed from the deltas of
 * COLUMNS_THRESHOLD_CNT of them. far is set only for workers that could be worth a finding.
 */
static int compare_many(struct comparison *c, struct differ_exact *exact, double normal_beta,
			double normal_mu)
{
	size_t row_cnt = c->codes.row_cnt, absent, cnt;
	_cleanup_free_ uint32_t *rows = malloc((row_cnt + COLUMNS_THRESHOLD_CNT) * sizeof(*rows));
	_cleanup_free_ uint32_t *far = malloc((row_cnt + 1) * sizeof(*far));
	size_t chosen;
	int error;

	if (rows == NULL || far == NULL)
		return -ENOMEM;
	differ_draw(c->order, c->member_cnt, COLUMNS_THRESHOLD_CNT, c->options->differ.seed);
	cnt = rows_at(c, c->order, COLUMNS_THRESHOLD_CNT, rows, &absent);
	error = differ_exact_threshold(exact, rows, cnt, absent, &c->found);
	if (error < 0)
		return error;
	chosen = find_costly(c, normal_beta, normal_mu, rows);
	error = differ_exact_count(exact, rows, chosen, far, &c->found.far_absent);
	memset(c->far, 0, row_cnt * sizeof(*c->far));
	for (size_t i = 0; i < chosen && error == 0; i++)
		c->far[rows[i]] = far[i];
	c->found.exceeded = chosen > 0;
	return error;
}

static int compare_with_all(struct comparison *c, double normal_beta, double normal_mu)
{
	struct differ_exact *exact;
	int error;

	if (c->member_cnt <= COLUMNS_WHOLE_MAX)
		return differ_codes_exact(&c->codes, c->far, &c->found);
	error = differ_exact_open(&c->codes, &exact);
	if (error < 0)
		return error;
	error = compare_many(c, exact, normal_beta, normal_mu);
	differ_exact_close(exact);
	return error;
}

/* Compares the members of the group. */
static int compare(struct comparison *c, double normal_beta, double normal_mu)
{
	if (c->options->differ.exact)
		return compare_with_all(c, normal_beta, normal_mu);
	for (size_t i = 0; i < c->sample_cnt; i++) {
		size_t row =
			columns_row_find(c->columns, c->f, (uint32_t)c->begin_place + c->sample[i]);

		c->rows[i] = row == SIZE_MAX ? DIFFER_NO_ROW : (uint32_t)(row - c->first);
	}
	return differ_codes_sampled(&c->codes, c->rows, c->sample_cnt, c->far, &c->found);
}

/* Rows that are abnormal (eq. 11). Returns how many. */
static size_t find_abnormal(const struct comparison *c, uint32_t *ret_rows)
{
	size_t cnt = 0;

	for (uint32_t row = 0; row < c->codes.row_cnt && c->found.exceeded; row++) {
		if (beta_of(c, row) > DIFFER_MIN_BETA &&
		    (double)c->far[row] / c->found.of > c->found.threshold)
			ret_rows[cnt++] = row;
	}
	return cnt;
}

/* Codes are in the order of their numbers: the code at a place of that order. */
static uint16_t code_at(const uint32_t *histogram, size_t place)
{
	size_t seen = histogram[0];
	uint16_t code = 0;

	while (seen <= place)
		seen += histogram[++code];
	return code;
}

static uint16_t largest_code(const struct comparison *c, const uint16_t *codes)
{
	uint16_t top = 0;

	for (size_t row = 0; row < c->codes.row_cnt; row++) {
		uint16_t code = codes[row] == CODE16_ABSENT ? 0 : codes[row];

		top = code > top ? code : top;
	}
	return top;
}

/* Median of a column where it is not absent, and of absent_cnt zeros; NAN of nothing. */
static double median_code(struct comparison *c, const uint16_t *codes, size_t absent_cnt)
{
	size_t cnt = absent_cnt;
	double low, high;

	memset(c->histogram, 0, ((size_t)largest_code(c, codes) + 1) * sizeof(*c->histogram));
	c->histogram[0] = (uint32_t)absent_cnt;
	for (size_t row = 0; row < c->codes.row_cnt; row++) {
		if (codes[row] == CODE16_ABSENT)
			continue;
		c->histogram[codes[row]]++;
		cnt++;
	}
	if (cnt == 0)
		return (double)NAN;
	low = code16_frac(code_at(c->histogram, (cnt - 1) / 2));
	high = code16_frac(code_at(c->histogram, cnt / 2));
	return cnt % 2 == 1 ? low : low + 0.5 * (high - low);
}

/* rows[cnt] of c's group become an accusation; delta: the largest of theirs. */
static int push_accusation(const struct comparison *c, const uint32_t *rows, size_t cnt,
			   double normal_beta, double delta, struct arena *arena, accusations *out)
{
	uint32_t *workers = arena_calloc(arena, cnt + 1, sizeof(*workers));
	struct accusation a = {
		.witness = WITNESS_DIFFERENCE,
		.workers = workers,
		.worker_cnt = cnt,
		.frame = c->f->frame,
		.function = (uint32_t)(c->f - c->columns->functions.data),
		.class = c->f->class,
		.threshold = c->found.threshold,
		.differential_distance = delta,
	};
	double beta = 0;

	if (workers == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		workers[i] = c->columns->worker_at[c->columns->place[c->first + rows[i]]];
		beta = fmax(beta, beta_of(c, rows[i]));
	}
	a.own_ns = (beta - normal_beta) * c->columns->iteration_ns;
	a.gain_ns = fmax(a.own_ns, 0);
	return vec_push(out, a);
}

static double largest_delta(const struct comparison *c, const uint32_t *rows, size_t cnt)
{
	uint32_t far = 0;

	for (size_t i = 0; i < cnt; i++)
		far = MAX(far, c->far[rows[i]]);
	return (double)far / c->found.of;
}

/* --- work --- */

static int accuse_work(struct comparison *c, struct arena *arena, accusations *out)
{
	double limit = c->options->min_gain_frac * c->columns->iteration_ns;
	double normal = median_code(c, c->codes.beta, c->codes.absent_cnt);
	size_t cnt, kept = 0;
	int error;

	/* If no worker could be worth a finding, none is compared. */
	if (find_costly(c, normal, (double)NAN, c->order) == 0)
		return 0;
	error = compare(c, normal, (double)NAN);
	if (error < 0)
		return error;
	cnt = find_abnormal(c, c->order);
	for (size_t i = 0; i < cnt; i++) {
		if (excess_ns(c, c->order[i], normal) >= limit)
			c->order[kept++] = c->order[i];
	}
	if (kept == 0)
		return 0;
	return push_accusation(c, c->order, kept, normal, largest_delta(c, c->order, kept), arena,
			       out);
}

/* --- communication --- */

/* Compares the abnormal rows[cnt] with each other. codes and found of c become theirs. */
static int compare_some(struct comparison *c, const uint32_t *rows, size_t cnt)
{
	const uint16_t *columns[3] = { c->codes.beta, c->codes.mu, c->codes.sigma };
	size_t want = MIN(cnt, (size_t)DIFFER_PEERS);
	_cleanup_free_ uint32_t *order = calloc(cnt + 1, sizeof(*order));

	if (order == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		for (int dim = 0; dim < 3; dim++)
			c->some[dim][i] = columns[dim][rows[i]];
	}
	c->codes = (struct differ_codes){ c->some[0], c->some[1], c->some[2], cnt, 0 };
	if (c->options->differ.exact)
		return differ_codes_exact(&c->codes, c->far, &c->found);
	differ_draw(order, cnt, want, c->options->differ.seed);
	return differ_codes_sampled(&c->codes, order, want, c->far, &c->found);
}

/*
 * Of the abnormal, those that differ from the other abnormal; all of them when none
 * does. c->found and *ret_delta are of the comparison that decided.
 */
static int narrow(struct comparison *c, uint32_t *rows, size_t *cnt, double *ret_delta)
{
	struct differ_codes codes = c->codes;
	struct differ_found found = c->found;
	_cleanup_free_ uint32_t *odd = calloc(*cnt + 1, sizeof(*odd));
	size_t odd_cnt = 0;
	int error = odd != NULL ? 0 : -ENOMEM;

	*ret_delta = largest_delta(c, rows, *cnt);
	if (error == 0 && *cnt >= DIFFER_MIN_PEERS) {
		error = compare_some(c, rows, *cnt);
		odd_cnt = error == 0 ? find_abnormal(c, odd) : 0;
	}
	c->codes = codes;
	if (error == 0 && odd_cnt > 0) {
		*ret_delta = largest_delta(c, odd, odd_cnt);
		for (size_t i = 0; i < odd_cnt; i++)
			rows[i] = rows[odd[i]];
		*cnt = odd_cnt;
	} else {
		c->found = found;
	}
	return error;
}

/*
 * All members of a slow ring take as long. Of those that differ from the other
 * rings, the culprit is the one that differs from its ring.
 */
static int accuse_comm(struct comparison *c, struct arena *arena, accusations *out)
{
	double limit = c->options->min_gain_frac * c->columns->iteration_ns, normal, mu, gain = 0,
	       delta;
	uint32_t *rows = c->order;
	size_t cnt;
	int error;

	mu = median_code(c, c->codes.mu, 0);
	/* Without a resource, a longer collective only says that its members waited. */
	if (isnan(mu))
		return 0;
	normal = median_code(c, c->codes.beta, c->codes.absent_cnt);
	error = compare(c, normal, mu);
	if (error < 0)
		return error;
	cnt = find_abnormal(c, rows);
	if (cnt == 0)
		return 0;
	for (size_t i = 0; i < cnt; i++)
		gain = fmax(gain, (beta_of(c, rows[i]) - normal) * c->columns->iteration_ns);
	error = narrow(c, rows, &cnt, &delta);
	if (error == 0)
		error = push_accusation(c, rows, cnt, normal, delta, arena, out);
	if (error < 0)
		return error;
	if (gain < limit)
		gain = fmax(gain, unused_bandwidth_ns(c, rows[0], mu));
	out->data[out->cnt - 1].gain_ns = out->data[out->cnt - 1].own_ns = gain;
	out->cnt -= gain < limit;
	return 0;
}

int columns_accuse_difference(const struct columns *columns, const struct accuse_options *options,
			      struct arena *arena, accusations *out)
{
	struct comparison c;
	size_t first = out->cnt;
	int error = comparison_init(&c, columns, options);

	for (uint32_t group = 0; group + 1 < columns->group_first.cnt && error == 0; group++) {
		choose_group(&c, group);
		for (size_t i = 0; i < columns->functions.cnt && error == 0; i++) {
			const struct columns_function *f = &columns->functions.data[i];

			if (f->frame == FRAME_NONE || c.member_cnt < DIFFER_MIN_PEERS)
				continue;
			choose_function(&c, f);
			error = f->class == CLASS_COMM ? accuse_comm(&c, arena, out)
						       : accuse_work(&c, arena, out);
		}
	}
	comparison_done(&c);
	return error == 0 ? pauses_join(out, first, columns->workers.cnt, arena) : error;
}
