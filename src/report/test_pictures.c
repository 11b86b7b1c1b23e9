/* SPDX-License-Identifier: Apache-2.0 */
#include "report/test_pictures.h"

#include <stdlib.h>
#include <string.h>

double test_noise(int rank, int salt)
{
	uint32_t x = (uint32_t)rank * 2654435761U + (uint32_t)salt * 40503U;

	x ^= x >> 15;
	x *= 2246822519U;
	x ^= x >> 13;
	return (double)(x & 0xffff) / 65535.0;
}

double test_wobble(int rank, int salt, double spread)
{
	double sum = test_noise(rank, salt) + test_noise(rank, salt + 100) +
		     test_noise(rank, salt + 200);

	return 1.0 + spread * (sum / 1.5 - 1.0);
}

void test_set_origin(struct report *report, const char *command)
{
	static const char *const hosts[] = { "gpu-000", "gpu-001" };

	report->origin = (struct report_origin){
		.command = command,
		.run_id = command != NULL ? "20231114-220301-train" : NULL,
		.hosts = hosts,
		.host_cnt = 2,
		.begin_ns = INT64_C(1700000000000000000),
		.end_ns = INT64_C(1700000003280000000),
		.made_ns = command != NULL ? INT64_C(1700000009000000000) : 0,
		.steps_known = true,
		.first_step = 120,
		.last_step = 122,
	};
}

/* Makes a list of one text. */
static const char *const *one_text(struct report *report, const char *text)
{
	const char **list = arena_alloc(&report->arena, sizeof(*list));

	if (list == NULL)
		abort();
	*list = text;
	return list;
}

static void *must_copy(struct report *report, const void *data, size_t size)
{
	void *copy = arena_alloc(&report->arena, size);

	if (copy == NULL)
		abort();
	return memcpy(copy, data, size);
}

static void set_lateness(struct report *report)
{
	struct report_worker *workers =
		must_copy(report, report->workers, report->worker_cnt * sizeof(*report->workers));

	for (size_t w = 0; w < report->worker_cnt; w++) {
		double *late =
			arena_calloc(&report->arena, workers[w].iteration_cnt + 1, sizeof(*late));

		if (late == NULL)
			abort();
		for (size_t i = 0; i < workers[w].iteration_cnt; i++)
			late[i] = report->iteration_ms * (w == 2 ? 0.6 : 0.02 * (double)w);
		workers[w].late_ms = late;
	}
	report->workers = workers;
}

static void set_lanes(struct report *report)
{
	static const struct report_stretch stretches[] = {
		{ 0, 60, { [CLASS_COMPUTE] = 0.8, [CLASS_HOST] = 0.1 } },
		{ 60, 100, { [CLASS_COMM] = 0.5, [CLASS_IDLE] = 0.5 } },
	};
	static const struct report_meeting late[] = { { 60, 62, 0 }, { 95, 100, 0 } };
	static const struct report_meeting early[] = { { 30, 62, 30 }, { 94, 100, 1 } };
	static const struct report_lane lanes[] = {
		{ 2, "culprit", stretches, 2, late, 2 },
		{ 0, "waits most for it", stretches, 1, early, 2 },
	};

	report->lanes = (struct report_lanes){ .lanes = lanes,
					       .lane_cnt = 2,
					       .length_ms = 100,
					       .step_known = true,
					       .step = 121,
					       .aligned = true };
}

static void set_flame(struct report *report, const char *name)
{
	static const int all[] = { 0, 1, 2, 3 }, others[] = { 0, 1, 3 };
	const struct report_flame_node nodes[] = {
		{ "train.py: main", -1, CLASS_HOST, 90, 40, NULL, 0 },
		{ "train.py: step", 0, CLASS_HOST, 90, 40, NULL, 0 },
		{ name, 1, CLASS_HOST, 60, 5, NULL, 0 },
		{ "forward", 1, CLASS_HOST, 25, 34, NULL, 0 },
		{ "gemm", -1, CLASS_COMPUTE, 10, 10, NULL, 0 },
		{ "gone", 0, CLASS_HOST, 0, 8, others, ARRAY_SIZE(others) },
	};

	report->flame = (struct report_flame){ .nodes = must_copy(report, nodes, sizeof(nodes)),
					       .node_cnt = ARRAY_SIZE(nodes),
					       .rank = 2,
					       .culprit = true,
					       .peer_cnt = 3,
					       .compared = all,
					       .compared_cnt = ARRAY_SIZE(all),
					       .iteration_ms = 100 };
}

void test_set_pictures(struct report *report, const char *name)
{
	set_lateness(report);
	set_lanes(report);
	set_flame(report, name);
}

void test_set_pace(struct report *report)
{
	struct report_pace_point points[50];

	for (uint64_t i = 0; i < 50; i++) {
		double ms = i < 30 ? 9.8 + 0.1 * (double)(i % 3) : 33.8;

		points[i] = (struct report_pace_point){ 20 * i, ms, ms * 1.02, ms * 1.1 };
	}
	report->pace = (struct report_pace){ must_copy(report, points, sizeof(points)), 50, 9.8 };
}

void test_set_named(struct report *report, const char *text)
{
	report->origin = (struct report_origin){
		.command = text, .run_id = text, .hosts = one_text(report, text), .host_cnt = 1
	};
}

void test_set_hang_stacks(struct report *report)
{
	static const struct stacks_frame waits[] = {
		{ .kind = STACKS_NATIVE,
		  .function = "_ZN4c10d4Work4waitEv",
		  .file = "/v/libtorch_cpu.so" },
		{ .kind = STACKS_PYTHON,
		  .function = "all_reduce",
		  .file = "/v/site-packages/torch/distributed/c10d.py",
		  .line = 9 },
		{ .kind = STACKS_PYTHON, .function = "main", .file = "train.py", .line = 31 },
	};
	static const struct stacks_frame saves[] = {
		{ .kind = STACKS_PYTHON,
		  .function = "save<t>",
		  .file = "checkpoint.py",
		  .line = 7 },
		{ .kind = STACKS_PYTHON, .function = "main", .file = "train.py", .line = 40 },
	};
	static const struct stacks_frame idle[] = {
		{ .kind = STACKS_PYTHON, .function = "beat", .file = "log.py", .line = 2 },
	};
	static struct stacks_thread waiting[] = {
		{ .tid = 1,
		  .role = "main",
		  .state = 'S',
		  .mixed = true,
		  .frames = waits,
		  .frame_cnt = 3 },
		{ .tid = 2, .role = "Python thread", .state = 'S', .frames = idle, .frame_cnt = 1 },
	};
	static struct stacks_thread saving[] = {
		{ .tid = 1,
		  .role = "main",
		  .state = 'D',
		  .mixed = true,
		  .frames = saves,
		  .frame_cnt = 2 },
		{ .tid = 2, .role = "Python thread", .state = 'S', .frames = idle, .frame_cnt = 1 },
	};
	static const struct stacks_process processes[] = {
		{ .pid = 11, .rank = 0, .state = 'S', .threads = waiting, .thread_cnt = 2 },
		{ .pid = 12, .rank = 1, .state = 'S', .threads = waiting, .thread_cnt = 2 },
		{ .pid = 14, .rank = 3, .state = 'D', .threads = saving, .thread_cnt = 2 },
	};
	static const struct stacks_process *const all[] = { &processes[0], &processes[1],
							    &processes[2] };

	report->stacks = all;
	report->stack_cnt = 3;
}
