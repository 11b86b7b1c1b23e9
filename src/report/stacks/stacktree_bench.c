/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges the stacks of a large job into one tree, and prints it as text:
 *
 *	stacktree_bench RANKS [FRAMES [LINES]]
 *
 * Each rank has a training thread with FRAMES frames and four threads with five each, in memory of its
 * own; hosts of eight ranks share texts. Ranks are in one of ten places, which differ in their
 * innermost half, and there in one of LINES lines. Text is made for up to ten lines.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/splitmix.h"
#include "report/stacks/stacktree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { HOST_RANKS = 8, THREADS = 5, POOL_FRAMES = 5, PLACES = 10 };

struct shape {
	uint32_t rank_cnt, frame_cnt, line_cnt;
};

static void die(const char *what)
{
	fprintf(stderr, "stacktree_bench: %s\n", what);
	exit(1);
}

static void *need(void *memory)
{
	if (memory == NULL)
		die("out of memory");
	return memory;
}

/* Texts of a host, which its ranks share: one for each place and depth. */
static const char **host_texts(struct arena *arena, const struct shape *shape)
{
	const char **ret =
		need(arena_calloc(arena, (size_t)PLACES * shape->frame_cnt, sizeof(*ret)));

	for (uint32_t place = 0; place < PLACES; place++)
		for (uint32_t i = 0; i < shape->frame_cnt; i++)
			ret[place * shape->frame_cnt + i] =
				need(arena_printf(arena, "TrainingModule%u.forward_of_layer_%u",
						  i < shape->frame_cnt / 2 ? place : 0, i));
	return ret;
}

static void fill_thread(struct arena *arena, struct stacks_thread *thread, size_t frame_cnt,
			const char *role)
{
	struct stacks_frame *frames = need(arena_calloc(arena, frame_cnt, sizeof(*frames)));

	*thread = (struct stacks_thread){ .state = 'S', .mixed = true, .why_incomplete = "" };
	(void)snprintf(thread->role, sizeof(thread->role), "%s", role);
	for (size_t i = 0; i < frame_cnt; i++)
		frames[i] = (struct stacks_frame){ .kind = STACKS_NATIVE,
						   .function = "epoll_wait",
						   .file = "/lib/libc.so.6",
						   .offset = i };
	thread->frames = frames;
	thread->frame_cnt = frame_cnt;
}

static void fill_rank(struct arena *arena, const struct shape *shape, uint32_t rank,
		      const char *const *texts, struct stacks_process *ret)
{
	static const char *const roles[THREADS] = { "main", "autograd", "watchdog", "heartbeat",
						    "pin_memory" };
	const uint64_t random = splitmix_finish(rank + 1);
	const uint32_t place = (uint32_t)(random % PLACES);
	struct stacks_thread *threads = need(arena_calloc(arena, THREADS, sizeof(*threads)));
	struct stacks_frame *frames;

	for (int i = 0; i < THREADS; i++)
		fill_thread(arena, &threads[i], i == 0 ? shape->frame_cnt : POOL_FRAMES, roles[i]);
	threads[0].runs_python = true;
	frames = (struct stacks_frame *)(uintptr_t)threads[0].frames;
	for (uint32_t i = 0; i < shape->frame_cnt; i++)
		frames[i] = (struct stacks_frame){
			.kind = STACKS_PYTHON,
			.function = texts[place * shape->frame_cnt + i],
			.file = "/srv/job/site-packages/model/layers.py",
			.line = 1000 + i + (i == 0 ? rank % shape->line_cnt : 0),
		};
	*ret = (struct stacks_process){ .pid = 1000 + rank,
					.rank = (int32_t)rank,
					.state = 'S',
					.threads = threads,
					.thread_cnt = THREADS };
}

static double since_ms(int64_t begin_ns)
{
	return (double)(clock_now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns) / 1e6;
}

int main(int argc, char **argv)
{
	static const struct stackview view = { .frames = STACKVIEW_BOTH };
	const struct shape shape = { argc > 1 ? (uint32_t)atoi(argv[1]) : 100000,
				     argc > 2 ? (uint32_t)atoi(argv[2]) : 40,
				     argc > 3 ? (uint32_t)atoi(argv[3]) : 2 };
	struct arena arena = { 0 };
	struct stacks_process *processes = need(calloc(shape.rank_cnt + 1, sizeof(*processes)));
	const struct stacks_process **pointers =
		need(calloc(shape.rank_cnt + 1, sizeof(*pointers)));
	const char **texts = NULL;
	struct stacknames names = { 0 };
	struct stacktree tree;
	struct rusage usage;
	struct str out = { 0 };
	int64_t begin_ns;

	if (shape.rank_cnt == 0 || shape.frame_cnt == 0 || shape.line_cnt == 0)
		die("expected RANKS [FRAMES [LINES]], numbers above 0");
	for (uint32_t rank = 0; rank < shape.rank_cnt; rank++) {
		if (rank % HOST_RANKS == 0)
			texts = host_texts(&arena, &shape);
		fill_rank(&arena, &shape, rank, texts, &processes[rank]);
		pointers[rank] = &processes[rank];
	}
	begin_ns = clock_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (stacktree_make(&tree, pointers, shape.rank_cnt, &view, &names) < 0)
		die("out of memory");
	const double merged_ms = since_ms(begin_ns);

	if (shape.line_cnt <= 10)
		stacktree_text(&out, &tree);
	(void)getrusage(RUSAGE_SELF, &usage);
	printf("ranks %u frames %u lines %u: merged %.0f ms, with text %.0f ms; %zu nodes, "
	       "%zu bytes, %ld MB\n",
	       shape.rank_cnt, shape.frame_cnt, shape.line_cnt, merged_ms, since_ms(begin_ns),
	       tree.nodes.cnt, out.len, usage.ru_maxrss / 1024);
	stacktree_done(&tree);
	stacknames_done(&names);
	str_done(&out);
	arena_done(&arena);
	free(pointers);
	free(processes);
	return 0;
}
