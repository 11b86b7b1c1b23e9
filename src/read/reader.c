/* SPDX-License-Identifier: Apache-2.0 */
#include "read/reader.h"

#include "format/flightlog/flightlog.h"
#include "read/flight/flight.h"
#include "read/foreign.h"
#include "read/kineto/kineto.h"
#include "read/nsys/nsys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_BYTES 16
#define WORKER_MAX 0xffffff

/* The first row reads what no other row recognizes. */
static const struct reader readers[] = {
	{
		.name = "Kineto trace",
		.content = CONTENT_TRACE,
		.suffixes = { ".json", ".json.gz" },
		.read = kineto_read_input,
		.read_head = kineto_read_head,
		.ranks_from = "distributedInfo",
	},
	{
		.name = "flight log",
		.content = CONTENT_FLIGHT_LOG,
		.magic = "PFL1",
		.magic_len = 4,
		.suffixes = { FLIGHT_SUFFIX },
		.read = flight_read_input,
		.applies_sidecar = true,
		.ranks_from = "distributedInfo",
	},
	{
		.name = "Nsight Systems export",
		.content = CONTENT_TRACE,
		.magic = "SQLite format 3",
		.magic_len = 16,
		.suffixes = { NSYS_SUFFIX },
		.read = nsys_read_input,
		.list_workers = nsys_list_workers,
		.family = "Nsight Systems",
		.ranks_from = "NCCL or MPI",
	},
	{
		.name = "Nsight Systems report",
		.content = CONTENT_TRACE,
		.is_path = nsys_is_report,
		.read = nsys_refuse_report,
	},
	{
		.name = "fingerprint",
		.content = CONTENT_FINGERPRINT,
		.magic = "PTFP",
		.magic_len = 4,
		.suffixes = { ".ptfp" },
		.ranks_from = "distributedInfo",
	},
	{
		.name = "sidecar",
		.content = CONTENT_SIDECAR,
		.magic = "PSC1",
		.magic_len = 4,
	},
};

/* Fills head; 0 bytes of what is not a regular file: a pipe would lose what is read here. */
static size_t read_magic(const char *path, char head[static HEAD_BYTES])
{
	struct stat st;
	ssize_t n;
	int fd;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return 0;
	n = read(fd, head, HEAD_BYTES);
	(void)close(fd);
	return n > 0 ? (size_t)n : 0;
}

/* NULL: no row recognizes path. */
static const struct reader *recognize(const char *path)
{
	char head[HEAD_BYTES];
	size_t len = read_magic(path, head);

	for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
		const struct reader *reader = &readers[i];

		if (reader->magic != NULL && len >= reader->magic_len &&
		    memcmp(head, reader->magic, reader->magic_len) == 0)
			return reader;
		if (reader->is_path != NULL && reader->is_path(path))
			return reader;
	}
	return NULL;
}

/* The number behind '#' at the end of path, and where the '#' is; -1: none. */
static int64_t worker_of(const char *path, size_t *ret_at)
{
	const char *mark = strrchr(path, '#');
	size_t digits = mark != NULL ? strspn(mark + 1, "0123456789") : 0;
	long worker;

	if (digits == 0 || digits > 8 || mark[1 + digits] != '\0')
		return -1;
	worker = strtol(mark + 1, NULL, 10);
	*ret_at = (size_t)(mark - path);
	return worker <= WORKER_MAX ? worker : -1;
}

/* Splits path; file: storage for the name of the file. */
static const struct reader *resolve(const char *path, char file[static PATH_MAX],
				    struct reader_input *ret)
{
	const struct reader *reader = recognize(path);
	size_t len;
	int64_t worker = worker_of(path, &len);

	*ret = (struct reader_input){ .file = path, .source = path, .worker = -1 };
	if (reader != NULL)
		return reader;
	if (worker < 0 || len >= PATH_MAX || access(path, F_OK) == 0)
		return &readers[0];
	memcpy(file, path, len);
	file[len] = '\0';
	reader = recognize(file);
	if (reader == NULL || reader->list_workers == NULL)
		return &readers[0];
	ret->file = file;
	ret->worker = worker;
	return reader;
}

const struct reader *reader_of(const char *path)
{
	char file[PATH_MAX];
	struct reader_input input;

	return resolve(path, file, &input);
}

static bool ends_with(const char *name, size_t len, const char *suffix)
{
	size_t want = strlen(suffix);

	return len > want && memcmp(name + len - want, suffix, want) == 0;
}

const struct reader *reader_of_name(const char *name)
{
	size_t len = strlen(name), mark;

	if (worker_of(name, &mark) >= 0)
		len = mark;
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
		for (const char *const *suffix = readers[i].suffixes; *suffix != NULL; suffix++) {
			if (ends_with(name, len, *suffix))
				return &readers[i];
		}
	}
	return NULL;
}

void reader_list_suffixes(enum reader_content content, struct str *out)
{
	const char *separator = "";

	for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
		if (content == CONTENT_TRACE ? readers[i].read == NULL
					     : readers[i].content != content)
			continue;
		for (const char *const *suffix = readers[i].suffixes; *suffix != NULL; suffix++) {
			str_printf(out, "%s*%s", separator, *suffix);
			separator = ", ";
		}
	}
}

/* What no row recognizes may be a file that is known, and no trace. */
static int explain_foreign(const char *path, int error, struct err *err)
{
	const char *what = error != -ENOMEM ? foreign_describe(path) : NULL;

	return what != NULL ? err_set(err, EINVAL, "%s: expected a trace, found %s", path, what)
			    : error;
}

/* A Chrome trace of another program, of whose events no reader knows what they are. */
static int refuse_unknown(const char *path, struct trace *trace, struct err *err)
{
	const struct event *unknown = NULL;

	for (size_t i = 0; i < trace->event_cnt; i++) {
		const struct event *event = &trace->events[i];

		if (event->kind == KIND_OTHER)
			unknown = unknown != NULL ? unknown : event;
		else if (event->kind != KIND_GC && event->kind != KIND_OVERHEAD)
			return 0;
	}
	if (unknown == NULL || trace->drops.unknown_category == 0)
		return 0;
	return err_set(err, ENODATA,
		       "%s: expected events of torch.profiler or JAX, found %" PRIu64
		       " of other categories, such as \"%.80s\": the trace of another program",
		       path, (uint64_t)trace->drops.unknown_category, event_name(trace, unknown));
}

int reader_read(const char *path, const struct sidecar *sidecar, struct trace *ret, struct err *err)
{
	char file[PATH_MAX];
	struct reader_input input;
	const struct reader *reader = resolve(path, file, &input);
	struct trace trace;
	int error;

	if (reader->read == NULL)
		return err_set(err, EINVAL, "%s: expected a trace, found a %s", path, reader->name);
	input.sidecar = sidecar;
	error = reader->read(&input, &trace, err);
	if (error < 0)
		return reader == &readers[0] ? explain_foreign(path, error, err) : error;
	error = reader == &readers[0] ? refuse_unknown(path, &trace, err) : 0;
	if (error < 0) {
		trace_done(&trace);
		return error;
	}
	if (sidecar != NULL && !reader->applies_sidecar)
		error = sidecar_apply(sidecar, &trace);
	if (error < 0) {
		trace_done(&trace);
		return err_set(err, -error, "%s: out of memory", path);
	}
	*ret = trace;
	return 0;
}

int reader_read_head(const char *path, struct trace *ret)
{
	const struct reader *reader = reader_of(path);

	return reader->read_head != NULL ? reader->read_head(path, ret) : -ENOTSUP;
}

int reader_list_workers(const char *path, reader_worker_vec *ret)
{
	char file[PATH_MAX];
	struct reader_input input;
	const struct reader *reader = resolve(path, file, &input);
	int error = 0;

	*ret = (reader_worker_vec){ 0 };
	if (reader->list_workers != NULL && input.worker < 0)
		error = reader->list_workers(path, ret);
	if (error < 0 || ret->cnt == 1)
		ret->cnt = 0;
	return error == -ENOMEM ? -ENOMEM : 0;
}
