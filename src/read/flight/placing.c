/* SPDX-License-Identifier: Apache-2.0 */
#include "read/flight/placing.h"

#include "base/str.h"
#include "base/text/pythoncode.h"
#include "model/place/place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CALL_CNT 4096u	/* numbers of system calls in a record */
#define DEPTH_MAX 256u	/* of a path */
#define PATH_MAX_CNT 4u /* functions of a path that are shown */
#define PATH_ENDS 2u	/* of them at its end, in a longer one: then one at its beginning */

int placing_init(struct placing *p, const struct flightlog *log)
{
	int ret;

	*p = (struct placing){ .log = log, .node_cnt = log->nodes.cnt };
	p->users = calloc(p->node_cnt + 1, sizeof(*p->users));
	p->cnt = calloc(p->node_cnt + 1, sizeof(*p->cnt));
	p->heir = calloc(p->node_cnt + 1, sizeof(*p->heir));
	ret = strtab_init(&p->strings);
	if (ret == 0)
		ret = flight_names_init(&p->names, log, &p->strings);
	return p->users == NULL || p->cnt == NULL || p->heir == NULL ? -ENOMEM : ret;
}

void placing_done(struct placing *p)
{
	flight_names_done(&p->names);
	strtab_done(&p->strings);
	free(p->users);
	free(p->cnt);
	free(p->heir);
	vec_done(&p->samples);
}

const char *placing_text(const struct placing *p, uint32_t node)
{
	uint32_t frame = p->log->nodes.data[node].frame;

	return strtab_text(&p->strings, p->names.frames[frame].text);
}

/* Parents have smaller numbers than their children. */
static void count_samples(struct placing *p)
{
	vec_foreach(sample, &p->samples)
		p->cnt[sample->node]++;
	for (size_t i = p->node_cnt; i-- > 1;)
		p->cnt[p->log->nodes.data[i].parent] += p->cnt[i];
	for (uint32_t i = 1; i < p->node_cnt; i++) {
		uint32_t *heir = &p->heir[p->log->nodes.data[i].parent];

		if (p->cnt[i] > p->cnt[*heir] || (*heir == 0 && p->cnt[i] > 0))
			*heir = i;
	}
}

/*
 * The node of the place: down to the user's first function always by the larger part, from there on
 * while at least half of all samples are below.
 */
static uint32_t find_place(const struct placing *p)
{
	uint32_t node = 0;

	while (p->heir[node] != 0 && (!p->users[node] || 2 * p->cnt[p->heir[node]] >= p->cnt[0]))
		node = p->heir[node];
	return node;
}

/* Its callers up to the user's first function, the outermost first; itself where there is none. */
static size_t find_path(const struct placing *p, uint32_t place, uint32_t *path, size_t cap)
{
	uint32_t first = place;
	size_t cnt = 0, at;

	for (uint32_t i = place; i != 0; i = p->log->nodes.data[i].parent) {
		if (p->users[i])
			first = i;
	}
	for (uint32_t i = place; i != p->log->nodes.data[first].parent && cnt < cap;
	     i = p->log->nodes.data[i].parent)
		cnt++;
	at = cnt;
	for (uint32_t i = place; at > 0; i = p->log->nodes.data[i].parent)
		path[--at] = i;
	return cnt;
}

/* The system call in which at least half of the place's samples were. STRTAB_NONE: none. */
static int find_call(struct placing *p, uint32_t place, uint32_t *ret)
{
	_cleanup_free_ uint32_t *calls = calloc(CALL_CNT, sizeof(*calls));
	uint32_t best = 0;

	*ret = STRTAB_NONE;
	if (calls == NULL)
		return -ENOMEM;
	vec_foreach(sample, &p->samples) {
		if (sample->node == place && (sample->detail & FLIGHT_SAMPLE_SYSCALL) != 0)
			calls[sample->detail >> 4]++;
	}
	for (uint32_t i = 0; i < CALL_CNT; i++)
		best = calls[i] > calls[best] ? i : best;
	if (calls[best] == 0 || 2 * calls[best] < p->cnt[place])
		return 0;
	*ret = flight_names_syscall(&p->names, best);
	return *ret != STRTAB_NONE ? 0 : -ENOMEM;
}

/* A long path keeps its ends, and the user's innermost function, the one to look at. */
static void append_path(const struct placing *p, const uint32_t *path, size_t cnt, struct str *to)
{
	size_t users = 0;
	bool gap = false;

	for (size_t i = 0; i < cnt; i++)
		users = pythoncode_is_users(placing_text(p, path[i])) ? i : users;
	for (size_t i = 0; i < cnt; i++) {
		bool shown = cnt <= PATH_MAX_CNT || i == 0 || i == users || i + PATH_ENDS >= cnt;

		if (!shown && !gap)
			str_append(to, PLACE_BELOW "...");
		gap = !shown;
		if (shown)
			str_printf(to, "%s%s", i > 0 ? PLACE_BELOW : "", placing_text(p, path[i]));
	}
}

/* Cut at a character where it is too long. */
static void copy_place(char ret[static FLIGHT_PLACE_MAX], const struct str *text)
{
	size_t len = MIN(text->len, (size_t)FLIGHT_PLACE_MAX - 1);

	while (len < text->len && len > 0 && ((unsigned char)text->data[len] & 0xc0) == 0x80)
		len--;
	memcpy(ret, str_borrow(text), len);
	ret[len] = '\0';
}

static int describe(struct placing *p, uint32_t place, struct str *text)
{
	uint32_t path[DEPTH_MAX], call;
	size_t cnt = find_path(p, place, path, ARRAY_SIZE(path));
	int error = find_call(p, place, &call);

	append_path(p, path, cnt, text);
	if (error == 0 && call != STRTAB_NONE)
		str_printf(text, PLACE_BELOW "%s", strtab_text(&p->strings, call));
	return error < 0 ? error : str_error(text);
}

int placing_find(struct placing *p, struct flight_place *ret)
{
	struct str text = { 0 };
	uint32_t place;
	int error;

	if (p->samples.cnt == 0)
		return 0;
	count_samples(p);
	place = find_place(p);
	error = describe(p, place, &text);
	if (error == 0) {
		ret->frac = (double)p->cnt[place] / p->cnt[0];
		ret->sample_cnt = p->cnt[0];
		copy_place(ret->place, &text);
	}
	str_done(&text);
	return error;
}
