/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/serve/reportinput.h"

#include "base/file.h"
#include "serve/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REPORT_BYTES_MAX ((size_t)256 << 20)

/* The newest report in a folder of reports. */
static int read_folder(const char *folder, struct str *ret, struct err *err)
{
	struct catalog *catalog = catalog_new(&folder, 1);
	struct archive archive = { .catalog = catalog };
	const struct catalog_report *report;
	int r = catalog != NULL ? catalog_refresh(catalog, 1) : -ENOMEM;

	report = r == 0 ? catalog_borrow(catalog, 0) : NULL;
	if (report != NULL)
		r = archive_get_report(&archive, report->id, "json", ret, err);
	else if (r == 0)
		r = err_set(err, ENOENT,
			    "%s: expected a folder with a report in JSON, found none: `perftracker "
			    "analyze --format json` makes one",
			    folder);
	archive_done(&archive);
	return r;
}

/* JOB/NUMBER, JOB/end. */
static int read_store(const char *store, const char *word, struct str *ret, struct err *err)
{
	const char *slash = strrchr(word, '/');
	struct archive archive = { .catalog = catalog_new(NULL, 0) };
	char job[256], key[STORE_KEY_BYTES], id[ARCHIVE_ID_BYTES + 32];
	int r;

	if (slash == NULL || (size_t)(slash - word) >= sizeof(job)) {
		archive_done(&archive);
		return err_set(err, ENOENT,
			       "%s: no such file; a report of the store is JOB/NUMBER or JOB/end, "
			       "as `perftracker history JOB` lists it",
			       word);
	}
	(void)snprintf(job, sizeof(job), "%.*s", (int)(slash - word), word);
	r = archive.catalog != NULL ? storechoice_open(store, &archive.store, err) : -ENOMEM;
	if (r == 0)
		r = store_find_job(archive.store, job, key, err);
	if (r == 0) {
		(void)snprintf(id, sizeof(id), "%s-%.30s", key, slash + 1);
		r = archive_get_report(&archive, id, "json", ret, err);
	}
	archive_done(&archive);
	return r;
}

int reportinput_read(const char *store, const char *word, struct str *ret, struct err *err)
{
	int fd = open(word, O_RDONLY | O_CLOEXEC | O_NOCTTY), r;
	_cleanup_free_ char *text = NULL;
	struct stat info;
	size_t len = 0;

	if (fd < 0 && errno == ENOENT)
		return read_store(store, word, ret, err);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", word, strerror(errno));
	if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
		(void)close(fd);
		return read_folder(word, ret, err);
	}
	r = file_read_whole(word, fd, REPORT_BYTES_MAX, &text, &len, err);
	(void)close(fd);
	if (r == 0)
		str_append_len(ret, text, len);
	return r == 0 ? str_error(ret) : r;
}
