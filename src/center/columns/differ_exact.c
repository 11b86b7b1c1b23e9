/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All pairs without looking at all pairs. Points that share their dimensions are put
 * into boxes of boxes (a radix tree over interleaved bits). Two boxes that are nearer
 * than delta even at their far corners, or further even at their near ones, are
 * settled at once, whatever is in them; only pairs of small boxes that delta runs
 * through are compared point by point. Where there is only beta, sorting is enough.
 */
#include "base/vec.h"
#include "center/columns/differ_parts.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define LEAF 32
#define DIM_BITS 10 /* of the interleaved key; finer boxes settle nothing more */
#define KEY_BITS (DIM_CNT * DIM_BITS)
#define KINDS (1u << DIM_CNT) /* of points, by the dimensions they have */

/* Points of one kind in the dimensions asked for, in the order of keys. */
struct cloud {
	const struct differ_scale *scale;
	uint32_t *rows, *keys;
	float *at[DIM_CNT];
	uint32_t *far; /* differing peers found one by one */
	size_t cnt;
};

struct box {
	float low[DIM_CNT], high[DIM_CNT];
	uint32_t first, cnt;  /* points */
	uint32_t left, right; /* boxes; 0: a leaf */
	uint32_t far;	      /* differing peers of all its points */
};

struct tree {
	struct cloud cloud;
	VEC(struct box) boxes;
};

static void tree_done(struct tree *tree)
{
	free(tree->cloud.rows);
	free(tree->cloud.keys);
	free(tree->cloud.far);
	for (int dim = 0; dim < DIM_CNT; dim++)
		free(tree->cloud.at[dim]);
	vec_done(&tree->boxes);
}

/* --- clouds --- */

/* Three bits apart from each other. */
static uint32_t spread_bits(uint32_t x)
{
	x = (x | x << 16) & 0x030000ff;
	x = (x | x << 8) & 0x0300f00f;
	x = (x | x << 4) & 0x030c30c3;
	return (x | x << 2) & 0x09249249;
}

static uint32_t key_of(const struct differ_scale *s, uint32_t row, unsigned int dims)
{
	uint32_t key = 0;

	for (int dim = 0; dim < DIM_CNT; dim++) {
		float at = differ_at(s, dim, s->codes[dim][row]) * (float)(1u << DIM_BITS);
		uint32_t cell = MIN((uint32_t)fmaxf(at, 0), (1u << DIM_BITS) - 1);

		if ((dims & 1u << dim) != 0)
			key |= spread_bits(cell) << dim;
	}
	return key;
}

/* Sorts rows by their keys, ten bits at a time, least significant first. */
static int sort_cloud(struct cloud *c)
{
	_cleanup_free_ uint32_t *rows = calloc(c->cnt + 1, sizeof(*rows));
	_cleanup_free_ uint32_t *keys = calloc(c->cnt + 1, sizeof(*keys));

	if (rows == NULL || keys == NULL)
		return -ENOMEM;
	for (unsigned int shift = 0; shift < KEY_BITS; shift += DIM_BITS) {
		uint32_t begin[(1u << DIM_BITS) + 1] = { 0 }, *swap;

		for (size_t i = 0; i < c->cnt; i++)
			begin[(c->keys[i] >> shift) % (1u << DIM_BITS) + 1]++;
		for (size_t d = 0; d < 1u << DIM_BITS; d++)
			begin[d + 1] += begin[d];
		for (size_t i = 0; i < c->cnt; i++) {
			uint32_t to = begin[(c->keys[i] >> shift) % (1u << DIM_BITS)]++;

			rows[to] = c->rows[i];
			keys[to] = c->keys[i];
		}
		swap = c->rows, c->rows = rows, rows = swap;
		swap = c->keys, c->keys = keys, keys = swap;
	}
	return 0;
}

static int place_cloud(struct cloud *c, unsigned int dims)
{
	c->far = calloc(c->cnt + 1, sizeof(*c->far));
	for (int dim = 0; dim < DIM_CNT; dim++) {
		const uint16_t *codes = c->scale->codes[dim];

		c->at[dim] = calloc(c->cnt + 1, sizeof(float));
		if (c->at[dim] == NULL || c->far == NULL)
			return -ENOMEM;
		for (size_t i = 0; i < c->cnt && (dims & 1u << dim) != 0; i++)
			c->at[dim][i] = differ_at(c->scale, dim, codes[c->rows[i]]);
	}
	return 0;
}

/* --- boxes --- */

static void enclose(const struct cloud *c, struct box *b)
{
	for (int dim = 0; dim < DIM_CNT; dim++) {
		const float *at = c->at[dim] + b->first;
		float low = at[0], high = at[0];

		for (size_t i = 1; i < b->cnt; i++) {
			low = at[i] < low ? at[i] : low;
			high = at[i] > high ? at[i] : high;
		}
		b->low[dim] = low;
		b->high[dim] = high;
	}
}

static void enclose_both(struct box *b, const struct box *left, const struct box *right)
{
	for (int dim = 0; dim < DIM_CNT; dim++) {
		b->low[dim] = fminf(left->low[dim], right->low[dim]);
		b->high[dim] = fmaxf(left->high[dim], right->high[dim]);
	}
}

/* First point of the box whose key has the highest bit in which its keys differ. */
static uint32_t split_at(const struct cloud *c, uint32_t first, uint32_t cnt)
{
	uint32_t differing = c->keys[first] ^ c->keys[first + cnt - 1];
	uint32_t bit = 1u << (31 - __builtin_clz(differing)), low = first, high = first + cnt - 1;

	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if ((c->keys[mid] & bit) != 0)
			high = mid;
		else
			low = mid;
	}
	return high;
}

/* Depth is at most KEY_BITS. Returns the index of the box in *ret. */
static int make_box(struct tree *tree, uint32_t first, uint32_t cnt, uint32_t *ret)
{
	const struct cloud *c = &tree->cloud;
	struct box b = { .first = first, .cnt = cnt };
	uint32_t idx = (uint32_t)tree->boxes.cnt, split;

	if (vec_push(&tree->boxes, b) < 0)
		return -ENOMEM;
	if (cnt <= LEAF || c->keys[first] == c->keys[first + cnt - 1]) {
		enclose(c, &b);
	} else {
		split = split_at(c, first, cnt);
		if (make_box(tree, first, split - first, &b.left) < 0 ||
		    make_box(tree, split, first + cnt - split, &b.right) < 0)
			return -ENOMEM;
		enclose_both(&b, &tree->boxes.data[b.left], &tree->boxes.data[b.right]);
	}
	tree->boxes.data[idx] = b;
	*ret = idx;
	return 0;
}

/* Of rows[cnt], those that have just the dimensions of kind, placed in those of dims. */
static int tree_init(struct tree *tree, const struct differ_scale *s, const uint32_t *rows,
		     size_t cnt, unsigned int kind, unsigned int dims)
{
	struct cloud *c = &tree->cloud;
	uint32_t root;

	*tree = (struct tree){ .cloud = { .scale = s } };
	c->rows = malloc((cnt + 1) * sizeof(*c->rows));
	c->keys = malloc((cnt + 1) * sizeof(*c->keys));
	if (c->rows == NULL || c->keys == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		if (differ_dims(s, rows[i]) != kind)
			continue;
		c->keys[c->cnt] = key_of(s, rows[i], dims);
		c->rows[c->cnt++] = rows[i];
	}
	if (sort_cloud(c) < 0 || place_cloud(c, dims) < 0)
		return -ENOMEM;
	return c->cnt > 0 ? make_box(tree, 0, (uint32_t)c->cnt, &root) : 0;
}

/* --- pairs --- */

struct pairing {
	struct tree *mine;
	const struct tree *peers;
	unsigned int dims;
};

static bool far_exactly(const struct pairing *p, uint32_t mine, uint32_t peer)
{
	const struct differ_scale *s = p->mine->cloud.scale;
	uint16_t a[DIM_CNT], b[DIM_CNT];

	for (int dim = 0; dim < DIM_CNT; dim++) {
		bool has = (p->dims & 1u << dim) != 0;

		a[dim] = has ? s->codes[dim][p->mine->cloud.rows[mine]] : CODE16_ABSENT;
		b[dim] = has ? s->codes[dim][p->peers->cloud.rows[peer]] : CODE16_ABSENT;
	}
	return differ_codes_far(s, a, b);
}

/* One peer and the points of a leaf: adds to far, and to sure what rounding can't change. */
DIFFER_WIDE static void compare_leaf(const float *restrict x, const float *restrict y,
				     const float *restrict z, size_t cnt, const float peer[DIM_CNT],
				     uint32_t *restrict far, uint32_t *restrict sure)
{
	float px = peer[DIM_BETA], py = peer[DIM_MU], pz = peer[DIM_SIGMA];

	for (size_t i = 0; i < cnt; i++) {
		float d = fabsf(x[i] - px) + fabsf(y[i] - py) + fabsf(z[i] - pz);

		far[i] += d >= DIFFER_FAR;
		sure[i] += (unsigned int)(d >= DIFFER_FAR) | (unsigned int)(d < DIFFER_NEAR);
	}
}

/* At most LEAF of the points of two leaves. */
static void compare_points(const struct pairing *p, uint32_t first, uint32_t cnt,
			   const struct box *b)
{
	struct cloud *mine = &p->mine->cloud;
	const struct cloud *peers = &p->peers->cloud;
	uint32_t far[LEAF] = { 0 }, sure[LEAF] = { 0 };

	for (uint32_t k = b->first; k < b->first + b->cnt; k++) {
		const float at[DIM_CNT] = { peers->at[0][k], peers->at[1][k], peers->at[2][k] };

		compare_leaf(mine->at[0] + first, mine->at[1] + first, mine->at[2] + first, cnt, at,
			     far, sure);
	}
	for (uint32_t i = 0; i < cnt; i++) {
		if (sure[i] != b->cnt) {
			far[i] = 0;
			for (uint32_t k = b->first; k < b->first + b->cnt; k++)
				far[i] += far_exactly(p, first + i, k);
		}
		mine->far[first + i] += far[i];
	}
}

static void compare_leaves(const struct pairing *p, const struct box *a, const struct box *b)
{
	for (uint32_t first = a->first; first < a->first + a->cnt; first += LEAF)
		compare_points(p, first, MIN((uint32_t)LEAF, a->first + a->cnt - first), b);
}

static float size_of(const struct box *b)
{
	float sum = 0;

	for (int dim = 0; dim < DIM_CNT; dim++)
		sum += b->high[dim] - b->low[dim];
	return sum;
}

static void compare_boxes(const struct pairing *p, uint32_t mine, uint32_t peer)
{
	struct box *a = &p->mine->boxes.data[mine];
	const struct box *b = &p->peers->boxes.data[peer];
	float nearest = 0, furthest = 0;

	for (int dim = 0; dim < DIM_CNT; dim++) {
		float up = b->high[dim] - a->low[dim], down = a->high[dim] - b->low[dim];

		furthest += up > down ? up : down;
		nearest += up < 0 ? -up : down < 0 ? -down : 0;
	}
	if (furthest < DIFFER_NEAR)
		return;
	if (nearest >= DIFFER_FAR) {
		a->far += b->cnt;
	} else if (a->left == 0 && b->left == 0) {
		compare_leaves(p, a, b);
	} else if (b->left == 0 || (a->left != 0 && size_of(a) >= size_of(b))) {
		compare_boxes(p, a->left, peer);
		compare_boxes(p, a->right, peer);
	} else {
		compare_boxes(p, mine, b->left);
		compare_boxes(p, mine, b->right);
	}
}

/* Hands down what boxes know, and adds it all up by row. */
static void collect(const struct tree *tree, uint32_t box, uint32_t far, uint32_t *far_of)
{
	const struct box *b = &tree->boxes.data[box];
	const struct cloud *c = &tree->cloud;

	far += b->far;
	if (b->left != 0) {
		collect(tree, b->left, far, far_of);
		collect(tree, b->right, far, far_of);
		return;
	}
	for (uint32_t i = b->first; i < b->first + b->cnt; i++)
		far_of[c->rows[i]] += far + c->far[i];
}

/* --- one function --- */

struct differ_exact {
	struct differ_codes points;
	struct differ_scale scale;
	uint32_t *all;			 /* every row */
	uint32_t *far_of;		 /* by row */
	bool has[KINDS];		 /* points of the kind */
	struct tree peers[KINDS][KINDS]; /* by kind and dimensions; made when they are needed */
};

void differ_exact_close(struct differ_exact *d)
{
	if (d == NULL)
		return;
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		for (unsigned int dims = 0; dims < KINDS; dims++)
			tree_done(&d->peers[kind][dims]);
	}
	free(d->all);
	free(d->far_of);
	free(d);
}

int differ_exact_open(const struct differ_codes *points, struct differ_exact **ret)
{
	struct differ_exact *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return -ENOMEM;
	d->points = *points;
	d->all = malloc((points->row_cnt + 1) * sizeof(*d->all));
	d->far_of = malloc((points->row_cnt + 1) * sizeof(*d->far_of));
	if (d->all == NULL || d->far_of == NULL) {
		differ_exact_close(d);
		return -ENOMEM;
	}
	differ_scale_init(&d->scale, points);
	d->has[1u << DIM_BETA] = points->absent_cnt > 0;
	for (uint32_t row = 0; row < points->row_cnt; row++) {
		d->has[differ_dims(&d->scale, row)] = true;
		d->all[row] = row;
	}
	*ret = d;
	return 0;
}

static int find_peers(struct differ_exact *d, unsigned int kind, unsigned int dims,
		      const struct tree **ret)
{
	struct tree *tree = &d->peers[kind][dims];

	*ret = tree;
	if (tree->boxes.cnt > 0)
		return 0;
	tree_done(tree);
	return tree_init(tree, &d->scale, d->all, d->points.row_cnt, kind, dims);
}

/* Adds to those of rows[cnt] that are of one kind their differing peers of another. */
static int compare_kinds(struct differ_exact *d, const uint32_t *rows, size_t cnt,
			 unsigned int mine, unsigned int peers)
{
	_cleanup_(tree_done) struct tree tree = { 0 };
	struct pairing p = { .mine = &tree, .dims = mine & peers };
	int error = tree_init(&tree, &d->scale, rows, cnt, mine, p.dims);

	if (error == 0)
		error = find_peers(d, peers, p.dims, &p.peers);
	if (error != 0)
		return error;
	if (tree.boxes.data == NULL || p.peers->boxes.data == NULL)
		return 0; /* no row is of that kind */
	compare_boxes(&p, 0, 0);
	collect(&tree, 0, 0, d->far_of);
	return 0;
}

/* --- beta alone --- */

/* below[code]: points of the kind that have a smaller code. */
static uint32_t *count_betas(const struct differ_exact *d, unsigned int kind)
{
	uint32_t *below = calloc(UINT16_MAX + 2, sizeof(*below));

	if (below == NULL)
		return NULL;
	for (size_t row = 0; row < d->points.row_cnt; row++) {
		if (differ_dims(&d->scale, row) == kind)
			below[d->points.beta[row] + 1]++;
	}
	/* A worker that doesn't list the function has a beta of 0 and no other value. */
	if (kind == 1u << DIM_BETA)
		below[1] += (uint32_t)d->points.absent_cnt;
	for (size_t code = 0; code <= UINT16_MAX; code++)
		below[code + 1] += below[code];
	return below;
}

static bool betas_far(const struct differ_scale *s, uint32_t a, uint32_t b)
{
	const uint16_t x[DIM_CNT] = { (uint16_t)a, CODE16_ABSENT, CODE16_ABSENT };
	const uint16_t y[DIM_CNT] = { (uint16_t)b, CODE16_ABSENT, CODE16_ABSENT };

	return differ_codes_far(s, x, y);
}

/*
 * far_of[code]: peers that differ from one with this code. They are all below a low
 * and all from a high code on, and both grow with the code.
 */
static void sweep_betas(const struct differ_scale *s, const uint32_t *below, uint32_t top,
			uint32_t *far_of)
{
	uint32_t low = 0, high = 0;

	for (uint32_t code = 0; code <= top; code++) {
		while (low < code && betas_far(s, code, low))
			low++;
		high = MAX(high, code);
		while (high <= top && !betas_far(s, code, high))
			high++;
		far_of[code] = below[low] + below[top + 1] - below[high];
	}
}

/* Points of kind mine against those of kind peers, which share beta only. */
static int compare_betas(struct differ_exact *d, const uint32_t *rows, size_t cnt,
			 unsigned int mine, unsigned int peers, uint32_t *ret_absent)
{
	_cleanup_free_ uint32_t *below = count_betas(d, peers);
	_cleanup_free_ uint32_t *far_of = calloc(UINT16_MAX + 1, sizeof(*far_of));
	uint32_t top = 0;

	if (below == NULL || far_of == NULL)
		return -ENOMEM;
	for (size_t row = 0; row < d->points.row_cnt; row++)
		top = MAX(top, (uint32_t)d->points.beta[row]);
	sweep_betas(&d->scale, below, top, far_of);
	for (size_t i = 0; i < cnt; i++) {
		if (differ_dims(&d->scale, rows[i]) == mine)
			d->far_of[rows[i]] += far_of[d->points.beta[rows[i]]];
	}
	if (mine == 1u << DIM_BETA)
		*ret_absent += far_of[0];
	return 0;
}

/* --- all of it --- */

int differ_exact_count(struct differ_exact *d, const uint32_t *rows, size_t cnt, uint32_t *ret_far,
		       uint32_t *ret_absent)
{
	uint32_t absent = 0;
	int error = 0;

	for (size_t i = 0; i < cnt; i++)
		d->far_of[rows[i]] = 0;
	for (unsigned int mine = 0; mine < KINDS; mine++) {
		for (unsigned int peers = 0; peers < KINDS && error == 0; peers++) {
			if (!d->has[mine] || !d->has[peers])
				continue;
			if ((mine & peers) == 1u << DIM_BETA)
				error = compare_betas(d, rows, cnt, mine, peers, &absent);
			else
				error = compare_kinds(d, rows, cnt, mine, peers);
		}
	}
	for (size_t i = 0; i < cnt && error == 0; i++)
		ret_far[i] = d->far_of[rows[i]];
	if (error == 0)
		*ret_absent = absent;
	return error;
}

int differ_exact_threshold(struct differ_exact *d, const uint32_t *rows, size_t cnt,
			   size_t absent_cnt, struct differ_found *ret)
{
	_cleanup_free_ uint32_t *far = malloc((cnt + 1) * sizeof(*far));
	struct differ_found found = { .of = (uint32_t)(d->points.row_cnt + d->points.absent_cnt) };
	int error = far != NULL ? 0 : -ENOMEM;

	if (error == 0)
		error = differ_exact_count(d, rows, cnt, far, &found.far_absent);
	if (error == 0)
		error = differ_limit(far, cnt, absent_cnt, &found);
	if (error == 0)
		*ret = found;
	return error;
}

int differ_codes_exact(const struct differ_codes *points, uint32_t *ret_far,
		       struct differ_found *ret)
{
	struct differ_found found = { .of = (uint32_t)(points->row_cnt + points->absent_cnt) };
	struct differ_exact *d;
	int error = differ_exact_open(points, &d);

	if (error < 0)
		return error;
	error = differ_exact_count(d, d->all, points->row_cnt, ret_far, &found.far_absent);
	if (error == 0)
		error = differ_limit(ret_far, points->row_cnt, points->absent_cnt, &found);
	differ_exact_close(d);
	if (error == 0)
		*ret = found;
	return error;
}
