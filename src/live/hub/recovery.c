/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results that hosts keep: the hub says of which windows they are in the store (struct
 * wire_committed), and reports windows that an earlier hub ordered and did not commit.
 */
#include "base/clock.h"
#include "base/log.h"
#include "live/hub/hub_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NOT_COME "its result did not come after the hub was started again"

/* The end of a job waits so long for the store. */
#define MARK_NS (10 * NSEC_PER_SEC)

/* --- committed --- */

static void publish_committed(struct hub *hub, uint64_t epoch, uint64_t order_id)
{
	const struct wire_committed committed = { .epoch = epoch, .order_id = order_id };

	(void)bus_pub(hub->bus, SUBJECT_COMMITTED, &committed, sizeof(committed));
}

void hub_mark_window(struct hub *hub, uint64_t epoch, uint64_t order_id, int *ranks, size_t cnt)
{
	if (hub->options->fleet == NULL && hub->options->member.members == 1)
		return; /* no other host keeps results */
	if (hub->keeper == NULL) {
		publish_committed(hub, epoch, order_id); /* the report's files are all there is */
		return;
	}
	keeper_window(hub->keeper, epoch, order_id, ranks, cnt);
	hub->marks++;
	hub->mark_ns = clock_mono_ns();
}

void hub_mark_profile(struct hub *hub, uint64_t epoch, uint64_t order_id)
{
	_cleanup_free_ int *ranks = calloc(hub->profile.answers.cnt + 1, sizeof(*ranks));
	size_t cnt = 0;

	if (ranks == NULL)
		return; /* the hosts keep its results for another hub */
	vec_foreach(answer, &hub->profile.answers) {
		if (answer->state == ANSWER_READY)
			ranks[cnt++] = answer->rank;
	}
	hub_mark_window(hub, epoch, order_id, ranks, cnt);
}

bool hub_marks_wait(const struct hub *hub, int64_t now_ns)
{
	return hub->marks > 0 && now_ns - hub->mark_ns < MARK_NS;
}

static void publish_marks(struct hub *hub)
{
	uint64_t epoch, order_id;

	while (keeper_take_committed(hub->keeper, &epoch, &order_id)) {
		hub->marks -= hub->marks > 0;
		publish_committed(hub, epoch, order_id);
	}
}

/* --- results --- */

/* A window that was reported: the store has it, the report has not. */
void hub_take_late(struct hub *hub, uint64_t order_id, int rank, const char *path)
{
	hub->late_cnt++;
	if (!hub->options->quiet)
		log_line(LOG_INFO,
			 "event=result-late rank=%d window=%" PRIu64 " late=%" PRIu64
			 " effect=\"it is kept; the report of its window is without it\"",
			 rank, order_id, hub->late_cnt);
	keeper_event(hub->keeper, "late", "rank %d, window %" PRIu64, rank, order_id);
	keeper_begin(hub->keeper);
	keeper_fingerprint(hub->keeper, order_id, rank, path);
	hub_mark_window(hub, hub->epoch, order_id, &rank, 1);
	keeper_end(hub->keeper);
}

/* Of a daemon that was started again while its window is open: its ranks are other workers now. */
static void take_own(struct hub *hub, const struct wire_result *result)
{
	struct answer fresh = { .rank = result->rank, .state = ANSWER_READY };

	if (result->outcome != OUTCOME_SUMMARIZED)
		return;
	if (!hub->profile.active || hub->profile.id != result->order_id) {
		hub_take_late(hub, result->order_id, result->rank, result->text);
		return;
	}
	(void)snprintf(fresh.text, sizeof(fresh.text), "%s", result->text);
	vec_foreach(answer, &hub->profile.answers) {
		if (answer->rank != result->rank)
			continue;
		fresh.worker = answer->worker;
		if (answer->state != ANSWER_READY)
			*answer = fresh;
		return;
	}
	(void)!vec_push(&hub->profile.answers, fresh);
}

void hub_take_result(void *arg, const struct bus_message *message)
{
	struct hub *hub = arg;
	struct wire_result result;

	if (message->len != sizeof(result))
		return;
	memcpy(&result, message->data, sizeof(result));
	result.text[sizeof(result.text) - 1] = '\0';
	if (result.epoch == hub->epoch)
		take_own(hub, &result);
	else if (recovered_add(&hub->recovered, &result, clock_mono_ns()) < 0 &&
		 recovered_kind(&result.window) == NULL)
		publish_committed(hub, result.epoch, result.order_id); /* of no window of a hub */
}

/* --- a window of an earlier hub --- */

/* Ranks that are missing: the order counted so many workers, whose ranks begin at 0. */
static int add_missing(struct hub *hub, uint32_t workers)
{
	_cleanup_free_ bool *seen = calloc((size_t)workers + 1, sizeof(*seen));
	struct profile *profile = &hub->profile;
	int ret = seen == NULL ? -ENOMEM : 0;

	for (size_t i = 0; i < profile->answers.cnt && ret == 0; i++) {
		int rank = profile->answers.data[i].rank;

		if (rank >= 0 && (uint32_t)rank < workers)
			seen[rank] = true;
	}
	for (uint32_t rank = 0; rank < workers && ret == 0; rank++) {
		struct answer answer = { .rank = (int)rank, .state = ANSWER_MISSED };

		if (profile->answers.cnt >= workers)
			break;
		if (seen[rank])
			continue;
		(void)snprintf(answer.text, sizeof(answer.text), NOT_COME);
		ret = vec_push(&profile->answers, answer);
	}
	return ret;
}

static int fill_answers(struct hub *hub, const struct recovered_window *window)
{
	struct profile *profile = &hub->profile;
	int ret = 0;

	profile->answers.cnt = 0;
	idmap_done(&profile->places);
	vec_foreach(result, &window->results) {
		struct answer answer = { .rank = result->rank,
					 .state = result->ready ? ANSWER_READY : ANSWER_MISSED };

		(void)snprintf(answer.text, sizeof(answer.text), "%s", result->text);
		ret = ret == 0 ? vec_push(&profile->answers, answer) : ret;
	}
	return ret < 0 ? ret : add_missing(hub, MIN(window->window.workers, HUB_WORKER_MAX));
}

static void report_window(struct hub *hub, const struct recovered_window *window)
{
	const struct wire_window *about = &window->window;
	struct profile *profile = &hub->profile;

	if (fill_answers(hub, window) < 0)
		return; /* the hosts keep it for another hub */
	profile->active = profile->begun = profile->recovered = true;
	profile->torch = profile->canceled = false;
	profile->wish = (struct profile_wish){ .kind = recovered_kind(about) };
	profile->tries = 1;
	profile->id = ++hub->number;
	profile->epoch = window->epoch;
	profile->order_id = window->order_id;
	profile->length_ns = 0;
	profile->trigger = (struct report_trigger){ .present = true,
						    .kind = profile->wish.kind,
						    .baseline_iteration_ms = about->baseline_ms,
						    .current_iteration_ms = about->now_ms,
						    .since_step = about->since_step,
						    .step = about->step };
	log_line(LOG_INFO,
		 "event=window-recovered why=%s window=%" PRIu64 " of_hub=%" PRIu64
		 " results=%zu workers=%u report=%" PRIu64,
		 profile->wish.kind, window->order_id, window->epoch, window->results.cnt,
		 about->workers, profile->id);
	keeper_event(hub->keeper, "recovered",
		     "window %" PRIu64 " of an earlier hub is report %" PRIu64, window->order_id,
		     profile->id);
	hub_finish_profile(hub);
	profile->recovered = false;
}

/* Ranks that came after the window was committed; counts those of all results that are known. */
static void keep_late(struct hub *hub, const struct recovered_window *window)
{
	uint64_t number = ++hub->number;

	keeper_begin(hub->keeper);
	vec_foreach(result, &window->results) {
		if (!result->ready ||
		    keeper_find_window(hub->keeper, window->epoch, window->order_id,
				       result->rank) != KEEPER_WITHOUT)
			continue;
		hub->late_cnt++;
		keeper_fingerprint(hub->keeper, number, result->rank, result->text);
		hub_mark_window(hub, window->epoch, window->order_id, &result->rank, 1);
	}
	keeper_end(hub->keeper);
}

static void conclude_known(struct hub *hub, const struct recovered_window *window)
{
	unsigned before = hub->marks;

	keep_late(hub, window);
	log_line(LOG_INFO,
		 "event=window-known window=%" PRIu64 " of_hub=%" PRIu64
		 " late=%u effect=\"it is in the "
		 "store already\"",
		 window->order_id, window->epoch, hub->marks - before);
	if (hub->marks == before)
		publish_committed(hub, window->epoch, window->order_id);
}

void hub_recover(struct hub *hub, bool all, int64_t now_ns)
{
	struct recovered_window *window;
	enum keeper_known known;

	publish_marks(hub);
	if (hub->recovered.windows.cnt > 0) /* the store is opened before one is due */
		(void)keeper_find_window(hub->keeper, 0, 0, 0);
	if (hub->profile.active)
		return;
	window = recovered_due(&hub->recovered, all, now_ns);
	if (window == NULL)
		return;
	known = keeper_find_window(hub->keeper, window->epoch, window->order_id, -1);
	if (known == KEEPER_ASK_AGAIN)
		return;
	if (known == KEEPER_UNKNOWN)
		report_window(hub, window);
	else
		conclude_known(hub, window);
	recovered_drop(&hub->recovered, window);
}

void hub_recover_all(struct hub *hub)
{
	for (size_t i = hub->recovered.windows.cnt; i > 0; i--)
		hub_recover(hub, true, clock_mono_ns());
}
