/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/record.h"

#include "format/flightlog.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int record_save(const struct worker *worker, const char *out_dir, struct err *err)
{
	struct flightlog log;
	char path[4096];
	int ret;

	(void)snprintf(path, sizeof(path), "%s/" RECORD_FOLDER, out_dir);
	if (mkdir(path, 0755) != 0 && errno != EEXIST)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if ((size_t)snprintf(path, sizeof(path), "%s/" RECORD_FOLDER "/rank%d" FLIGHT_SUFFIX,
			     out_dir, worker->rank) >= sizeof(path))
		return err_set(err, ENAMETOOLONG, "%s: path too long", out_dir);
	flightlog_init(&log);
	ret = flightlog_take(&log, worker->block.flight, true);
	if (ret < 0)
		(void)err_set(err, -ret, "%s: out of memory", path);
	else {
		log.rank = worker->rank;
		(void)gethostname(log.host, sizeof(log.host) - 1);
		ret = flightlog_write(&log, path, err);
	}
	flightlog_done(&log);
	return ret;
}
