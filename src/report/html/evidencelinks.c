/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/evidencelinks.h"

#include "report/html/chart.h"
#include "report/html/markup.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES_MAX 400u
#define PEER_WORDS_BEFORE 24 /* characters before a number in which "peers" counts */

/* A link's target on the page. */
enum place { PLACE_NONE, PLACE_RANK, PLACE_LATE, PLACE_WORKERS };

struct reading {
	struct str *out;
	const struct report *report;
	const char *line;
	int rank;     /* that the next number is of; -1: of all */
	bool waiting; /* the line is about who waited */
};

/* Whether the table has a row for it. */
static bool has_row(const struct report *report, int rank)
{
	for (size_t i = 0; i < MIN(report->worker_cnt, (size_t)EVIDENCELINKS_ROWS_MAX); i++) {
		if (report->workers[i].rank == rank)
			return true;
	}
	return false;
}

static enum place place_of(const struct reading *r, bool of_peers)
{
	if (r->report->worker_cnt == 0)
		return PLACE_NONE;
	if (of_peers || r->rank < 0)
		return PLACE_WORKERS;
	if (r->waiting && chart_has_late_row(r->report, r->rank))
		return PLACE_LATE;
	return has_row(r->report, r->rank) ? PLACE_RANK : PLACE_WORKERS;
}

static void put_part(struct str *out, const char *text, size_t len)
{
	struct str part = { 0 };

	str_append_len(&part, text, len);
	markup_text(out, markup_borrow(out, &part));
	str_done(&part);
}

static void put_link(const struct reading *r, enum place place, const char *text, size_t len)
{
	switch (place) {
	case PLACE_NONE:
		put_part(r->out, text, len);
		return;
	case PLACE_RANK:
		str_printf(r->out, "<a href=\"#rank-%d\">", r->rank);
		break;
	case PLACE_LATE:
		str_printf(r->out, "<a href=\"#late-%d\">", r->rank);
		break;
	case PLACE_WORKERS:
		str_append(r->out, "<a href=\"#workers\">");
		break;
	}
	put_part(r->out, text, len);
	str_append(r->out, "</a>");
}

/* --- numbers --- */

/* A number by itself, not a part of a name, a file's line or a version. */
static bool begins_number(const char *line, const char *at)
{
	if (!isdigit((unsigned char)*at))
		return false;
	if (at == line)
		return true;
	if (at[-1] == '(')
		return at - 1 == line || at[-2] == ' ';
	return at[-1] == ' ';
}

static size_t skip_digits(const char *at)
{
	size_t len = strspn(at, "0123456789");

	if (at[len] == '.' && isdigit((unsigned char)at[len + 1]))
		len += 1 + strspn(at + len + 1, "0123456789");
	return len;
}

static bool ends_word(char c)
{
	return c == '\0' || strchr(" ,;:).", c) != NULL;
}

/* The length of "144.0 ms", "25 %", "15 of 16" at a number; 0: a number without a unit. */
static size_t measure_len(const char *at)
{
	static const char *const units[] = { "ms",   "s",    "us",  "ns",  "%",	  "W",
					     "GB/s", "MB/s", "GHz", "MHz", "GiB", "MiB" };
	size_t len = skip_digits(at);

	if (strncmp(at + len, " of ", 4) == 0 && isdigit((unsigned char)at[len + 4]))
		return len + 4 + skip_digits(at + len + 4);
	if (at[len] != ' ')
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		size_t unit = strlen(units[i]);

		if (strncmp(at + len + 1, units[i], unit) == 0 && ends_word(at[len + 1 + unit]))
			return len + 1 + unit;
	}
	return 0;
}

/* "rank 2", "ranks 0-1,3": the length, and its first rank; 0: something else is here. */
static size_t ranks_len(const char *line, const char *at, int *ret_rank)
{
	size_t word = strncmp(at, "ranks ", 6) == 0 ? 6 : strncmp(at, "rank ", 5) == 0 ? 5 : 0;
	size_t len;

	if (word == 0 || (at != line && isalnum((unsigned char)at[-1])) ||
	    !isdigit((unsigned char)at[word]))
		return 0;
	len = strspn(at + word, "0123456789,-");
	while (len > 0 && !isdigit((unsigned char)at[word + len - 1]))
		len--;
	if (len > 9 && strcspn(at + word, ",-") > 9)
		return 0;
	*ret_rank = atoi(at + word);
	return word + len;
}

static bool is_of_peers(const char *line, const char *at)
{
	size_t room = MIN((size_t)(at - line), (size_t)PEER_WORDS_BEFORE);
	const char *from = at - room;
	const char *found = memmem(from, room, "peer", 4);

	/* A number in between is of them, this one is of the rank again: "peers 1.0 ms, it 3.0 ms". */
	for (; found != NULL && found < at; found++) {
		if (*found == ',' || *found == ')' || *found == ';')
			return false;
	}
	return memmem(from, room, "peer", 4) != NULL;
}

static bool says(const char *line, const char *word)
{
	return strstr(line, word) != NULL;
}

/* Appends what is at this place; returns its length. */
static size_t put_next(struct reading *r, const char *at, int own)
{
	int rank = -1;
	size_t len = ranks_len(r->line, at, &rank);

	if (len > 0) {
		struct reading named = *r;

		named.rank = rank;
		named.waiting = false;
		put_link(&named, place_of(&named, false), at, len);
		/* Who had to wait is no subject: what follows is how long the finding's rank made them. */
		r->rank = r->waiting ? r->rank : rank;
		return len;
	}
	if (*at == ';')
		r->rank = own;
	len = begins_number(r->line, at) ? measure_len(at) : 0;
	if (len > 0) {
		put_link(r, place_of(r, is_of_peers(r->line, at)), at, len);
		return len;
	}
	for (len = 1; at[len] != '\0' && !isdigit((unsigned char)at[len]) && at[len] != ';' &&
		      strncmp(at + len, "rank", 4) != 0;)
		len++;
	put_part(r->out, at, len);
	return len;
}

void evidencelinks_line(struct str *out, const struct report *report, const struct finding *finding,
			const char *line)
{
	int own = finding->all_workers || finding->rank_cnt == 0 ? -1 : finding->ranks[0];
	struct reading r = { .out = out,
			     .report = report,
			     .line = line,
			     .rank = own,
			     .waiting = says(line, "arrived last") || says(line, "wait") };

	if (strlen(line) > LINE_BYTES_MAX) {
		markup_text_short(out, line, LINE_BYTES_MAX);
		return;
	}
	for (const char *at = line; *at != '\0';)
		at += put_next(&r, at, own);
}

/* --- places of a rank --- */

void evidencelinks_places(struct str *out, const struct report *report,
			  const struct finding *finding)
{
	int rank = finding->rank_cnt > 0 ? finding->ranks[0] : -1;
	bool row = has_row(report, rank), late = chart_has_late_row(report, rank);
	bool lane = chart_has_lane(report, rank);

	if (finding->all_workers || rank < 0 || !(row || late || lane))
		return;
	str_append(out, "<dt>On this page</dt><dd class=\"places\">");
	if (row)
		str_printf(out, "<a href=\"#rank-%d\">numbers of rank %d</a> ", rank, rank);
	if (late)
		str_printf(out, "<a href=\"#late-%d\">when others waited for it</a> ", rank);
	if (lane)
		str_printf(out, "<a href=\"#lane-%d\">one iteration of it</a> ", rank);
	str_append(out, "</dd>\n");
}
