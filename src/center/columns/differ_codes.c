/* SPDX-License-Identifier: Apache-2.0 */
#include "center/columns/differ_codes.h"

#include "center/columns/differ_parts.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define BLOCK 512 /* points at once: they and their counts stay in the nearest cache */

/* --- eq. 8 --- */

static uint16_t largest_code(const uint16_t *codes, size_t cnt)
{
	uint16_t top = 0;

	for (size_t i = 0; i < cnt; i++) {
		uint16_t code = codes[i] == CODE16_ABSENT ? 0 : codes[i];

		top = code > top ? code : top;
	}
	return top;
}

static double scaled(const struct differ_scale *s, int dim, uint16_t code)
{
	return s->top[dim] > 0 ? code16_frac(code) / s->top[dim] : code16_frac(code);
}

void differ_scale_init(struct differ_scale *s, const struct differ_codes *points)
{
	*s = (struct differ_scale){ .codes = { points->beta, points->mu, points->sigma } };
	for (int dim = 0; dim < DIM_CNT; dim++) {
		double top = code16_frac(largest_code(s->codes[dim], points->row_cnt));

		s->top[dim] = top;
		for (int shift = 0; shift <= (int)(CODE16_TOP >> CODE16_MANTISSA); shift++) {
			int above = shift > 1 ? shift - 1 : 0;

			s->bias[shift] = above << CODE16_MANTISSA;
			s->unit[dim][shift] =
				(float)(ldexp(1 / CODE16_FRACTION, above) / (top > 0 ? top : 1));
		}
	}
}

bool differ_codes_far(const struct differ_scale *s, const uint16_t a[DIM_CNT],
		      const uint16_t b[DIM_CNT])
{
	double sum = 0;

	for (int dim = 0; dim < DIM_CNT; dim++) {
		if (a[dim] != CODE16_ABSENT && b[dim] != CODE16_ABSENT)
			sum += fabs(scaled(s, dim, a[dim]) - scaled(s, dim, b[dim]));
	}
	return sum >= DIFFER_DELTA;
}

/* --- eq. 11 --- */

/* Numbers of members by how many peers differ from them. */
struct histogram {
	uint32_t *cnt_of;
	size_t total;
	double of;
};

static double delta_at(const struct histogram *h, size_t far)
{
	return (double)far / h->of;
}

/* The member at a place in the order of delta. */
static size_t far_at(const struct histogram *h, size_t place)
{
	size_t far = 0;

	for (size_t seen = h->cnt_of[0]; seen <= place; seen += h->cnt_of[far])
		far++;
	return far;
}

/* Mean of the two middle values, with the arithmetic of stats_quantile(). */
static double middle(double low, double high, size_t cnt)
{
	return cnt % 2 == 1 ? low : low + 0.5 * (high - low);
}

static double histogram_median(const struct histogram *h)
{
	return middle(delta_at(h, far_at(h, (h->total - 1) / 2)),
		      delta_at(h, far_at(h, h->total / 2)), h->total);
}

/* Median of |delta - center|: walks away from the center on both sides, the nearer first. */
static double histogram_mad(const struct histogram *h, double center)
{
	size_t up = far_at(h, (h->total - 1) / 2), down, seen = 0;
	double low = 0;
	bool has_low = false;

	while (delta_at(h, up) < center)
		up++;
	for (down = up;;) {
		double above =
			up <= (size_t)h->of ? fabs(delta_at(h, up) - center) : (double)INFINITY;
		double below = down > 0 ? fabs(delta_at(h, down - 1) - center) : (double)INFINITY;
		double nearest = fmin(above, below);

		seen += above <= below ? h->cnt_of[up++] : h->cnt_of[--down];
		if (!has_low && seen > (h->total - 1) / 2) {
			low = nearest;
			has_low = true;
		}
		if (seen > h->total / 2)
			return middle(low, nearest, h->total);
	}
}

int differ_limit(const uint32_t *far, size_t cnt, size_t absent_cnt, struct differ_found *found)
{
	_cleanup_free_ uint32_t *cnt_of = calloc((size_t)found->of + 1, sizeof(*cnt_of));
	struct histogram h = { cnt_of, cnt + absent_cnt, found->of };
	uint32_t top = 0;
	double center;

	if (cnt_of == NULL)
		return -ENOMEM;
	found->threshold = 0;
	found->exceeded = false;
	if (h.total == 0 || found->of == 0)
		return 0;
	for (size_t i = 0; i < cnt; i++) {
		cnt_of[far[i]]++;
		top = MAX(top, far[i]);
	}
	cnt_of[found->far_absent] += (uint32_t)absent_cnt;
	center = histogram_median(&h);
	found->threshold = center + DIFFER_K * histogram_mad(&h, center);
	found->exceeded = delta_at(&h, top) > found->threshold;
	return 0;
}

/* --- eq. 9 and 10 --- */

struct peer {
	float at[DIM_CNT];
	unsigned int dims;
	uint16_t codes[DIM_CNT];
};

/* Points of one block that have the same dimensions. */
struct block {
	float at[DIM_CNT][BLOCK];
	uint32_t far[BLOCK], sure[BLOCK];
	uint32_t rows[BLOCK];
	size_t cnt;
};

static struct peer peer_at(const struct differ_scale *s, uint32_t row)
{
	struct peer p = { .dims = 1u << DIM_BETA, .codes = { 0, CODE16_ABSENT, CODE16_ABSENT } };

	if (row == DIFFER_NO_ROW)
		return p;
	p.dims = differ_dims(s, row);
	for (int dim = 0; dim < DIM_CNT; dim++) {
		p.codes[dim] = s->codes[dim][row];
		p.at[dim] = differ_at(s, dim, p.codes[dim]);
	}
	return p;
}

/* Adds what one peer says of the points of a block. */
DIFFER_WIDE static void compare_all(struct block *b, const struct peer *p, float mu, float sigma)
{
	float x = p->at[DIM_BETA], y = p->at[DIM_MU], z = p->at[DIM_SIGMA];

	for (size_t i = 0; i < BLOCK; i++) {
		float d = fabsf(b->at[DIM_BETA][i] - x) + mu * fabsf(b->at[DIM_MU][i] - y) +
			  sigma * fabsf(b->at[DIM_SIGMA][i] - z);

		b->far[i] += d >= DIFFER_FAR;
		b->sure[i] += (unsigned int)(d >= DIFFER_FAR) | (unsigned int)(d < DIFFER_NEAR);
	}
}

DIFFER_WIDE static void compare_beta(struct block *b, const struct peer *p)
{
	float x = p->at[DIM_BETA];

	for (size_t i = 0; i < BLOCK; i++) {
		float d = fabsf(b->at[DIM_BETA][i] - x);

		b->far[i] += d >= DIFFER_FAR;
		b->sure[i] += (unsigned int)(d >= DIFFER_FAR) | (unsigned int)(d < DIFFER_NEAR);
	}
}

static uint32_t count_far(const struct differ_scale *s, const struct peer *point,
			  const struct peer *peers, size_t cnt)
{
	uint32_t far = 0;

	for (size_t i = 0; i < cnt; i++)
		far += differ_codes_far(s, point->codes, peers[i].codes);
	return far;
}

static void compare_block(struct block *b, unsigned int dims, const struct differ_scale *s,
			  const struct peer *peers, size_t peer_cnt, uint32_t *ret_far)
{
	memset(b->far, 0, sizeof(b->far));
	memset(b->sure, 0, sizeof(b->sure));
	for (size_t i = 0; i < peer_cnt; i++) {
		unsigned int both = dims & peers[i].dims;

		if (both == 1u << DIM_BETA)
			compare_beta(b, &peers[i]);
		else
			compare_all(b, &peers[i], (both & 1u << DIM_MU) != 0 ? 1 : 0,
				    (both & 1u << DIM_SIGMA) != 0 ? 1 : 0);
	}
	for (size_t i = 0; i < b->cnt; i++) {
		struct peer point;

		ret_far[b->rows[i]] = b->far[i];
		if (b->sure[i] == peer_cnt)
			continue;
		point = peer_at(s, b->rows[i]);
		ret_far[b->rows[i]] = count_far(s, &point, peers, peer_cnt);
	}
	b->cnt = 0;
}

/* Blocks by the dimensions that their points have. */
static void compare_rows(const struct differ_scale *s, size_t row_cnt, struct block *blocks,
			 const struct peer *peers, size_t peer_cnt, uint32_t *ret_far)
{
	for (uint32_t row = 0; row < row_cnt; row++) {
		unsigned int dims = differ_dims(s, row);
		struct block *b = &blocks[dims];

		for (int dim = 0; dim < DIM_CNT; dim++)
			b->at[dim][b->cnt] = differ_at(s, dim, s->codes[dim][row]);
		b->rows[b->cnt++] = row;
		if (b->cnt == BLOCK)
			compare_block(b, dims, s, peers, peer_cnt, ret_far);
	}
	for (unsigned int dims = 0; dims < 1u << DIM_CNT; dims++)
		compare_block(&blocks[dims], dims, s, peers, peer_cnt, ret_far);
}

int differ_codes_sampled(const struct differ_codes *points, const uint32_t *sample,
			 size_t sample_cnt, uint32_t *ret_far, struct differ_found *ret)
{
	_cleanup_free_ struct peer *peers = calloc(sample_cnt + 1, sizeof(*peers));
	_cleanup_free_ struct block *blocks = calloc(1u << DIM_CNT, sizeof(*blocks));
	struct differ_found found = { .of = (uint32_t)sample_cnt };
	struct differ_scale scale;
	struct peer absent; /* a worker that does not list the function */
	int error;

	if (peers == NULL || blocks == NULL)
		return -ENOMEM;
	differ_scale_init(&scale, points);
	for (size_t i = 0; i < sample_cnt; i++)
		peers[i] = peer_at(&scale, sample[i]);
	compare_rows(&scale, points->row_cnt, blocks, peers, sample_cnt, ret_far);
	absent = peer_at(&scale, DIFFER_NO_ROW);
	found.far_absent = count_far(&scale, &absent, peers, sample_cnt);
	error = differ_limit(ret_far, points->row_cnt, points->absent_cnt, &found);
	if (error == 0)
		*ret = found;
	return error;
}
