/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/stallhunt.h"

#include "base/file.h"
#include "base/log.h"
#include "live/hostd/pool.h"
#include "model/verdict.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

enum { ANSWER_BYTES_MAX = 4 << 20 };

struct stallhunt {
	struct pool *pool;
	const struct run_options *options;
	stallhunt_found *found;
	void *arg;
	bool open;
	uint64_t number;
	int64_t begun_ns; /* of the latest; 0: none yet */
	char path[4200];
};

bool stallhunt_wants(const struct wire_report *report)
{
	const size_t cnt = MIN(report->finding_cnt, WIRE_REPORT_FINDINGS);

	if (report->verdict == VERDICT_SLOW)
		return true;
	for (size_t i = 0; report->verdict == VERDICT_ABNORMAL && i < cnt; i++)
		if (stalls_may_explain(report->findings[i].cause))
			return true;
	return false;
}

static void copy_line(const char *text, struct wire_stalls *ret)
{
	char *line = ret->lines[ret->line_cnt++];

	(void)snprintf(line, sizeof(ret->lines[0]), "%.*s", (int)sizeof(ret->lines[0]) - 1, text);
	for (char *c = line; *c != '\0'; c++)
		if ((unsigned char)*c < 0x20)
			*c = '?';
}

static bool is_stall(const json_t *finding)
{
	const char *kind = json_string_value(json_object_get(finding, "kind"));

	return json_is_true(json_object_get(finding, "matters")) && kind != NULL &&
	       strcmp(kind, "stall") == 0 && json_is_string(json_object_get(finding, "summary"));
}

/* Whether the thread with this id is the first one of its process: it trains. */
static bool is_main(const json_t *root, json_int_t tid)
{
	const json_t *threads = json_object_get(root, "threads");

	for (size_t i = 0; i < json_array_size(threads); i++) {
		const json_t *thread = json_array_get(threads, i);

		if (json_integer_value(json_object_get(thread, "tid")) == tid)
			return json_integer_value(json_object_get(thread, "pid")) == tid;
	}
	return false;
}

/* Adds the time of a stall to that of the training threads. *one: the only one so far; 0: none. */
static void add_time(const json_t *root, const json_t *finding, json_int_t *one,
		     struct wire_stalls *ret)
{
	const double window_ms = json_number_value(json_object_get(root, "window_ms"));
	const double total_ms = json_number_value(json_object_get(finding, "total_ms"));
	const json_t *tids = json_object_get(finding, "threads");
	bool some = false;

	for (size_t i = 0; i < json_array_size(tids); i++) {
		const json_int_t tid = json_integer_value(json_array_get(tids, i));

		some |= is_main(root, tid);
		if (*one == 0)
			*one = tid;
		ret->several |= tid != *one;
	}
	if (some && window_ms > 0 && total_ms > 0)
		ret->stall_frac += total_ms / window_ms;
}

int stallhunt_parse(const char *text, size_t len, struct wire_stalls *ret)
{
	json_t *root = json_loadb(text, len, 0, NULL);
	const json_t *findings = json_object_get(root, "findings");
	const char *verdict = json_string_value(json_object_get(root, "verdict"));
	const double seconds = json_number_value(json_object_get(root, "window_ms")) / 1000;
	json_int_t one = 0;
	char line[120];

	if (!json_is_array(findings) || verdict == NULL) {
		json_decref(root);
		return -EINVAL;
	}
	ret->line_cnt = ret->found = ret->several = 0;
	ret->stall_frac = 0;
	for (size_t i = 0; i < json_array_size(findings) && ret->line_cnt < WIRE_STALL_LINES; i++) {
		const json_t *finding = json_array_get(findings, i);

		if (!is_stall(finding))
			continue;
		copy_line(json_string_value(json_object_get(finding, "summary")), ret);
		add_time(root, finding, &one, ret);
	}
	ret->found = ret->line_cnt > 0;
	if (ret->line_cnt == 0) {
		(void)snprintf(line, sizeof(line), "no stall was seen in %.0f s%s", seconds,
			       strcmp(verdict, "inconclusive") == 0 ? ", but not all could be seen"
								    : "");
		copy_line(line, ret);
	}
	json_decref(root);
	return 0;
}

static int read_answer(const char *path, struct wire_stalls *ret)
{
	_cleanup_free_ char *text = NULL;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len;
	int error;

	if (fd < 0)
		return -errno;
	error = file_read_whole(path, fd, ANSWER_BYTES_MAX, &text, &len, NULL);
	(void)close(fd);
	return error < 0 ? error : stallhunt_parse(text, len, ret);
}

static void window_ended(void *arg, uint64_t id, int status, const char *text)
{
	struct stallhunt *hunt = arg;
	struct wire_stalls stalls = { .number = id };

	hunt->open = false;
	if (status != 0 || read_answer(hunt->path, &stalls) < 0) {
		log_line(LOG_INFO, "event=no-stall-window report=%" PRIu64 " why=\"%.200s\"", id,
			 text);
		return;
	}
	hunt->found(hunt->arg, &stalls);
}

struct stallhunt *stallhunt_new(uv_loop_t *loop, const struct run_options *options,
				stallhunt_found *found, void *arg)
{
	struct stallhunt *hunt = calloc(1, sizeof(*hunt));

	if (hunt == NULL)
		return NULL;
	*hunt = (struct stallhunt){ .options = options, .found = found, .arg = arg };
	hunt->pool = pool_new(loop, 1, window_ended, hunt);
	if (hunt->pool == NULL)
		free(take_ptr(hunt));
	return hunt;
}

void stallhunt_close(struct stallhunt *hunt)
{
	if (hunt == NULL)
		return;
	pool_close(hunt->pool); /* calls nothing from now on */
	free(hunt);
}

/* "--pid=4711,4712" */
static void list_pids(const uint32_t *pids, size_t cnt, char *ret, size_t size)
{
	size_t len = (size_t)snprintf(ret, size, "--pid=");

	for (size_t i = 0; i < MIN(cnt, (size_t)STALLHUNT_WORKERS_MAX) && len < size; i++)
		len += (size_t)snprintf(ret + len, size - len, "%s%" PRIu32, i > 0 ? "," : "",
					pids[i]);
}

void stallhunt_begin(struct stallhunt *hunt, uint64_t number, const uint32_t *pids, size_t cnt,
		     int64_t now_ns)
{
	char list[32 + 12 * STALLHUNT_WORKERS_MAX], seconds[32];
	const char *argv[] = { NULL,	   "stalls", list, seconds, "--format=json",
			       "--output", NULL,     NULL };

	if (hunt == NULL || hunt->open || cnt == 0 ||
	    (hunt->begun_ns != 0 && now_ns - hunt->begun_ns < STALLHUNT_GAP_NS))
		return;
	list_pids(pids, cnt, list, sizeof(list));
	(void)snprintf(seconds, sizeof(seconds), "--seconds=%lld",
		       (long long)(STALLHUNT_NS / NSEC_PER_SEC));
	(void)snprintf(hunt->path, sizeof(hunt->path), "%s/stalls-%" PRIu64 ".json",
		       hunt->options->out_dir, number);
	argv[0] = hunt->options->program;
	argv[6] = hunt->path;
	hunt->open = pool_add(hunt->pool, number, argv) == 0;
	hunt->begun_ns = now_ns;
	hunt->number = number;
}
