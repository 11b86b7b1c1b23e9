/* SPDX-License-Identifier: Apache-2.0 */
/* From marks to iterations. An iteration begins with the first batch that is asked for after a
 * step and ends with the last step; the user's own marks, where there are any, bound it instead. */
#include "report/timeline/timeline_parts.h"

#include <errno.h>

/* What bounds an iteration: the best that the marks have. */
enum bound { BOUND_OPTIMIZER, BOUND_LOADER, BOUND_USER };

#define NEVER INT64_MIN

struct pass {
	slice_vec *ret;
	enum bound bound;
	uint16_t optimizer; /* of several: the one that bounds */
	uint32_t counted;   /* slice.what of iterations */
	int64_t number;
	int64_t iteration_ns, loader_ns, optimizer_ns; /* begun; NEVER: not */
	int64_t stepped_ns;			       /* the iteration's last step; NEVER: none */
};

static int add(struct pass *pass, enum slice_kind kind, int64_t start_ns, int64_t end_ns,
	       int64_t number)
{
	struct slice slice = { .start_ns = MIN(start_ns, end_ns),
			       .end_ns = end_ns,
			       .kind = (uint8_t)kind,
			       .number = number,
			       .cpu_ns = -1,
			       .what = kind == SLICE_ITERATION ? pass->counted : 0,
			       .order = (uint32_t)kind };

	return vec_push(pass->ret, slice);
}

static int end_iteration(struct pass *pass, int64_t end_ns)
{
	int64_t start_ns = pass->iteration_ns;

	pass->iteration_ns = pass->stepped_ns = NEVER;
	pass->number++;
	return start_ns != NEVER ? add(pass, SLICE_ITERATION, start_ns, end_ns, pass->number) : 0;
}

static int see_loader(struct pass *pass, int64_t time_ns)
{
	int ret = 0;

	if (pass->bound == BOUND_LOADER && pass->stepped_ns != NEVER)
		ret = end_iteration(pass, pass->stepped_ns);
	if (pass->bound == BOUND_LOADER && pass->iteration_ns == NEVER)
		pass->iteration_ns = time_ns;
	pass->loader_ns = time_ns;
	return ret;
}

static int see_loader_end(struct pass *pass, const struct ring_record *mark)
{
	int64_t start_ns = pass->loader_ns != NEVER ? pass->loader_ns : mark->time_ns - mark->value;

	pass->loader_ns = NEVER;
	return add(pass, SLICE_LOADER, start_ns, mark->time_ns, 0);
}

static int see_step(struct pass *pass, const struct ring_record *mark)
{
	int64_t start_ns = pass->optimizer_ns != NEVER ? pass->optimizer_ns : mark->time_ns;
	int ret = add(pass, SLICE_OPTIMIZER, start_ns, mark->time_ns, mark->detail);

	pass->optimizer_ns = NEVER;
	pass->stepped_ns = mark->time_ns;
	if (ret == 0 && pass->bound == BOUND_OPTIMIZER && mark->detail == pass->optimizer) {
		ret = end_iteration(pass, mark->time_ns);
		pass->iteration_ns = mark->time_ns;
	}
	return ret;
}

static int see_user(struct pass *pass, int64_t time_ns)
{
	int ret = end_iteration(pass, time_ns);

	pass->iteration_ns = time_ns;
	return ret;
}

static int see(struct pass *pass, const struct ring_record *mark)
{
	switch (mark->kind) {
	case MARK_DATALOADER:
		return see_loader(pass, mark->time_ns);
	case MARK_DATALOADER_END:
		return see_loader_end(pass, mark);
	case MARK_OPTIMIZER_BEGIN:
		pass->optimizer_ns = mark->time_ns;
		return 0;
	case MARK_OPTIMIZER:
		return see_step(pass, mark);
	case MARK_ITERATION:
		return see_user(pass, mark->time_ns);
	case MARK_GC:
		return add(pass, SLICE_GC, mark->time_ns - mark->value, mark->time_ns,
			   mark->detail);
	default:
		return 0;
	}
}

/* What is under way at the end: in a job that hangs, where it hangs. */
static int see_end(struct pass *pass, int64_t last_ns)
{
	size_t before;
	int ret = 0;

	if (pass->bound == BOUND_LOADER && pass->stepped_ns != NEVER)
		ret = end_iteration(pass, pass->stepped_ns);
	before = pass->ret->cnt;
	if (ret == 0 && pass->iteration_ns != NEVER && pass->iteration_ns < last_ns)
		ret = end_iteration(pass, last_ns);
	if (ret == 0 && pass->loader_ns != NEVER)
		ret = add(pass, SLICE_LOADER, pass->loader_ns, last_ns, 0);
	if (ret == 0 && pass->optimizer_ns != NEVER)
		ret = add(pass, SLICE_OPTIMIZER, pass->optimizer_ns, last_ns, 0);
	for (size_t i = before; i < pass->ret->cnt; i++)
		pass->ret->data[i].open = true;
	return ret;
}

static void choose_bound(struct pass *pass, const record_vec *marks)
{
	for (size_t i = marks->cnt; i > 0; i--) {
		const struct ring_record *mark = &marks->data[i - 1];

		if (mark->kind == MARK_ITERATION)
			pass->bound = BOUND_USER;
		if (mark->kind == MARK_DATALOADER && pass->bound < BOUND_LOADER)
			pass->bound = BOUND_LOADER;
		if (mark->kind == MARK_OPTIMIZER)
			pass->optimizer = mark->detail;
	}
}

int timeline_marks(const struct rank_view *view, slice_vec *ret)
{
	const record_vec *marks = &view->log->marks;
	struct pass pass = { .ret = ret,
			     .iteration_ns = NEVER,
			     .loader_ns = NEVER,
			     .optimizer_ns = NEVER,
			     .stepped_ns = NEVER };
	int error = 0;

	choose_bound(&pass, marks);
	/* A ring that went round has lost the first iterations, and how many they were. */
	pass.counted = marks->cnt > 0 && marks->data[0].seq != 1;
	for (size_t i = 0; i < marks->cnt && error == 0; i++)
		error = see(&pass, &marks->data[i]);
	return error == 0 ? see_end(&pass, view->last_ns) : error;
}
