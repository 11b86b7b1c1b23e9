/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/catalog.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define REFRESH_NS (2 * NSEC_PER_SEC)
#define PATH_BYTES 4096

struct catalog {
	const char *const *folders;
	size_t folder_cnt, left_out;
	int64_t looked_ns;
	VEC(struct catalog_report *) reports;
};

struct catalog *catalog_new(const char *const *folders, size_t cnt)
{
	struct catalog *catalog = calloc(1, sizeof(*catalog));

	if (catalog == NULL)
		return NULL;
	catalog->folders = folders;
	catalog->folder_cnt = cnt;
	catalog->looked_ns = INT64_MIN / 2;
	return catalog;
}

static void free_report(struct catalog_report *report)
{
	char *const texts[] = { report->path,	 report->folder, report->html,	report->job,
				report->verdict, report->reason, report->title, report->advice,
				report->ranks,	 report->hosts,	 report->cause, report->made };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(texts[i]);
	free(report);
}

struct catalog *catalog_free(struct catalog *catalog)
{
	if (catalog != NULL) {
		vec_foreach(report, &catalog->reports)
			free_report(*report);
		vec_done(&catalog->reports);
	}
	free(catalog);
	return NULL;
}

/* --- one file --- */

static char *copy_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? strdup(text) : NULL;
}

static double number_of(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static void take_root(struct catalog_report *report, const json_t *root)
{
	const json_t *job = json_object_get(root, "job"),
		     *findings = json_object_get(root, "findings");
	const json_t *first = json_array_get(findings, 0);

	report->job = copy_text(job, "id");
	report->world_size = (int64_t)number_of(job, "world_size");
	report->iteration_ms = number_of(job, "iteration_ms");
	report->verdict = copy_text(root, "verdict");
	report->reason = copy_text(root, "reason");
	report->made = copy_text(json_object_get(root, "origin"), "made");
	report->finding_cnt = (int64_t)json_array_size(findings);
	report->title = copy_text(first, "title");
	report->advice = copy_text(first, "advice");
	report->ranks = copy_text(first, "ranks");
	report->hosts = copy_text(first, "hosts");
	report->cause = copy_text(first, "cause");
	report->gain_ms = number_of(first, "gain_ms_per_iteration");
	report->gain_pct = number_of(first, "gain_pct");
}

/* Parses the document. Returns false when it is not a report. */
static bool parse(struct catalog_report *report, const char *text, size_t len)
{
	json_error_t ignored;
	json_t *root = json_loadb(text, len, 0, &ignored);
	const char *schema = json_string_value(json_object_get(root, "schema"));
	bool ok = schema != NULL && strncmp(schema, "perftracker.report.", 19) == 0 &&
		  json_is_string(json_object_get(root, "verdict"));

	if (ok)
		take_root(report, root);
	json_decref(root);
	return ok;
}

/* Whether the file begins as a report does; other JSON files can be traces of gigabytes. */
static bool begins_like_report(int fd)
{
	char head[256];
	ssize_t len = pread(fd, head, sizeof(head) - 1, 0);

	if (len <= 0)
		return false;
	head[len] = '\0';
	return strstr(head, "\"perftracker.report.") != NULL;
}

static int64_t changed(const struct stat *info)
{
	return (int64_t)info->st_mtim.tv_sec * NSEC_PER_SEC + info->st_mtim.tv_nsec;
}

/* "x/report-3.json" has "x/report-3.html". */
static char *page_beside(const char *path)
{
	size_t stem = strlen(path) - strlen(".json");
	char page[PATH_BYTES];

	(void)snprintf(page, sizeof(page), "%.*s.html", (int)stem, path);
	return access(page, R_OK) == 0 ? strdup(page) : NULL;
}

static struct catalog_report *new_report(const char *path, const struct stat *info)
{
	struct catalog_report *report = calloc(1, sizeof(*report));
	const char *slash = strrchr(path, '/');

	if (report == NULL)
		return NULL;
	report->path = strdup(path);
	report->folder = slash != NULL ? strndup(path, (size_t)(slash - path)) : strdup(".");
	report->html = page_beside(path);
	report->changed_ns = changed(info);
	report->bytes = info->st_size;
	report->inode = info->st_ino;
	(void)snprintf(report->id, sizeof(report->id), "f%012llx",
		       (unsigned long long)(XXH3_64bits(path, strlen(path)) & 0xffffffffffff));
	if (report->path != NULL && report->folder != NULL)
		return report;
	free_report(report);
	return NULL;
}

static int add_file(struct catalog *catalog, const char *path, int fd, const struct stat *info)
{
	_cleanup_free_ char *text = NULL;
	struct catalog_report *report;
	size_t len = 0;

	if (!begins_like_report(fd))
		return 0;
	if (catalog->reports.cnt >= CATALOG_REPORTS_MAX ||
	    file_read_whole(path, fd, CATALOG_BYTES_MAX, &text, &len, NULL) < 0) {
		catalog->left_out++;
		return 0;
	}
	report = new_report(path, info);
	if (report == NULL)
		return -ENOMEM;
	report->content = XXH3_64bits(text, len);
	report->seen = true;
	if (!parse(report, text, len)) {
		catalog->left_out++;
		free_report(report);
		return 0;
	}
	if (vec_push(&catalog->reports, report) == 0)
		return 0;
	free_report(report);
	return -ENOMEM;
}

/* --- folders --- */

static struct catalog_report *find_path(const struct catalog *catalog, const char *path)
{
	vec_foreach(report, &catalog->reports) {
		if (strcmp((*report)->path, path) == 0)
			return *report;
	}
	return NULL;
}

static void drop_report(struct catalog *catalog, struct catalog_report *old)
{
	for (size_t i = 0; i < catalog->reports.cnt; i++) {
		if (catalog->reports.data[i] != old)
			continue;
		free_report(old);
		catalog->reports.data[i] = catalog->reports.data[--catalog->reports.cnt];
		return;
	}
}

static int look_at_file(struct catalog *catalog, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), ret = 0;
	struct catalog_report *known;
	struct stat info;
	if (fd < 0)
		return 0;
	if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
		known = find_path(catalog, path);
		if (known != NULL && known->changed_ns == changed(&info) &&
		    known->bytes == info.st_size && known->inode == info.st_ino) {
			known->seen = true;
			if (known->html == NULL)
				known->html = page_beside(path);
		} else {
			if (known != NULL)
				drop_report(catalog, known);
			ret = add_file(catalog, path, fd, &info);
		}
	}
	(void)close(fd);
	return ret;
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t len = strlen(name), end = strlen(suffix);

	return len > end && strcmp(name + len - end, suffix) == 0;
}

/* Links to folders are not followed: there may be circles. */
static int walk(struct catalog *catalog, const char *folder, int depth)
{
	DIR *dir = opendir(folder);
	int ret = 0;

	if (dir == NULL)
		return 0;
	for (struct dirent *entry; ret == 0 && (entry = readdir(dir)) != NULL;) {
		char path[PATH_BYTES];

		if (entry->d_name[0] == '.' || (size_t)snprintf(path, sizeof(path), "%s/%s", folder,
								entry->d_name) >= sizeof(path))
			continue;
		if (has_suffix(entry->d_name, ".json"))
			ret = look_at_file(catalog, path);
		else if (entry->d_type == DT_DIR && depth < CATALOG_DEPTH_MAX)
			ret = walk(catalog, path, depth + 1);
	}
	(void)closedir(dir);
	return ret;
}

static const char *name_of(const struct catalog_report *report)
{
	return report->path + strlen(report->folder);
}

/* By folder and content; of copies the longest name first: report-3.json before report.json. */
static int order_copies(const void *a, const void *b)
{
	const struct catalog_report *x = *(struct catalog_report *const *)a;
	const struct catalog_report *y = *(struct catalog_report *const *)b;
	int by_folder = strcmp(x->folder, y->folder);

	if (by_folder != 0)
		return by_folder;
	if (x->content != y->content)
		return x->content < y->content ? -1 : 1;
	if (strlen(name_of(x)) != strlen(name_of(y)))
		return strlen(name_of(x)) > strlen(name_of(y)) ? -1 : 1;
	return strcmp(x->path, y->path);
}

static int order_newest(const void *a, const void *b)
{
	const struct catalog_report *x = *(struct catalog_report *const *)a;
	const struct catalog_report *y = *(struct catalog_report *const *)b;

	if (x->copy != y->copy)
		return x->copy ? 1 : -1;
	if (x->changed_ns != y->changed_ns)
		return x->changed_ns > y->changed_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

static void sort(struct catalog *catalog)
{
	struct catalog_report **list = catalog->reports.data;
	size_t cnt = catalog->reports.cnt;

	if (cnt == 0)
		return;
	qsort(list, cnt, sizeof(struct catalog_report *), order_copies);
	for (size_t i = 0; i < cnt; i++)
		list[i]->copy = i > 0 && list[i]->content == list[i - 1]->content &&
				strcmp(list[i]->folder, list[i - 1]->folder) == 0;
	qsort(list, cnt, sizeof(struct catalog_report *), order_newest);
}

int catalog_refresh(struct catalog *catalog, int64_t now_ns)
{
	int ret = 0;

	if (now_ns - catalog->looked_ns < REFRESH_NS)
		return 0;
	catalog->looked_ns = now_ns;
	catalog->left_out = 0;
	vec_foreach(report, &catalog->reports)
		(*report)->seen = false;
	for (size_t i = 0; i < catalog->folder_cnt && ret == 0; i++)
		ret = walk(catalog, catalog->folders[i], 0);
	for (size_t i = catalog->reports.cnt; i-- > 0;) {
		if (!catalog->reports.data[i]->seen)
			drop_report(catalog, catalog->reports.data[i]);
	}
	sort(catalog);
	return ret;
}

const struct catalog_report *catalog_borrow(const struct catalog *catalog, size_t i)
{
	if (i >= catalog->reports.cnt || catalog->reports.data[i]->copy)
		return NULL;
	return catalog->reports.data[i];
}

const struct catalog_report *catalog_find(const struct catalog *catalog, const char *id)
{
	vec_foreach(report, &catalog->reports) {
		if (strcmp((*report)->id, id) == 0)
			return *report;
	}
	return NULL;
}

size_t catalog_left_out(const struct catalog *catalog)
{
	return catalog->left_out;
}
