/* SPDX-License-Identifier: Apache-2.0 */
/* The part of hostd that handles the hub's messages: orders, replies, reports, profile state. */
#include "base/clock.h"
#include "base/log.h"
#include "live/hostd/hostd_parts.h"
#include "live/link/wire_request.h"

#include <stdio.h>
#include <string.h>

#define HUB_SILENT_NS (60 * NSEC_PER_SEC) /* the hub publishes its state 10 times a second */

void hostd_suspend(struct hostd *hostd)
{
	hostd->suspended = true;
	vec_foreach(client, &hostd->clients) {
		if ((*client)->is_worker)
			worker_suspend(&(*client)->worker, hostd->window_stops);
	}
}

static void resume(struct hostd *hostd)
{
	hostd->suspended = hostd->window_stops = false;
	vec_foreach(client, &hostd->clients) {
		if ((*client)->is_worker)
			worker_resume(&(*client)->worker, clock_mono_ns());
	}
}

/* A late worker must not begin to profile. The hub repeats it. */
static void cancel_order(struct hostd *hostd, uint64_t id)
{
	if (id == 0 || id != hostd->order_id)
		return;
	hostd->order_id = 0;
	vec_foreach(client, &hostd->clients) {
		if ((*client)->is_worker && !(*client)->worker.gone)
			block_cancel(&(*client)->worker.block);
	}
	gpuwatch_expect(hostd->gpuwatch, 0);
}

void hostd_take_profile(void *arg, const struct bus_message *message)
{
	struct hostd *hostd = arg;
	const struct wire_profile *profile = message->data;

	if (message->len != sizeof(*profile) ||
	    (profile->epoch == hostd->hub_epoch && profile->sequence <= hostd->hub_sequence))
		return;
	hostd->hub_epoch = profile->epoch;
	hostd->hub_sequence = profile->sequence;
	hostd->hub_heard_ns = clock_mono_ns();
	hostd->about.restarts = profile->restarts;
	cancel_order(hostd, profile->canceled);
	if (hostd->setup.metrics != NULL)
		metrics_host_restarts(hostd->setup.metrics, profile->restarts);
	/* PROFILE_ORDERED changes nothing: a window here may have begun before the hub knows. */
	if (profile->progress == PROFILE_BEGUN && !hostd->suspended)
		hostd_suspend(hostd);
	else if (profile->progress == PROFILE_NONE && hostd->suspended)
		resume(hostd);
}

void hostd_mind_hub(struct hostd *hostd, int64_t now_ns)
{
	if (!hostd->suspended || now_ns - hostd->hub_heard_ns < HUB_SILENT_NS)
		return;
	log_line(LOG_WARNING, "event=hub-silent effect=\"workers are watched again\"");
	resume(hostd);
}

static void take_order(void *arg, const struct bus_message *message)
{
	struct hostd *hostd = arg;
	const struct wire_order *wire = message->data;
	struct order_plan plan;

	if (message->len != sizeof(*wire) || wire->steps == 0)
		return;
	plan = (struct order_plan){ .id = wire->id,
				    .start_step = wire->start_step,
				    .window_ns = wire->window_ns,
				    .steps = wire->steps,
				    .stride = wire->stride,
				    .source = hostd->setup.options->source,
				    .exact = hostd->setup.options->exact };
	vec_foreach(client, &hostd->clients) {
		struct worker *worker = &(*client)->worker;

		if ((*client)->is_worker && !worker->gone)
			block_order(&worker->block, &plan);
	}
	hostd->order_id = plan.id;
	gpuwatch_expect(hostd->gpuwatch, GPUWATCH_EXPECT_NS);
}

static void take_reply(void *arg, const struct bus_message *message)
{
	struct hostd *hostd = arg;
	const struct wire_reply *wire = message->data;
	struct message answer = { .status = 0 };

	if (message->len != sizeof(*wire))
		return;
	answer.status = wire->status;
	(void)snprintf(answer.text, sizeof(answer.text), "%.*s", (int)sizeof(answer.text) - 1,
		       wire->text);
	vec_foreach(client, &hostd->clients) {
		if ((*client)->id == wire->client)
			(void)hostd_reply(*client, &answer);
	}
}

static void take_accept(void *arg, const struct bus_message *message)
{
	struct hostd *hostd = arg;

	if (message->len != sizeof(struct wire_accept))
		return;
	vec_foreach(client, &hostd->clients) {
		if ((*client)->is_worker && worker_accept(&(*client)->worker))
			hostd_publish_state(*client);
	}
}

static void take_slices(void *arg, const struct bus_message *message)
{
	struct hostd *hostd = arg;
	const struct wire_slices *wire = message->data;
	struct overhead_plan plan;

	if (message->len != sizeof(*wire))
		return;
	plan = (struct overhead_plan){ .id = wire->id,
				       .start_step = wire->start_step,
				       .slice_steps = wire->slice_steps,
				       .slice_cnt = wire->slice_cnt,
				       .kind = wire->kind,
				       .stride = wire->stride };
	vec_foreach(client, &hostd->clients) {
		if ((*client)->is_worker && !(*client)->worker.gone)
			worker_measure_overhead(&(*client)->worker, &plan);
	}
}

static void take_cost(void *arg, const struct bus_message *message)
{
	struct hostd *hostd = arg;

	if (message->len != sizeof(hostd->overhead))
		return;
	memcpy(&hostd->overhead, message->data, sizeof(hostd->overhead));
	if (hostd->setup.metrics != NULL)
		metrics_host_overhead(hostd->setup.metrics, &hostd->overhead);
	vec_foreach(client, &hostd->clients) {
		if ((*client)->is_worker && !(*client)->worker.gone)
			block_back_off(&(*client)->worker.block, hostd->overhead.backoff);
	}
}

void hostd_forget_silence(struct hostd *hostd)
{
	if (hostd->suspended)
		return; /* detectors measure nothing then */
	hostd_suspend(hostd);
	resume(hostd);
}

/* A report may leave open who took the time: a stall window of the workers here may tell. */
static void hunt_stalls(struct hostd *hostd)
{
	uint32_t pids[STALLHUNT_WORKERS_MAX];
	size_t cnt = 0;

	if (!stallhunt_wants(&hostd->about.report))
		return;
	vec_foreach(client, &hostd->clients) {
		const struct client *of = *client;

		if (of->is_worker && !of->worker.gone && cnt < STALLHUNT_WORKERS_MAX)
			pids[cnt++] = of->pid;
	}
	stallhunt_begin(hostd->stallhunt, hostd->about.report.number, pids, cnt, clock_mono_ns());
}

/* The iteration that a hang made long must not count as a slow one after its report. */
static void take_report(void *arg, const struct bus_message *message)
{
	struct hostd *hostd = arg;

	if (message->len != sizeof(hostd->about.report))
		return;
	memcpy(&hostd->about.report, message->data, sizeof(hostd->about.report));
	hostd->about.reported = true;
	if (hostd->setup.metrics != NULL)
		metrics_host_report(hostd->setup.metrics, message->data, clock_wall_ns());
	hostd_forget_silence(hostd);
	hunt_stalls(hostd);
}

/* What hostd itself publishes comes back, too. */
static void take_state(void *arg, const struct bus_message *message)
{
	struct hostd *hostd = arg;

	if (message->len == sizeof(struct wire_state))
		otherhosts_take(&hostd->about.others, message->data);
}

/* For the hub of another host, by the follower. */
static void take_save(void *arg, const struct bus_message *message)
{
	struct hostd *hostd = arg;

	if (message->len != sizeof(struct wire_save))
		return;
	(void)hostd_save_records(hostd);
	hostd_publish(hostd, SUBJECT_SAVED, message->data, message->len);
}

static void take_spools(void *arg, const struct bus_message *message)
{
	struct hostd *hostd = arg;

	if (message->len == sizeof(hostd->about.spools))
		memcpy(&hostd->about.spools, message->data, message->len);
}

int hostd_subscribe(struct hostd *hostd)
{
	static const struct {
		const char *subject;
		bus_handler *take;
	} subjects[] = {
		{ SUBJECT_ORDER, take_order },	 { SUBJECT_REPLY, take_reply },
		{ SUBJECT_SLICES, take_slices }, { SUBJECT_COST, take_cost },
		{ SUBJECT_REPORT, take_report }, { SUBJECT_PROFILE, hostd_take_profile },
		{ SUBJECT_ACCEPT, take_accept }, { SUBJECT_STATE, take_state },
		{ SUBJECT_SAVE, take_save },	 { SUBJECT_SPOOLS, take_spools },
	};
	int ret = 0;

	_Static_assert(ARRAY_SIZE(subjects) == ARRAY_SIZE(hostd->subs), "one entry for each");
	for (size_t i = 0; i < ARRAY_SIZE(subjects) && ret == 0; i++)
		ret = bus_sub(hostd->setup.bus, subjects[i].subject, subjects[i].take, hostd,
			      &hostd->subs[i]);
	return ret;
}
