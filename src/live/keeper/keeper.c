/* SPDX-License-Identifier: Apache-2.0 */
#include "live/keeper/keeper.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "live/keeper/keeper_parts.h"
#include "live/keeper/machinekind.h"
#include "model/rankset.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CLOSE_S 10

/* --- the queue --- */

static struct keeper_item *new_item(enum keeper_kind kind)
{
	struct keeper_item *item = calloc(1, sizeof(*item));

	if (item == NULL)
		return NULL;
	item->kind = kind;
	arena_init(&item->arena);
	return item;
}

struct keeper_item *keeper_item_free(struct keeper_item *item)
{
	if (item != NULL)
		arena_done(&item->arena);
	free(item);
	return NULL;
}

/* Takes the item; urgent: the thread writes it now. */
static void push(struct keeper *keeper, struct keeper_item *item, bool urgent)
{
	bool taken;

	(void)pthread_mutex_lock(&keeper->lock);
	taken = item != NULL && keeper->queued_cnt < KEEPER_QUEUE_MAX;
	if (taken) {
		*keeper->tail = item;
		keeper->tail = &item->next;
		keeper->queued_cnt++;
	} else {
		keeper->lost_cnt++;
	}
	keeper->urgent |= urgent;
	if (urgent)
		(void)pthread_cond_signal(&keeper->wake);
	(void)pthread_mutex_unlock(&keeper->lock);
	if (!taken)
		(void)keeper_item_free(item);
}

/* A text of the report; what there is no memory for is empty. */
static const char *copy(struct keeper_item *item, const char *text)
{
	const char *ret = arena_strdup(&item->arena, text != NULL ? text : "");

	return ret != NULL ? ret : "";
}

/* --- what the hub says --- */

void keeper_state(struct keeper *keeper, const struct keeper_state *state)
{
	if (keeper == NULL)
		return;
	(void)pthread_mutex_lock(&keeper->lock);
	keeper->state = *state;
	(void)snprintf(keeper->state_text, sizeof(keeper->state_text), "%s",
		       state->state != NULL ? state->state : "");
	(void)snprintf(keeper->verdict, sizeof(keeper->verdict), "%s",
		       state->verdict != NULL ? state->verdict : "");
	(void)snprintf(keeper->reason, sizeof(keeper->reason), "%s",
		       state->reason != NULL ? state->reason : "");
	/* Its row is there at once, and earlier runs are read while it is young. */
	if (keeper->remembers && !keeper->has_state) {
		keeper->urgent = true;
		(void)pthread_cond_signal(&keeper->wake);
	}
	keeper->has_state = true;
	keeper->seen_ns = clock_wall_ns();
	(void)pthread_mutex_unlock(&keeper->lock);
	keeper_state(keeper->also, state);
}

static void push_second(struct keeper *keeper)
{
	struct keeper_item *item = new_item(KEEPER_PACE);

	if (item != NULL)
		item->pace = keeper->second;
	keeper_memory_add_pace(keeper);
	push(keeper, item, false);
	keeper->second = (struct store_pace){ 0 };
}

void keeper_pace(struct keeper *keeper, uint64_t step, int64_t iteration_ns)
{
	int64_t at_s = clock_wall_ns() / NSEC_PER_SEC;

	if (keeper == NULL || iteration_ns <= 0 || step == keeper->last_step)
		return;
	keeper->last_step = step;
	if (keeper->second.cnt > 0 && keeper->second.at_s != at_s)
		push_second(keeper);
	if (keeper->second.cnt == 0)
		keeper->second.min_ns = INT64_MAX;
	keeper->second.at_s = at_s;
	keeper->second.step = step;
	keeper->second.cnt++;
	keeper->second.sum_ns += iteration_ns;
	keeper->second.min_ns = MIN(keeper->second.min_ns, iteration_ns);
	keeper->second.max_ns = MAX(keeper->second.max_ns, iteration_ns);
	keeper_pace(keeper->also, step, iteration_ns);
}

static void copy_finding(struct keeper_item *item, const struct finding *finding,
			 struct store_finding *ret)
{
	struct str ranks = { 0 }, hosts = { 0 };

	rankset_format(&ranks, finding->ranks, finding->rank_cnt);
	for (size_t i = 0; i < finding->host_cnt; i++)
		str_printf(&hosts, "%s%s", i > 0 ? "," : "", finding->hosts[i]);
	*ret = (struct store_finding){
		.id = copy(item, finding->id),
		.cause = copy(item, finding->cause),
		.title = copy(item, finding->title),
		.function = copy(item, finding->name),
		.function_key = copy(item, finding->key),
		.ranks = copy(item, finding->all_workers ? "all" : str_borrow(&ranks)),
		.confidence = confidence_name(finding->confidence),
		.gain_ms = finding->gain_ms_per_iteration,
		.gain_pct = finding->gain_pct,
		.hosts = copy(item, str_borrow(&hosts)),
	};
	str_done(&ranks);
	str_done(&hosts);
}

static void copy_report(struct keeper_item *item, const struct report *report, uint64_t number)
{
	struct store_finding *findings =
		arena_calloc(&item->arena, report->finding_cnt + 1, sizeof(*findings));

	item->report = (struct store_report){
		.number = number,
		.made_ns = clock_wall_ns(),
		.why = report->trigger.present ? copy(item, report->trigger.kind) : "end",
		.verdict = verdict_name(report->verdict),
		.reason = copy(item, report->reason),
		.first_step = report->trigger.present ? (uint64_t)report->trigger.step : 0,
		.steps = (uint64_t)report->iterations,
		.iteration_ms = report->iteration_ms,
		.workers = (uint32_t)report->workers_analyzed,
		.missing = (uint32_t)report->missing_cnt,
	};
	for (size_t i = 0; findings != NULL && i < report->finding_cnt; i++)
		copy_finding(item, &report->findings[i], &findings[i]);
	item->findings = findings;
	item->finding_cnt = findings != NULL ? report->finding_cnt : 0;
}

void keeper_report(struct keeper *keeper, const struct report *report, uint64_t number)
{
	struct keeper_item *item;

	if (keeper == NULL)
		return;
	item = new_item(KEEPER_REPORT);
	if (item != NULL)
		copy_report(item, report, number);
	push(keeper, item, true);
	keeper_report(keeper->also, report, number);
}

void keeper_fingerprint(struct keeper *keeper, uint64_t number, int rank, const char *path)
{
	struct keeper_item *item;

	if (keeper == NULL)
		return;
	keeper_fingerprint(keeper->also, number, rank, path);
	if (keeper->brief)
		return;
	item = new_item(KEEPER_FINGERPRINT);
	if (item != NULL) {
		item->report.number = number;
		item->rank = rank;
		item->path = copy(item, path);
	}
	push(keeper, item, false);
}

void keeper_event(struct keeper *keeper, const char *kind, const char *fmt, ...)
{
	struct keeper_item *item;
	char text[512];
	va_list args;

	if (keeper == NULL)
		return;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	runpace_take_event(&keeper->pace, kind, text, clock_wall_ns() / NSEC_PER_SEC);
	item = new_item(KEEPER_EVENT);
	if (item != NULL)
		item->event = (struct store_event){ .kind = copy(item, kind),
						    .text = copy(item, text),
						    .place = ++keeper->event_cnt,
						    .at_ns = clock_wall_ns() };
	push(keeper, item, false);
	keeper_event(keeper->also, kind, "%s", text);
}

/* --- windows --- */

static void set_open(struct keeper *keeper, bool open)
{
	if (keeper == NULL)
		return;
	(void)pthread_mutex_lock(&keeper->lock);
	keeper->open = open;
	(void)pthread_cond_signal(&keeper->wake);
	(void)pthread_mutex_unlock(&keeper->lock);
}

void keeper_begin(struct keeper *keeper)
{
	set_open(keeper, true);
}

void keeper_end(struct keeper *keeper)
{
	set_open(keeper, false);
}

static int by_number(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void keeper_window(struct keeper *keeper, uint64_t epoch, uint64_t number, int *ranks, size_t cnt)
{
	struct str text = { 0 };
	struct keeper_item *item;

	if (keeper == NULL)
		return;
	str_printf(&text, "%" PRIu64 "/%" PRIu64 " ", epoch, number);
	if (cnt > 0)
		qsort(ranks, cnt, sizeof(*ranks), by_number);
	rankset_format(&text, ranks, cnt);
	item = str_error(&text) < 0 ? NULL : new_item(KEEPER_WINDOW);
	if (item != NULL)
		item->event = (struct store_event){ .kind = KEEPER_WINDOW_EVENT,
						    .text = copy(item, str_borrow(&text)),
						    .place = ++keeper->event_cnt,
						    .at_ns = clock_wall_ns() };
	str_done(&text);
	push(keeper, item, true);
}

bool keeper_take_committed(struct keeper *keeper, uint64_t *ret_epoch, uint64_t *ret_number)
{
	bool ret = false;

	if (keeper == NULL)
		return false;
	(void)pthread_mutex_lock(&keeper->lock);
	if (keeper->committed.cnt > 0) {
		const struct keeper_window *last = &keeper->committed.data[--keeper->committed.cnt];

		*ret_epoch = last->epoch;
		*ret_number = last->number;
		ret = true;
	}
	(void)pthread_mutex_unlock(&keeper->lock);
	return ret;
}

/* Of "0-3,7". */
static bool has_rank(const char *ranks, int rank)
{
	while (*ranks != '\0') {
		char *end;
		long low = strtol(ranks, &end, 10), high = low;

		if (*end == '-')
			high = strtol(end + 1, &end, 10);
		if (rank >= low && rank <= high)
			return true;
		if (*end != ',')
			return false;
		ranks = end + 1;
	}
	return false;
}

enum keeper_known keeper_find_window(struct keeper *keeper, uint64_t epoch, uint64_t number,
				     int rank)
{
	enum keeper_known ret = KEEPER_UNKNOWN;

	if (keeper == NULL)
		return KEEPER_UNKNOWN;
	(void)pthread_mutex_lock(&keeper->lock);
	vec_foreach(window, &keeper->known) {
		if (window->epoch != epoch || window->number != number)
			continue;
		if (has_rank(window->ranks, rank))
			ret = KEEPER_KNOWN;
		else if (ret == KEEPER_UNKNOWN)
			ret = KEEPER_WITHOUT;
	}
	if (!keeper->known_loaded) {
		ret = KEEPER_ASK_AGAIN;
		keeper->urgent |= !keeper->known_wanted;
		keeper->known_wanted = true;
		(void)pthread_cond_signal(&keeper->wake);
	}
	(void)pthread_mutex_unlock(&keeper->lock);
	return ret;
}

/* --- begin and end --- */

static void name_owner(struct keeper *keeper)
{
	char buffer[1024];
	struct passwd entry, *found = NULL;

	if (getpwuid_r(getuid(), &entry, buffer, sizeof(buffer), &found) == 0 && found != NULL)
		(void)snprintf(keeper->owner, sizeof(keeper->owner), "%s", entry.pw_name);
	else
		(void)snprintf(keeper->owner, sizeof(keeper->owner), "%u", getuid());
	(void)gethostname(keeper->host, sizeof(keeper->host) - 1);
}

static void free_keeper(struct keeper *keeper)
{
	while (keeper->head != NULL) {
		struct keeper_item *next = keeper->head->next;

		(void)keeper_item_free(keeper->head);
		keeper->head = next;
	}
	vec_foreach(window, &keeper->known)
		free(window->ranks);
	vec_done(&keeper->known);
	runpace_done(&keeper->pace);
	keeper_memory_done(&keeper->memory);
	vec_done(&keeper->committed);
	(void)pthread_cond_destroy(&keeper->wake);
	(void)pthread_mutex_destroy(&keeper->lock);
	arena_done(&keeper->arena);
	free(keeper);
}

static int set_up(struct keeper *keeper, const struct keeper_setup *setup)
{
	pthread_condattr_t attr;

	arena_init(&keeper->arena);
	(void)pthread_mutex_init(&keeper->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&keeper->wake, &attr);
	(void)pthread_condattr_destroy(&attr);
	keeper->tail = &keeper->head;
	keeper->started_ns = clock_wall_ns();
	keeper->where = arena_strdup(&keeper->arena, setup->where);
	keeper->name = arena_strdup(&keeper->arena, setup->name);
	keeper->folder = arena_strdup(&keeper->arena, setup->folder);
	keeper->command =
		setup->command != NULL ? arena_strdup(&keeper->arena, setup->command) : NULL;
	name_owner(keeper);
	if (setup->remote)
		(void)snprintf(keeper->machine, sizeof(keeper->machine), EARLIER_MACHINE_UNKNOWN);
	else
		machinekind_describe("", keeper->machine, sizeof(keeper->machine));
	if (keeper->where == NULL || keeper->name == NULL || keeper->folder == NULL)
		return -ENOMEM;
	keeper->brief = setup->brief;
	if (setup->twin == NULL)
		return store_draw_key(keeper->key);
	memcpy(keeper->key, setup->twin->key, sizeof(keeper->key));
	keeper->started_ns = setup->twin->started_ns;
	return 0;
}

int keeper_open(const struct keeper_setup *setup, struct keeper **ret, struct err *err)
{
	struct keeper *keeper = calloc(1, sizeof(*keeper));
	int r;

	if (keeper == NULL)
		return err_set(err, ENOMEM, "out of memory");
	r = set_up(keeper, setup);
	if (r == 0)
		r = -pthread_create(&keeper->thread, NULL, keeper_main, keeper);
	if (r < 0) {
		free_keeper(keeper);
		return err_set(err, -r, "%s", strerror(-r));
	}
	*ret = keeper;
	return 0;
}

void keeper_also(struct keeper *keeper, struct keeper *other)
{
	keeper->also = other;
}

const char *keeper_borrow_key(const struct keeper *keeper)
{
	return keeper != NULL ? keeper->key : "";
}

struct keeper *keeper_close(struct keeper *keeper)
{
	struct timespec until;

	if (keeper == NULL)
		return NULL;
	if (keeper->second.cnt > 0)
		push_second(keeper);
	(void)pthread_mutex_lock(&keeper->lock);
	keeper->closing = true;
	(void)pthread_cond_signal(&keeper->wake);
	(void)pthread_mutex_unlock(&keeper->lock);
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += CLOSE_S;
	if (pthread_timedjoin_np(keeper->thread, NULL, &until) != 0) {
		log_line(LOG_WARNING,
			 "event=store-late seconds=%d store=\"%s\" effect=\"the end "
			 "of this job is not in the store\"",
			 CLOSE_S, keeper->where);
		return NULL; /* the thread still has it; the process ends */
	}
	free_keeper(keeper);
	return NULL;
}
