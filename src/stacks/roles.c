/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/roles.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LOOKED_AT = 8 }; /* outermost frames */

struct role_row {
	const char *pattern, *role;
};

/* Starts of thread names. */
static const struct role_row BY_NAME[] = {
	{ "pt_autograd", "autograd" },		 { "pt_nccl_watchdg", "NCCL watchdog" },
	{ "pt_nccl_heartbt", "NCCL heartbeat" }, { "pt_gloo_runloop", "gloo worker" },
	{ "pt_tcpstore", "TCPStore daemon" },	 { "pt_data_pin", "pin memory" },
	{ "pt_data_worker", "loader worker" },	 { "pt_inductor", "inductor compile worker" },
	{ "cuda-EvtHandlr", "CUDA events" },	 { "iou-wrk", "io_uring worker" },
};

/* Parts of function names (C++ mangled) and of library paths near the beginning of a thread. */
static const struct role_row BY_FRAME[] = {
	{ "_pin_memory_loop", "pin memory" },
	{ "_feed", "queue feeder" },
	{ "_handle_workers", "process pool" },
	{ "_handle_tasks", "process pool" },
	{ "_handle_results", "process pool" },
	{ "ProcessGroupGloo7runLoop", "gloo worker" },
	{ "ProcessGroupNCCL12ncclCommWatchdog", "NCCL watchdog" },
	{ "ProcessGroupNCCL16heartbeatMonitor", "NCCL heartbeat" },
	{ "8autograd6Engine11thread_", "autograd" },
	{ "TCPStoreMasterDaemon", "TCPStore daemon" },
	{ "LibUVStoreDaemon", "TCPStore daemon" },
	{ "N4gloo", "gloo loop" },
	{ "ncclProxy", "NCCL proxy" },
	{ "thread_main", "pthreadpool worker" },
	{ "c1010ThreadPool9main_loop", "torch thread pool" },
	{ "libgomp", "OpenMP worker" },
	{ "libiomp", "OpenMP worker" },
	{ "libomp", "OpenMP worker" },
	{ "openblas", "OpenBLAS worker" },
	{ "libcuda.so", "CUDA driver" },
};

static const char *role_by_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(BY_NAME); i++)
		if (strncmp(name, BY_NAME[i].pattern, strlen(BY_NAME[i].pattern)) == 0)
			return BY_NAME[i].role;
	return NULL;
}

static bool frame_has(const struct stacks_frame *frame, const char *pattern)
{
	if (frame->function != NULL && strstr(frame->function, pattern) != NULL)
		return true;
	return frame->kind == STACKS_NATIVE && frame->file != NULL &&
	       strstr(frame->file, pattern) != NULL;
}

/* The earliest row of the table that any of the outermost frames has. */
static const char *role_by_frames(const struct stacks_thread *thread)
{
	const size_t first = thread->frame_cnt > LOOKED_AT ? thread->frame_cnt - LOOKED_AT : 0;

	for (size_t row = 0; row < ARRAY_SIZE(BY_FRAME); row++)
		for (size_t i = first; i < thread->frame_cnt; i++)
			if (frame_has(&thread->frames[i], BY_FRAME[row].pattern))
				return BY_FRAME[row].role;
	return NULL;
}

/* "worker-12" and "worker-13" have one role. */
static void role_from_name(const char *name, char *ret, size_t size)
{
	size_t len = strlen(name);

	while (len > 1 && (isdigit((unsigned char)name[len - 1]) || name[len - 1] == '-' ||
			   name[len - 1] == '_' || name[len - 1] == '#'))
		len--;
	(void)snprintf(ret, size, "%.*s", (int)len, name);
}

void roles_assign(struct stacks_thread *thread, bool main, const char *main_name)
{
	const char *role = main ? "main" : role_by_name(thread->name);

	if (role == NULL)
		role = role_by_frames(thread);
	if (role == NULL && strcmp(thread->name, main_name) != 0 && thread->name[0] != '\0') {
		role_from_name(thread->name, thread->role, sizeof(thread->role));
		return;
	}
	if (role == NULL)
		role = thread->runs_python ? "Python thread" : "native thread";
	(void)snprintf(thread->role, sizeof(thread->role), "%s", role);
}
