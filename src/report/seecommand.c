/* SPDX-License-Identifier: Apache-2.0 */
#include "report/seecommand.h"

#include <ctype.h>
#include <string.h>

#define COMMAND "perftracker timeline -o timeline.json"
#define PATH_CELLS 400u

/* A path is copied into a shell: only one that means itself there. */
static bool is_plain(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)path[i]) && strchr("%+=:,./_-", path[i]) == NULL)
			return false;
	}
	return len > 0 && len <= PATH_CELLS && path[0] != '-';
}

static bool ends_with(const char *path, const char *end)
{
	size_t len = strlen(path), need = strlen(end);

	return len >= need && strcmp(path + len - need, end) == 0;
}

/* Whether `perftracker timeline` draws the file. */
static bool is_trace(const char *source)
{
	return source != NULL && is_plain(source) &&
	       (ends_with(source, ".json") || ends_with(source, ".json.gz") ||
		ends_with(source, ".flight"));
}

/* Length of the folder in a path, 0 for a bare name. */
static size_t folder_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		return 0;
	return slash == path ? 1 : (size_t)(slash - path);
}

/* Whether all traces are in one folder, which the command then draws two ranks of. */
static bool are_together(const struct report *report)
{
	const char *first = report->worker_cnt > 0 ? report->workers[0].source : NULL;

	for (size_t i = 0; i < report->worker_cnt; i++) {
		const char *source = report->workers[i].source;

		if (!is_trace(source) || folder_len(source) != folder_len(first) ||
		    memcmp(source, first, folder_len(first)) != 0)
			return false;
	}
	return report->worker_cnt > 0;
}

/* Which others wait for it, else which is not flagged; -1: there is none. */
static int find_peer(const struct report *report, const struct finding *finding)
{
	for (size_t i = 0; i < finding->victim_cnt; i++) {
		if (!finding_names_rank(finding, finding->victims[i]))
			return finding->victims[i];
	}
	for (size_t i = 0; i < report->worker_cnt; i++) {
		if (!finding_names_rank(finding, report->workers[i].rank))
			return report->workers[i].rank;
	}
	return -1;
}

/* A rank that only the order of the files gives would be another one in other company. */
static bool ranks_are_own(const struct report *report)
{
	return report->rank_source == NULL ||
	       strcmp(report->rank_source, "order of arguments") != 0;
}

void phrase_see_command(struct str *out, const struct report *report, const struct finding *finding)
{
	const char *dir = report->origin.run_dir, *source;
	size_t len;
	int peer;

	if (dir != NULL && is_plain(dir)) {
		str_printf(out, COMMAND " %s", dir);
		return;
	}
	if (!are_together(report) || finding->rank_cnt == 0)
		return;
	source = report->workers[0].source;
	if (report->worker_cnt == 1) {
		str_printf(out, COMMAND " %s", source);
		return;
	}
	if (!ranks_are_own(report))
		return;
	peer = find_peer(report, finding);
	len = folder_len(source);
	str_printf(out, COMMAND " --ranks %d", finding->ranks[0]);
	if (peer >= 0)
		str_printf(out, ",%d", peer);
	str_printf(out, " %.*s", len > 0 ? (int)len : 1, len > 0 ? source : ".");
}
