/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/pool.h"

#include "base/subprocess.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define ARGS_MAX 16

struct task {
	struct pool *pool;
	uint64_t id;
	char *argv[ARGS_MAX];
	uv_process_t process;
	bool alive;	  /* started and not yet reaped by libuv */
	uv_pipe_t errors; /* its stderr, whose end goes into the report */
	bool follows;	  /* started by pool_follow(); it has an input: */
	uv_pipe_t input;
	int fds[2];
	char text[512];
	size_t len;
	int status;
	int open_handles; /* done() is called when the last is closed */
};

struct pool {
	uv_loop_t *loop;
	unsigned jobs;
	pool_done *done;
	void *arg;
	VEC(struct task *) waiting;
	VEC(struct task *) running;
	uv_idle_t starter; /* starts tasks outside pool_add() */
	bool closing;
};

static void starter_closed(uv_handle_t *handle)
{
	struct pool *pool = handle->data;

	vec_done(&pool->waiting);
	vec_done(&pool->running);
	free(pool);
}

static void free_task(struct task *task)
{
	for (size_t i = 0; i < ARGS_MAX; i++)
		free(task->argv[i]);
	free(task);
}

static void forget_running(struct pool *pool, const struct task *task)
{
	for (size_t i = 0; i < pool->running.cnt; i++) {
		if (pool->running.data[i] == task) {
			pool->running.data[i] = pool->running.data[--pool->running.cnt];
			return;
		}
	}
}

static void start_waiting(uv_idle_t *starter);

/* Followers are not counted: the windows of all workers must be followed at the same time. */
static size_t jobs_running(const struct pool *pool)
{
	size_t cnt = 0;

	vec_foreach(task, &pool->running)
		cnt += !(*task)->follows;
	return cnt;
}

static void kick(struct pool *pool)
{
	if (pool->waiting.cnt > 0 && jobs_running(pool) < pool->jobs && !pool->closing)
		(void)uv_idle_start(&pool->starter, start_waiting);
}

static void finish(struct task *task)
{
	struct pool *pool = task->pool;

	forget_running(pool, task);
	if (!pool->closing)
		pool->done(pool->arg, task->id, task->status, task->text);
	free_task(task);
	/* done() may have closed the pool; then its handle is closed here if no task runs. */
	if (!pool->closing)
		kick(pool);
	else if (pool->running.cnt == 0 && !uv_is_closing((uv_handle_t *)&pool->starter))
		uv_close((uv_handle_t *)&pool->starter, starter_closed);
}

static void handle_closed(uv_handle_t *handle)
{
	struct task *task = handle->data;

	if (--task->open_handles == 0)
		finish(task);
}

static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
	struct task *task = handle->data;

	(void)suggested;
	/* Full: keep the newer half. */
	if (task->len > sizeof(task->text) - 64) {
		size_t half = sizeof(task->text) / 2;

		memmove(task->text, task->text + task->len - half, half);
		task->len = half;
	}
	*ret = uv_buf_init(task->text + task->len, (unsigned)(sizeof(task->text) - 1 - task->len));
}

static void errors_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
	struct task *task = stream->data;

	(void)buf;
	if (len < 0) {
		uv_close((uv_handle_t *)stream, handle_closed);
		return;
	}
	task->len += (size_t)len;
	task->text[task->len] = '\0';
}

static void end_input(struct task *task)
{
	if (task->follows && !uv_is_closing((uv_handle_t *)&task->input))
		uv_close((uv_handle_t *)&task->input, handle_closed);
}

static void process_exited(uv_process_t *process, int64_t status, int signal)
{
	struct task *task = process->data;

	task->alive = false;
	task->status = signal != 0 ? 128 + signal : (int)status;
	end_input(task);
	uv_close((uv_handle_t *)process, handle_closed);
}

static int spawn(struct task *task)
{
	uv_stdio_container_t stdio[5] = {
		{ .flags = UV_IGNORE },
		{ .flags = UV_IGNORE },
		{ .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		  .data.stream = (uv_stream_t *)&task->errors },
		{ .flags = UV_INHERIT_FD, .data.fd = task->fds[0] },
		{ .flags = UV_INHERIT_FD, .data.fd = task->fds[1] },
	};
	uv_process_options_t options = {
		.file = task->argv[0],
		.args = task->argv,
		.stdio = stdio,
		.stdio_count = task->follows ? 5 : 3,
		.exit_cb = process_exited,
	};
	int ret;

	(void)uv_pipe_init(task->pool->loop, &task->errors, 0);
	task->errors.data = task;
	task->process.data = task;
	task->open_handles = 2;
	if (task->follows) {
		(void)uv_pipe_init(task->pool->loop, &task->input, 0);
		task->input.data = task;
		task->open_handles = 3;
		stdio[0] = (uv_stdio_container_t){ .flags = UV_CREATE_PIPE | UV_READABLE_PIPE,
						   .data.stream = (uv_stream_t *)&task->input };
	}
	ret = uv_spawn(task->pool->loop, &task->process, &options);
	task->alive = ret == 0;
	if (task->alive)
		(void)setpriority(PRIO_PROCESS, (id_t)task->process.pid, POOL_NICE);
	return ret;
}

static void start_task(struct task *task)
{
	int ret = spawn(task);

	if (ret < 0) {
		task->status = ret;
		(void)snprintf(task->text, sizeof(task->text), "cannot start %s: %s", task->argv[0],
			       uv_strerror(ret));
		uv_close((uv_handle_t *)&task->process, handle_closed);
		uv_close((uv_handle_t *)&task->errors, handle_closed);
		end_input(task);
		return;
	}
	(void)uv_read_start((uv_stream_t *)&task->errors, give_buffer, errors_read);
}

static void start_waiting(uv_idle_t *starter)
{
	struct pool *pool = starter->data;

	while (pool->waiting.cnt > 0 && jobs_running(pool) < pool->jobs) {
		struct task *task = pool->waiting.data[0];

		if (vec_push(&pool->running, task) < 0)
			break;
		pool->waiting.cnt--;
		memmove(&pool->waiting.data[0], &pool->waiting.data[1],
			pool->waiting.cnt * sizeof(task));
		start_task(task);
	}
	(void)uv_idle_stop(starter);
}

struct pool *pool_new(uv_loop_t *loop, unsigned jobs, pool_done *done, void *arg)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (pool == NULL)
		return NULL;
	pool->loop = loop;
	pool->jobs = jobs > 0 ? jobs : 1;
	pool->done = done;
	pool->arg = arg;
	(void)uv_idle_init(loop, &pool->starter);
	pool->starter.data = pool;
	return pool;
}

/* NULL: out of memory. */
static struct task *new_task(struct pool *pool, uint64_t id, const char *const *argv)
{
	struct task *task = calloc(1, sizeof(*task));

	if (task == NULL)
		return NULL;
	task->pool = pool;
	task->id = id;
	for (size_t i = 0; argv[i] != NULL; i++) {
		task->argv[i] = i < ARGS_MAX - 1 ? strdup(argv[i]) : NULL;
		if (task->argv[i] == NULL) {
			free_task(task);
			return NULL;
		}
	}
	return task;
}

int pool_add(struct pool *pool, uint64_t id, const char *const *argv)
{
	struct task *task;

	if (pool->waiting.cnt >= POOL_WAITING_MAX)
		return -ENOBUFS;
	task = new_task(pool, id, argv);
	if (task == NULL)
		return -ENOMEM;
	if (vec_push(&pool->waiting, task) < 0) {
		free_task(task);
		return -ENOMEM;
	}
	kick(pool);
	return 0;
}

int pool_follow(struct pool *pool, uint64_t id, const char *const *argv, const int fds[2])
{
	struct task *task = new_task(pool, id, argv);

	if (task == NULL)
		return -ENOMEM;
	task->follows = true;
	memcpy(task->fds, fds, sizeof(task->fds));
	if (vec_push(&pool->running, task) < 0) {
		free_task(task);
		return -ENOMEM;
	}
	start_task(task);
	return 0;
}

static struct task *find_follower(struct pool *pool, uint64_t id)
{
	vec_foreach(task, &pool->running) {
		if ((*task)->follows && (*task)->id == id)
			return *task;
	}
	return NULL;
}

void pool_release(struct pool *pool, uint64_t id)
{
	struct task *task = find_follower(pool, id);

	if (task != NULL)
		end_input(task);
}

/* A task that did not start has pid 0: kill(0) would signal the whole process group and the job. */
static void kill_task(const struct task *task)
{
	if (task->alive)
		(void)subprocess_signal(task->process.pid, SIGKILL);
}

void pool_kill(struct pool *pool, uint64_t id)
{
	struct task *task = find_follower(pool, id);

	if (task != NULL)
		kill_task(task);
}

void pool_close(struct pool *pool)
{
	if (pool == NULL || pool->closing)
		return;
	pool->closing = true;
	vec_foreach(task, &pool->waiting)
		free_task(*task);
	pool->waiting.cnt = 0;
	vec_foreach(task, &pool->running)
		kill_task(*task);
	if (pool->running.cnt == 0)
		uv_close((uv_handle_t *)&pool->starter, starter_closed);
}
