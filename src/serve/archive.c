/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/archive.h"

#include "base/clock.h"
#include "base/file.h"
#include "serve/jobwords.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define BATCH 500u

int archive_open_store(struct archive *archive, struct err *err)
{
	int ret;

	if (archive->store != NULL)
		return 0;
	if (archive->place[0] == '\0')
		return err_set(err, ENOENT, "no store is served: start the server with --store");
	ret = store_open_to_read(archive->place, &archive->store, err);
	if (ret == -ENODATA || ret == -ENOENT)
		return err_set(err, ENOENT,
			       "%s: no job is kept there yet: `perftracker run` keeps each job",
			       archive->place);
	return ret;
}

void archive_drop_store(struct archive *archive)
{
	archive->store = store_close(archive->store);
}

void archive_done(struct archive *archive)
{
	archive_drop_store(archive);
	archive->catalog = catalog_free(archive->catalog);
}

/* --- jobs --- */

bool archive_has_text(const char *text, const char *part)
{
	return text != NULL && strcasestr(text, part) != NULL;
}

static bool fits(const struct archive_filter *filter, const struct store_job *job)
{
	const char *const texts[] = { job->name,  job->key,	job->host,
				      job->owner, job->command, job->verdict };
	char state[32];

	jobwords_state(job, state);
	if (filter->state != NULL && strncasecmp(state, filter->state, strlen(filter->state)) != 0)
		return false;
	if (filter->text == NULL || archive_has_text(state, filter->text))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (archive_has_text(texts[i], filter->text))
			return true;
	}
	return false;
}

struct page {
	const struct archive_filter *filter;
	store_job_fn fn;
	void *arg;
	size_t cnt, seen; /* that fit; of this batch */
	struct store_job_place last, looked;
	bool more;
};

static void note_place(struct store_job_place *place, const struct store_job *job)
{
	place->started_ns = job->started_ns;
	(void)snprintf(place->key, sizeof(place->key), "%s", job->key);
}

static int take_job(void *arg, const struct store_job *job)
{
	struct page *page = arg;
	int ret;

	page->seen++;
	note_place(&page->looked, job);
	if (!fits(page->filter, job))
		return 0;
	if (page->cnt == page->filter->limit) {
		page->more = true;
		return -ECANCELED;
	}
	page->cnt++;
	note_place(&page->last, job);
	ret = page->fn(page->arg, job);
	return ret == -ECANCELED ? -EINVAL : ret;
}

int archive_list_jobs(struct archive *archive, const struct archive_filter *filter, store_job_fn fn,
		      void *arg, bool *ret_more, struct store_job_place *ret_last, struct err *err)
{
	struct page page = { .filter = filter, .fn = fn, .arg = arg, .looked = filter->after };
	int ret = archive_open_store(archive, err);

	if (ret < 0)
		return ret;
	do {
		struct store_job_place after = page.looked;

		page.seen = 0;
		ret = store_list_jobs_after(archive->store, &after, BATCH, take_job, &page, err);
	} while (ret == 0 && page.seen == BATCH);
	if (ret < 0 && ret != -ECANCELED) {
		archive_drop_store(archive);
		return ret;
	}
	*ret_more = page.more;
	*ret_last = page.last;
	return 0;
}

/* --- texts of places and reports --- */

void archive_print_place(const struct store_job_place *place, char ret[static 48])
{
	(void)snprintf(ret, 48, "%" PRId64 "-%s", place->started_ns, place->key);
}

/* Digits up to INT64_MAX; *at is moved behind them. */
static int parse_digits(const char **at, uint64_t *ret)
{
	const char *begin = *at;
	uint64_t value = 0;

	for (; **at >= '0' && **at <= '9'; (*at)++) {
		if (*at - begin >= 19)
			return -EINVAL;
		value = value * 10 + (unsigned)(**at - '0');
	}
	if (*at == begin || value > INT64_MAX)
		return -EINVAL;
	*ret = value;
	return 0;
}

static bool is_key(const char *text, size_t len)
{
	return len > 0 && len < STORE_KEY_BYTES && strspn(text, "0123456789abcdef") >= len;
}

int archive_parse_place(const char *text, struct store_job_place *ret)
{
	uint64_t started;

	if (parse_digits(&text, &started) < 0 || *text++ != '-' || !is_key(text, strlen(text)))
		return -EINVAL;
	ret->started_ns = (int64_t)started;
	(void)snprintf(ret->key, sizeof(ret->key), "%s", text);
	return 0;
}

void archive_print_id(const char *job, uint64_t number, char ret[static ARCHIVE_ID_BYTES])
{
	if (number == 0)
		(void)snprintf(ret, ARCHIVE_ID_BYTES, "%s-end", job);
	else
		(void)snprintf(ret, ARCHIVE_ID_BYTES, "%s-%" PRIu64, job, number);
}

int archive_parse_id(const char *id, char ret_job[static STORE_KEY_BYTES], uint64_t *ret_number)
{
	size_t len = strcspn(id, "-");
	const char *number = id + len + 1;
	uint64_t value = 0;

	if (!is_key(id, len) || id[len] == '\0')
		return -EINVAL;
	if (strcmp(number, "end") != 0 &&
	    (parse_digits(&number, &value) < 0 || *number != '\0' || value == 0))
		return -EINVAL;
	(void)snprintf(ret_job, STORE_KEY_BYTES, "%.*s", (int)len, id);
	*ret_number = value;
	return 0;
}

/* --- reports --- */

static int append_bytes(void *arg, int rank, const void *data, size_t len)
{
	struct str *out = arg;

	(void)rank;
	str_append_len(out, data, len);
	return str_error(out);
}

static int append_file(const char *path, struct str *ret, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), r;
	_cleanup_free_ char *text = NULL;
	size_t len = 0;

	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	r = file_read_whole(path, fd, CATALOG_BYTES_MAX, &text, &len, err);
	(void)close(fd);
	if (r == 0)
		str_append_len(ret, text, len);
	return r == 0 ? str_error(ret) : r;
}

static int get_of_store(struct archive *archive, const char *id, const char *form, struct str *ret,
			struct err *err)
{
	char job[STORE_KEY_BYTES];
	uint64_t number;
	int r;

	if (archive_parse_id(id, job, &number) < 0)
		return err_set(err, ENOENT,
			       "no report %.60s: /api/v1/reports lists those that there are", id);
	r = archive_open_store(archive, err);
	if (r == 0)
		r = store_get_document(archive->store, job, number, form, append_bytes, ret, err);
	if (r < 0 && r != -ENOENT)
		archive_drop_store(archive);
	return r;
}

int archive_get_report(struct archive *archive, const char *id, const char *form, struct str *ret,
		       struct err *err)
{
	const struct catalog_report *report;
	int r = catalog_refresh(archive->catalog, clock_mono_ns());

	if (r < 0)
		return err_set(err, -r, "out of memory");
	report = catalog_find(archive->catalog, id);
	if (report == NULL)
		return get_of_store(archive, id, form, ret, err);
	if (strcmp(form, "json") == 0)
		return append_file(report->path, ret, err);
	if (report->html == NULL)
		return err_set(err, ENOENT, "%s has no page beside it", report->path);
	return append_file(report->html, ret, err);
}
