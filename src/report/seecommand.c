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

static bool is_flagged(const struct finding *finding, int rank)
{
	for (size_t i = 0; i < finding->rank_cnt; i++) {
		if (finding->ranks[i] == rank)
			return true;
	}
	return false;
}

/* The trace of the first worker that is flagged, or is not; "": none can be drawn. */
static const char *find_source(const struct report *report, const struct finding *finding,
			       bool flagged)
{
	for (size_t i = 0; i < report->worker_cnt; i++) {
		const struct report_worker *worker = &report->workers[i];

		if (is_trace(worker->source) && is_flagged(finding, worker->rank) == flagged)
			return worker->source;
	}
	return "";
}

void phrase_see_command(struct str *out, const struct report *report, const struct finding *finding)
{
	const char *dir = report->origin.run_dir, *culprit, *peer;

	if (dir != NULL && is_plain(dir)) {
		str_printf(out, COMMAND " %s", dir);
		return;
	}
	culprit = find_source(report, finding, true);
	peer = find_source(report, finding, false);
	if (culprit[0] == '\0')
		return;
	str_printf(out, COMMAND " %s%s%s", culprit, peer[0] != '\0' ? " " : "", peer);
}
