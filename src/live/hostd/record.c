/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/record.h"

#include "format/flightlog/flightlog.h"
#include "format/flightlog/flightlog_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define BEFORE ".before"

/* The pid of the process whose recorder is in path; 0: none or unknown. */
static uint32_t saved_pid(const char *path)
{
	struct flightlog_file_header header;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t len;

	if (fd < 0)
		return 0;
	len = pread(fd, &header, sizeof(header), 0);
	(void)close(fd);
	return len == (ssize_t)sizeof(header) && header.magic == FLIGHTLOG_MAGIC ? header.pid : 0;
}

/* Keeps the recorder of the process that a restarted rank replaces. */
static void keep_predecessor(const struct worker *worker, const char *out_dir, const char *path)
{
	uint32_t pid = saved_pid(path);
	char before[PATH_BYTES];

	if (pid == 0 || pid == worker->pid)
		return;
	(void)snprintf(before, sizeof(before), "%s/" RECORD_FOLDER "/rank%d" BEFORE FLIGHT_SUFFIX,
		       out_dir, worker->rank);
	(void)rename(path, before);
}

static int write_record(const struct worker *worker, const char *path, struct err *err)
{
	struct flightlog log;
	int ret;

	flightlog_init(&log);
	ret = flightlog_take(&log, worker->block.flight, true);
	if (ret < 0) {
		(void)err_set(err, -ret, "%s: out of memory", path);
	} else {
		log.rank = worker->rank;
		log.pid = worker->pid;
		(void)gethostname(log.host, sizeof(log.host) - 1);
		ret = flightlog_write(&log, path, err);
	}
	flightlog_done(&log);
	return ret;
}

int record_save(const struct worker *worker, const char *out_dir, struct err *err)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "%s/" RECORD_FOLDER, out_dir);
	if (mkdir(path, 0755) != 0 && errno != EEXIST)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	/* Leaves room for the longer name of the predecessor's file. */
	if ((size_t)snprintf(path, sizeof(path), "%s/" RECORD_FOLDER "/rank%d" FLIGHT_SUFFIX,
			     out_dir, worker->rank) >= sizeof(path) - sizeof(BEFORE))
		return err_set(err, ENAMETOOLONG, "%s: path too long", out_dir);
	keep_predecessor(worker, out_dir, path);
	return write_record(worker, path, err);
}
