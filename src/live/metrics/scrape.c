/* SPDX-License-Identifier: Apache-2.0 */
#include "live/metrics/scrape.h"

#include "base/file.h"
#include "live/metrics/http.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT_CNT 2u

static const char *const format_names[FORMAT_CNT] = { "prometheus", "openmetrics" };

/* The latest page of a format; only the server's thread uses it. */
struct kept_page {
	struct str text;
	uint64_t generation;
};

struct metrics_page {
	struct metrics *metrics;
	struct http *http;
	char file[4200];
	ino_t file_ino; /* of the file written; another job may have replaced it */
	struct kept_page kept[FORMAT_CNT];
	_Atomic uint64_t scrape_cnt[FORMAT_CNT]; /* written by the server's thread */
};

static int render(void *arg, const char *accept, struct str *ret, const char **ret_type)
{
	struct metrics_page *page = arg;
	enum exposition_format format = exposition_choose(accept);
	struct kept_page *kept = &page->kept[format];
	uint64_t generation = metrics_generation(page->metrics);

	atomic_fetch_add_explicit(&page->scrape_cnt[format], 1, memory_order_relaxed);
	if (kept->text.len == 0 || kept->generation != generation) {
		str_done(&kept->text);
		if (metrics_render(page->metrics, format, &kept->text) < 0)
			return -ENOMEM;
		kept->generation = generation;
	}
	*ret_type = exposition_content_type(format);
	str_append_len(ret, kept->text.data, kept->text.len);
	return str_error(ret);
}

/* Writes OUT/metrics.json. */
static int write_file(struct metrics_page *page, const struct run_options *options, struct err *err)
{
	struct str text = { 0 };
	struct stat st;
	int ret;

	(void)snprintf(page->file, sizeof(page->file), "%s/" METRICS_FILE, options->out_dir);
	str_printf(&text,
		   "[{\"targets\": [\"%s\"], \"labels\": {\"__metrics_path__\": \"/metrics\"}}]\n",
		   http_borrow_address(page->http));
	ret = str_error(&text);
	if (ret == 0)
		ret = file_replace(page->file, str_borrow(&text), text.len, 0644);
	str_done(&text);
	if (ret < 0)
		return err_set(err, -ret, "%s: %s", page->file, strerror(-ret));
	if (stat(page->file, &st) == 0)
		page->file_ino = st.st_ino;
	return 0;
}

int metrics_page_open(struct metrics_host *host, const struct run_options *options,
		      struct metrics_page **ret, struct err *err)
{
	struct metrics_page *page = calloc(1, sizeof(*page));
	struct http_source source = { .render = render, .arg = page, .path = "/metrics" };
	int r;

	if (page == NULL)
		return err_set(err, ENOMEM, "out of memory");
	page->metrics = metrics_host_borrow(host);
	r = http_open(&options->metrics, &source, &page->http, err);
	if (r == 0)
		r = write_file(page, options, err);
	if (r < 0) {
		(void)metrics_page_close(page);
		return r;
	}
	*ret = page;
	return 0;
}

struct metrics_page *metrics_page_close(struct metrics_page *page)
{
	struct stat st;

	if (page == NULL)
		return NULL;
	page->http = http_close(page->http);
	if (page->file[0] != '\0' && stat(page->file, &st) == 0 && st.st_ino == page->file_ino)
		(void)unlink(page->file);
	for (size_t i = 0; i < FORMAT_CNT; i++)
		str_done(&page->kept[i].text);
	free(page);
	return NULL;
}

void metrics_page_tick(struct metrics_page *page, int64_t now_ns)
{
	if (page == NULL)
		return;
	http_tick(page->http, now_ns);
	for (size_t i = 0; i < FORMAT_CNT; i++)
		metrics_raise(page->metrics,
			      metrics_series(page->metrics, METRIC_SCRAPES,
					     METRIC_VALUES(format_names[i])),
			      atomic_load_explicit(&page->scrape_cnt[i], memory_order_relaxed));
}

const char *metrics_page_borrow_address(const struct metrics_page *page)
{
	return http_borrow_address(page->http);
}
