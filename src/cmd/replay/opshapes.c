/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/replay/opshapes.h"

#include "base/idmap.h"
#include "base/stats.h"
#include "cmd/replay/eventcutter.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const multiplications[] = { "aten::mm", "aten::addmm", "aten::bmm",
					       "aten::baddbmm" };

/* An operator, until the time of its kernels is known. */
struct op {
	double tid, start_us, dur_us, kernel_us;
	uint32_t shape; /* UINT32_MAX: without one */
};

struct call {
	double tid, start_us;
	uint64_t correlation;
};

struct reading {
	struct opshapes *of;
	VEC(struct op) ops;
	VEC(struct call) calls;
	struct idmap kernel_ns; /* correlation -> index in sums */
	VEC(double) sums;
};

/* --- shapes --- */

static bool same(const struct opshape *a, const struct opshape *b)
{
	return a->collective == b->collective && a->group_size == b->group_size &&
	       strcmp(a->op, b->op) == 0 && strcmp(a->dims, b->dims) == 0 &&
	       strcmp(a->types, b->types) == 0 && strcmp(a->strides, b->strides) == 0;
}

static void shape_done(struct opshape *shape)
{
	free(shape->op);
	free(shape->dims);
	free(shape->types);
	free(shape->strides);
	vec_done(&shape->us);
}

/* The index of this shape, which is taken over; UINT32_MAX at the limit; or -ENOMEM. */
static int64_t intern(struct opshapes *shapes, struct opshape *shape)
{
	if (shape->op == NULL || shape->dims == NULL || shape->types == NULL ||
	    shape->strides == NULL) {
		shape_done(shape);
		return -ENOMEM;
	}
	for (size_t i = 0; i < shapes->shapes.cnt; i++) {
		if (same(&shapes->shapes.data[i], shape)) {
			shape_done(shape);
			return (int64_t)i;
		}
	}
	if (shapes->shapes.cnt >= OPSHAPES_KINDS_MAX) {
		shapes->dropped++;
		shape_done(shape);
		return UINT32_MAX;
	}
	if (vec_push(&shapes->shapes, *shape) < 0) {
		shape_done(shape);
		return -ENOMEM;
	}
	return (int64_t)shapes->shapes.cnt - 1;
}

static char *dump(const json_t *value)
{
	return json_dumps(value, JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
}

/* Lists of lists of sizes from 0 on. */
static bool are_sizes(const json_t *list, size_t depth)
{
	const json_t *item;
	size_t i;

	if (json_is_integer(list))
		return depth > 0 && json_integer_value(list) >= 0;
	if (!json_is_array(list) || depth > 2)
		return false;
	json_array_foreach(list, i, item)
	{
		if (!are_sizes(item, depth + 1))
			return false;
	}
	return true;
}

static bool are_texts(const json_t *list)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(list))
		return false;
	json_array_foreach(list, i, item)
	{
		if (!json_is_string(item))
			return false;
	}
	return true;
}

/* --- events --- */

static double number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static bool is_multiplication(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(multiplications); i++) {
		if (strcmp(name, multiplications[i]) == 0)
			return true;
	}
	return false;
}

static bool is_known(const json_t *dims, const json_t *types)
{
	return are_sizes(dims, 0) && json_array_size(dims) >= 2 && are_texts(types) &&
	       json_array_size(types) == json_array_size(dims);
}

static int take_op(struct reading *r, const json_t *event, const json_t *args, const char *name)
{
	const json_t *dims = json_object_get(args, "Input Dims");
	const json_t *types = json_object_get(args, "Input type");
	const json_t *strides = json_object_get(args, "Input Strides");
	struct op op = { .tid = number(event, "tid"),
			 .start_us = number(event, "ts"),
			 .dur_us = number(event, "dur"),
			 .shape = UINT32_MAX };
	int64_t index;

	if (!isfinite(op.tid) || !isfinite(op.start_us) || !(op.dur_us >= 0))
		return 0;
	if (is_known(dims, types)) {
		struct opshape shape = { .op = strdup(name),
					 .dims = dump(dims),
					 .types = dump(types),
					 .strides = are_sizes(strides, 0) ? dump(strides)
									  : strdup("[]"),
					 .group_size = -1 };

		index = intern(r->of, &shape);
		if (index < 0)
			return -ENOMEM;
		op.shape = (uint32_t)index;
	} else {
		r->of->shapeless++;
	}
	return vec_push(&r->ops, op);
}

/* A collective of which one execution took us. dims: elements in and out. */
static int add_collective(struct reading *r, struct opshape *shape, double us)
{
	int64_t index = intern(r->of, shape);

	if (index < 0)
		return -ENOMEM;
	return index != UINT32_MAX ? vec_push(&r->of->shapes.data[index].us, us) : 0;
}

/* Kernels of NCCL have what they do in their arguments. */
static int take_nccl(struct reading *r, const json_t *args, const char *name, double us)
{
	const json_t *in = json_object_get(args, "In msg nelems");
	const json_t *out = json_object_get(args, "Out msg nelems");
	const json_t *type = json_object_get(args, "dtype");
	const double size = number(args, "Group size");
	struct opshape shape = { .collective = true,
				 .group_size = size >= 1 && size < 1e6 ? (int)size : -1 };
	json_t *pair;

	if (!json_is_integer(in) || !json_is_integer(out) || json_integer_value(in) < 0 ||
	    json_integer_value(out) < 0 || !json_is_string(type)) {
		r->of->shapeless++;
		return 0;
	}
	pair = json_pack("[OO]", in, out);
	shape.op = strdup(name);
	shape.dims = pair != NULL ? dump(pair) : NULL;
	json_decref(pair);
	pair = json_pack("[O]", type);
	shape.types = pair != NULL ? dump(pair) : NULL;
	json_decref(pair);
	shape.strides = strdup("[]");
	return add_collective(r, &shape, us);
}

static int take_kernel(struct reading *r, const json_t *args, double us)
{
	const json_t *collective = json_object_get(args, "Collective name");
	const double correlation = number(args, "correlation");
	uint32_t sum;

	r->of->has_device = true;
	if (json_is_string(collective))
		return take_nccl(r, args, json_string_value(collective), us);
	if (!(correlation > 0) || correlation > 1e15 || !(us >= 0))
		return 0;
	sum = idmap_get(&r->kernel_ns, (uint64_t)correlation);
	if (sum != IDMAP_NONE) {
		r->sums.data[sum] += us;
		return 0;
	}
	if (vec_push(&r->sums, us) < 0)
		return -ENOMEM;
	return idmap_set(&r->kernel_ns, (uint64_t)correlation, (uint32_t)(r->sums.cnt - 1));
}

static int take_call(struct reading *r, const json_t *event, const json_t *args)
{
	const double tid = number(event, "tid"), start_us = number(event, "ts");
	const double correlation = number(args, "correlation");

	if (!isfinite(tid) || !isfinite(start_us) || !(correlation > 0) || correlation > 1e15)
		return 0;
	return vec_push(&r->calls, (struct call){ tid, start_us, (uint64_t)correlation });
}

/* "gloo:all_reduce" as torch's other names have it. */
static const char *gloo_name(const char *name)
{
	static const char *const pairs[][2] = { { "gloo:all_reduce", "allreduce" },
						{ "gloo:broadcast", "broadcast" },
						{ "gloo:all_gather", "allgather" },
						{ "gloo:reduce", "reduce" } };

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		if (strcmp(name, pairs[i][0]) == 0)
			return pairs[i][1];
	}
	return NULL;
}

static json_int_t elements_of(const json_t *dims)
{
	json_int_t sum = 0;
	const json_t *tensor, *size;
	size_t i, j;

	json_array_foreach(dims, i, tensor)
	{
		json_int_t product = 1;

		if (!json_is_array(tensor))
			return -1;
		json_array_foreach(tensor, j, size)
		{
			if (json_integer_value(size) > INT32_MAX || product > INT32_MAX)
				return -1;
			product *= json_integer_value(size);
		}
		sum += product;
	}
	return sum;
}

static int take_gloo(struct reading *r, const json_t *args, const char *name, double us)
{
	const json_t *dims = json_object_get(args, "Input Dims");
	const json_t *types = json_object_get(args, "Input type");
	const json_int_t elements = are_sizes(dims, 0) ? elements_of(dims) : -1;
	struct opshape shape = { .collective = true, .group_size = -1 };
	json_t *pair;

	if (elements <= 0 || !are_texts(types) || json_array_size(types) == 0) {
		r->of->shapeless++;
		return 0;
	}
	pair = json_pack("[II]", elements, elements);
	shape.op = strdup(name);
	shape.dims = pair != NULL ? dump(pair) : NULL;
	json_decref(pair);
	pair = json_pack("[O]", json_array_get(types, 0));
	shape.types = pair != NULL ? dump(pair) : NULL;
	json_decref(pair);
	shape.strides = strdup("[]");
	return add_collective(r, &shape, us);
}

static bool is(const char *category, const char *a, const char *b)
{
	return strcmp(category, a) == 0 || strcmp(category, b) == 0;
}

static int take_event(struct reading *r, const json_t *event)
{
	const json_t *args = json_object_get(event, "args");
	const char *category = json_string_value(json_object_get(event, "cat"));
	const char *name = json_string_value(json_object_get(event, "name"));
	const double us = number(event, "dur");

	if (category == NULL || name == NULL || !(us >= 0))
		return 0;
	r->of->event_cnt++;
	if (is(category, "cpu_op", "Operator"))
		return is_multiplication(name) ? take_op(r, event, args, name) : 0;
	if (is(category, "kernel", "Kernel"))
		return take_kernel(r, args, us);
	if (is(category, "cuda_runtime", "cuda_driver"))
		return take_call(r, event, args);
	if (strcmp(category, "user_annotation") == 0 && gloo_name(name) != NULL)
		return take_gloo(r, args, gloo_name(name), us);
	return 0;
}

/* Whether an event's text may be of interest: most are Python functions and other operators. */
static bool may_matter(const char *text)
{
	return strstr(text, "mm\"") != NULL || strstr(text, "ernel\"") != NULL ||
	       strstr(text, "\"cuda_") != NULL || strstr(text, "\"gloo:") != NULL;
}

static int take_object(void *arg, bool is_event, const char *text, size_t len, struct err *err)
{
	struct reading *r = arg;
	json_t *object;
	int error = 0;

	if (is_event && !may_matter(text))
		return 0;
	object = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
	if (object == NULL) {
		r->of->dropped++;
		return 0;
	}
	if (is_event) {
		error = take_event(r, object);
	} else {
		const double rank = number(object, "rank"), world = number(object, "world_size");

		r->of->rank = rank >= 0 && rank < 1e9 ? (int)rank : -1;
		r->of->world = world >= 1 && world < 1e9 ? (int)world : -1;
	}
	json_decref(object);
	return error < 0 ? err_set(err, -error, "out of memory") : 0;
}

/* --- times --- */

static int by_start(const void *a, const void *b)
{
	const struct op *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->start_us != y->start_us)
		return x->start_us < y->start_us ? -1 : 1;
	return (x->dur_us < y->dur_us) - (x->dur_us > y->dur_us);
}

static bool contains(const struct op *op, double tid, double start_us)
{
	return op->tid == tid && start_us >= op->start_us && start_us <= op->start_us + op->dur_us;
}

/* The last operator of a thread that begins before; NULL: none. Operators do not overlap. */
static struct op *op_at(struct reading *r, double tid, double start_us)
{
	size_t low = 0, high = r->ops.cnt;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct op *op = &r->ops.data[middle];

		if (op->tid < tid || (op->tid == tid && op->start_us <= start_us))
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && contains(&r->ops.data[low - 1], tid, start_us) ? &r->ops.data[low - 1]
									 : NULL;
}

/* An operator inside another one, as mm in addmm, is a part of it. */
static void drop_inner(struct reading *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->ops.cnt; i++) {
		const struct op *op = &r->ops.data[i];

		if (kept > 0 && contains(&r->ops.data[kept - 1], op->tid, op->start_us) &&
		    op->start_us + op->dur_us <=
			    r->ops.data[kept - 1].start_us + r->ops.data[kept - 1].dur_us)
			continue;
		r->ops.data[kept++] = *op;
	}
	r->ops.cnt = kept;
}

static int add_times(struct reading *r)
{
	if (r->ops.cnt > 1)
		qsort(r->ops.data, r->ops.cnt, sizeof(*r->ops.data), by_start);
	drop_inner(r);
	vec_foreach(call, &r->calls) {
		const uint32_t sum = idmap_get(&r->kernel_ns, call->correlation);
		struct op *op = sum != IDMAP_NONE ? op_at(r, call->tid, call->start_us) : NULL;

		if (op != NULL)
			op->kernel_us += r->sums.data[sum];
	}
	vec_foreach(op, &r->ops) {
		const double us = r->of->has_device ? op->kernel_us : op->dur_us;

		/* On a GPU an operator without a kernel ran elsewhere, or its kernel was cut off. */
		if (op->shape == UINT32_MAX || us <= 0)
			continue;
		if (vec_push(&r->of->shapes.data[op->shape].us, us) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int by_sum(const void *a, const void *b)
{
	const struct opshape *x = a, *y = b;
	const double sum_x = opshape_sum_us(x), sum_y = opshape_sum_us(y);
	int order;

	if (sum_x != sum_y)
		return sum_x > sum_y ? -1 : 1;
	order = strcmp(x->op, y->op);
	return order != 0 ? order : strcmp(x->dims, y->dims);
}

static void sort_shapes(struct opshapes *shapes)
{
	size_t kept = 0;

	for (size_t i = 0; i < shapes->shapes.cnt; i++) {
		struct opshape *shape = &shapes->shapes.data[i];

		if (shape->us.cnt == 0) {
			shape_done(shape);
			continue;
		}
		(void)stats_median(shape->us.data, shape->us.cnt); /* sorts */
		shapes->shapes.data[kept++] = *shape;
	}
	shapes->shapes.cnt = kept;
	if (kept > 1)
		qsort(shapes->shapes.data, kept, sizeof(*shapes->shapes.data), by_sum);
}

int opshapes_read(const char *path, struct input *input, struct opshapes *ret, struct err *err)
{
	struct reading r = { .of = ret };
	struct eventcutter cutter = { .take = take_object,
				      .arg = &r,
				      .bytes_max = OPSHAPES_EVENT_BYTES_MAX };
	int error;

	*ret = (struct opshapes){ .rank = -1, .world = -1 };
	error = eventcutter_run(&cutter, path, input, err);
	ret->dropped += cutter.dropped;
	if (error == 0 && add_times(&r) < 0)
		error = err_set(err, ENOMEM, "%s: out of memory", path);
	if (error == 0)
		sort_shapes(ret);
	vec_done(&r.ops);
	vec_done(&r.calls);
	vec_done(&r.sums);
	idmap_done(&r.kernel_ns);
	return error;
}

void opshapes_done(struct opshapes *shapes)
{
	vec_foreach(shape, &shapes->shapes)
		shape_done(shape);
	vec_done(&shapes->shapes);
}

double opshape_median_us(const struct opshape *shape)
{
	const size_t cnt = shape->us.cnt;

	return (shape->us.data[(cnt - 1) / 2] + shape->us.data[cnt / 2]) / 2;
}

double opshape_sum_us(const struct opshape *shape)
{
	double sum = 0;

	vec_foreach(us, &shape->us)
		sum += *us;
	return sum;
}
