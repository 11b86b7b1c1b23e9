/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/vec.h"
#include "live/cluster/follower_parts.h"
#include "live/cluster/subject.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ALL_EVERY 5		 /* beats: all states, also those that did not change */
#define MESSAGE_MAX (768u << 10) /* bytes of one message, about; the bus takes more */
#define WORKERS_MAX 65536u
#define STATES_MAX 256u /* in one message */

/* --- from this host's bus --- */

static bool is_urgent(const struct known *known, const struct wire_state *state)
{
	return known->state.phase != state->phase || known->state.exit_known != state->exit_known ||
	       known->state.bye != state->bye;
}

static void take_state(void *arg, const struct bus_message *message)
{
	struct follower *f = arg;
	const struct wire_state *state = message->data;
	struct known fresh = { .changed = true };

	if (message->len != sizeof(*state))
		return;
	vec_foreach(known, &f->workers) {
		if (known->state.worker != state->worker)
			continue;
		f->urgent |= is_urgent(known, state);
		known->changed |= memcmp(&known->state, state, sizeof(*state)) != 0;
		known->state = *state;
		return;
	}
	fresh.state = *state;
	f->urgent = true;
	if (f->workers.cnt < WORKERS_MAX)
		(void)!vec_push(&f->workers, fresh); /* no memory: hostd repeats it in 100 ms */
}

static int32_t rank_of(const struct follower *f, uint32_t worker)
{
	vec_foreach(known, &f->workers) {
		if (known->state.worker == worker)
			return known->state.rank;
	}
	return -1;
}

static void take_answer(void *arg, const struct bus_message *message)
{
	struct follower *f = arg;
	struct wire_answer answer;

	if (message->len != sizeof(answer))
		return;
	memcpy(&answer, message->data, sizeof(answer));
	answer.text[sizeof(answer.text) - 1] = '\0';
	follower_add_answer(f, &answer, rank_of(f, answer.worker));
}

static void take_where(void *arg, const struct bus_message *message)
{
	struct follower *f = arg;
	const struct wire_where *where = message->data;
	struct item *item;

	if (!f->led || message->len != sizeof(*where) || !wire_where_valid(where))
		return;
	item = outbox_add(&f->outbox, ITEM_WHERE, 0);
	if (item != NULL)
		item->where = *where;
}

static void take_slices_cost(void *arg, const struct bus_message *message)
{
	struct follower *f = arg;
	struct wire_slices_cost cost;
	struct item *item;

	if (message->len != sizeof(cost))
		return;
	memcpy(&cost, message->data, sizeof(cost));
	if (!f->led || cost.id < f->orders_base || cost.pair_cnt > WIRE_PAIRS_MAX)
		return;
	cost.id -= f->orders_base;
	item = outbox_add(&f->outbox, ITEM_SLICES_COST, 0);
	if (item == NULL)
		return;
	item->slices_cost = cost;
	item->result.epoch = f->epoch;
}

/* hub_follow() keeps this host's hub from answering, too. */
static void take_ask(void *arg, const struct bus_message *message)
{
	struct follower *f = arg;
	struct item *item;

	if (!f->led || message->len != sizeof(item->ask))
		return;
	item = outbox_add(&f->outbox, ITEM_ASK, 0);
	if (item != NULL)
		memcpy(&item->ask, message->data, sizeof(item->ask));
	f->urgent = true;
}

/* --- from the leader --- */

static void publish(struct follower *f, const char *subject, const void *data, size_t len)
{
	(void)bus_pub(f->setup.local, subject, data, len); /* a full bus counts it */
}

static void pass_progress(struct follower *f, const Cluster__Down *down)
{
	struct wire_profile profile = { .epoch = down->epoch,
					.sequence = ++f->sequence,
					.progress = down->progress,
					.restarts = down->restarts };

	if (down->canceled != 0)
		profile.canceled = f->orders_base + down->canceled;
	if (down->progress <= PROFILE_BEGUN)
		publish(f, SUBJECT_PROFILE, &profile, sizeof(profile));
}

static void pass_order(struct follower *f, const Cluster__Down *down)
{
	struct wire_order order;

	if (down->order == NULL || down->order->id <= f->heard.order ||
	    down->order->id == down->canceled)
		return;
	convert_order_in(down->order, &order);
	f->heard.order = order.id;
	follower_note_order(f, &order);
	if (!follower_allows(f, down->order))
		return;
	order.id += f->orders_base;
	publish(f, SUBJECT_ORDER, &order, sizeof(order));
}

static void pass_slices(struct follower *f, const Cluster__Down *down)
{
	struct wire_slices slices;

	if (down->slices == NULL)
		return;
	convert_slices_in(down->slices, &slices);
	/* The end of a measurement has the number of its beginning, and no slices. */
	if (slices.id < f->heard.slices ||
	    (slices.id == f->heard.slices && slices.slice_cnt == f->heard.slice_cnt))
		return;
	f->heard.slices = slices.id;
	f->heard.slice_cnt = slices.slice_cnt;
	slices.id += f->orders_base;
	publish(f, SUBJECT_SLICES, &slices, sizeof(slices));
}

static void pass_accept(struct follower *f, const Cluster__Down *down)
{
	const struct wire_accept accept = { .step = down->accepted_step };

	if (down->accepted_step <= f->heard.accepted_step)
		return;
	f->heard.accepted_step = down->accepted_step;
	publish(f, SUBJECT_ACCEPT, &accept, sizeof(accept));
}

static void pass_backoff(struct follower *f, const Cluster__Down *down)
{
	const struct wire_overhead cost = { .backoff = down->backoff };

	if (down->backoff == f->heard.backoff)
		return;
	f->heard.backoff = down->backoff;
	publish(f, SUBJECT_COST, &cost, sizeof(cost));
}

static void pass_report(struct follower *f, const Cluster__Down *down)
{
	struct wire_report report;

	if (down->report == NULL || down->report->number <= f->heard.report)
		return;
	f->heard.report = down->report->number;
	if (convert_report_in(down->report, &report))
		publish(f, SUBJECT_REPORT, &report, sizeof(report));
	else
		f->stats.refused++;
}

static void pass_replies(struct follower *f, const Cluster__Down *down)
{
	for (size_t i = 0; i < down->n_replies; i++) {
		const Cluster__Reply *from = down->replies[i];
		struct wire_reply reply = { .client = from->client, .status = from->status };

		if (from->boot != f->boot)
			continue;
		(void)snprintf(reply.text, sizeof(reply.text), "%s", from->text);
		publish(f, SUBJECT_REPLY, &reply, sizeof(reply));
	}
}

/* A leader that takes what this host says leads it; one that refuses this host does not. */
static void take_acks(struct follower *f, const Cluster__Down *down)
{
	for (size_t i = 0; i < down->n_acks; i++) {
		if (down->acks[i]->boot != f->boot)
			continue;
		outbox_acknowledge(&f->outbox, down->acks[i]->number);
		f->heard_ns = f->now_ns;
		if (!f->led)
			log_line(LOG_INFO, "event=joined hub=\"%s\" reports=\"%s:%s\"", f->leader,
				 f->leader, f->out);
		f->led = true;
	}
}

/* Another leader, or one that was started again: nothing of what was heard counts. */
static void meet(struct follower *f, const Cluster__Down *down)
{
	f->epoch = down->epoch;
	f->orders_base += FOLLOWER_ORDERS_APART;
	f->heard = (struct heard){ 0 };
	memset(f->taken, 0, sizeof(f->taken));
	f->leader_ended = false;
	(void)snprintf(f->leader, sizeof(f->leader), "%s", down->host);
	(void)snprintf(f->out, sizeof(f->out), "%s", down->out);
	outbox_rewind(&f->outbox);
	follower_results_again(f);
	vec_foreach(known, &f->workers)
		known->changed = true;
	f->urgent = true;
}

static bool is_readable(struct follower *f, const Cluster__Down *down)
{
	bool ret = down != NULL && down->version == CLUSTER_VERSION && down->epoch != 0;

	f->stats.refused += !ret;
	return ret;
}

static void take_down(void *arg, const struct bus_message *message)
{
	struct follower *f = arg;
	Cluster__Down *down = cluster__down__unpack(NULL, message->len, message->data);

	if (!is_readable(f, down) || !follower_trusts(f, message, down)) {
		if (down != NULL)
			cluster__down__free_unpacked(down, NULL);
		return;
	}
	if (down->epoch != f->epoch)
		meet(f, down);
	f->stats.taken++;
	f->taken[follower_subject(message)] = down->sequence;
	f->leader_ended |= down->ended;
	take_acks(f, down);
	follower_take_committed(f, down);
	pass_replies(f, down);
	if (f->led && down->wanted && !down->ended) { /* what the hub wants of all */
		pass_order(f, down);
		pass_progress(f, down);
		pass_slices(f, down);
		pass_accept(f, down);
		pass_backoff(f, down);
		pass_report(f, down);
		follower_pass_collect(f, down);
	}
	cluster__down__free_unpacked(down, NULL);
}

/* --- to the leader --- */

struct draft {
	Cluster__Up up;
	Cluster__Spool spool;
	Cluster__State states[STATES_MAX];
	Cluster__State *state_pointers[STATES_MAX];
	struct outbox_room rooms[STATES_MAX];
	Cluster__Item *item_pointers[STATES_MAX];
	struct item *items[STATES_MAX];
	size_t bytes;
};

/* Returns whether some are left for another message. from: the first worker; moves on. */
static bool put_states(struct follower *f, struct draft *draft, bool all, size_t *from)
{
	for (; *from < f->workers.cnt && draft->up.n_states < STATES_MAX; (*from)++) {
		struct known *known = &f->workers.data[*from];
		size_t i = draft->up.n_states;

		if (!known->changed && !all)
			continue;
		convert_state_out(&known->state, &draft->states[i]);
		draft->state_pointers[i] = &draft->states[i];
		draft->up.n_states++;
		draft->bytes += sizeof(known->state);
		known->changed = false;
	}
	return *from < f->workers.cnt;
}

/* The same. */
static bool put_items(struct follower *f, struct draft *draft)
{
	struct item *item = outbox_next(&f->outbox);

	for (; item != NULL && draft->up.n_items < STATES_MAX; item = item->next) {
		size_t i = draft->up.n_items;

		if (i > 0 && draft->bytes + item->bytes > MESSAGE_MAX)
			return true;
		outbox_write(item, &draft->rooms[i]);
		draft->item_pointers[i] = &draft->rooms[i].item;
		draft->items[i] = item;
		draft->up.n_items++;
		draft->bytes += item->bytes;
	}
	return item != NULL;
}

/* Returns 0, or -errno of bus_pub(): then all is sent again later. */
static int send_draft(struct follower *f, struct draft *draft, int64_t now_ns)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t len;
	int ret;

	draft->up.states = draft->state_pointers;
	draft->up.items = draft->item_pointers;
	draft->up.sent_ns = clock_mono_ns();
	draft->up.oldest = outbox_oldest(&f->outbox);
	len = cluster__up__get_packed_size(&draft->up);
	bytes = malloc(len);
	if (bytes == NULL)
		return -ENOMEM;
	(void)cluster__up__pack(&draft->up, bytes);
	ret = bus_pub(f->setup.net, f->subject, bytes, len);
	if (ret < 0)
		return ret;
	f->stats.sent++;
	for (size_t i = 0; i < draft->up.n_items; i++)
		outbox_sent(&f->outbox, draft->items[i], now_ns);
	return 0;
}

static void begin_draft(const struct follower *f, struct draft *draft)
{
	cluster__up__init(&draft->up);
	draft->bytes = 0;
	draft->up.version = CLUSTER_VERSION;
	draft->up.host = (char *)(uintptr_t)f->setup.host;
	draft->up.program = (char *)(uintptr_t)PT_VERSION;
	draft->up.boot = f->boot;
	draft->up.node_rank = f->setup.node_rank;
	draft->up.again = f->setup.again;
	follower_write_spool(f, &draft->spool);
	if (f->spool != NULL)
		draft->up.spool = &draft->spool;
}

static void send_all(struct follower *f, bool all, int64_t now_ns)
{
	_cleanup_free_ struct draft *draft = malloc(sizeof(*draft));
	size_t from = 0;
	bool more = draft != NULL;

	while (more) {
		begin_draft(f, draft);
		more = put_states(f, draft, all, &from);
		more |= put_items(f, draft);
		if (send_draft(f, draft, now_ns) < 0)
			return; /* the next beat has all states */
	}
}

/* Workers whose end has been told long enough. */
static void forget_ended(struct follower *f, int64_t now_ns)
{
	size_t kept = 0;

	vec_foreach(known, &f->workers) {
		if (known->state.phase != PHASE_GONE ||
		    now_ns - known->state.last_ns < 60 * NSEC_PER_SEC)
			f->workers.data[kept++] = *known;
	}
	f->workers.cnt = kept;
}

static void lose_leader(struct follower *f)
{
	f->led = false;
	f->epoch = 0; /* the next leader is met anew */
	log_line(LOG_WARNING,
		 "event=hub-lost hub=\"%s\" seconds=%lld effect=\"this host is watched alone until "
		 "the hub is back\"",
		 f->leader, (long long)(CLUSTER_LOST_NS / NSEC_PER_SEC));
}

void follower_tick(struct follower *f, int64_t now_ns)
{
	bool beat = now_ns >= f->beat_ns, all;

	f->now_ns = now_ns;
	if (f->led && !f->leader_ended && now_ns - f->heard_ns > CLUSTER_LOST_NS)
		lose_leader(f);
	outbox_mind(&f->outbox, now_ns);
	follower_mind_results(f);
	if (!beat && !f->urgent && outbox_next(&f->outbox) == NULL)
		return;
	all = beat && f->beats % ALL_EVERY == 0;
	f->beats += beat;
	if (beat) {
		follower_publish_spool(f);
		f->beat_ns = now_ns + CLUSTER_BEAT_NS;
	}
	f->urgent = false;
	send_all(f, all || f->end_added, now_ns);
	forget_ended(f, now_ns);
}

/* --- begin and end --- */

bool follower_is_led(const struct follower *follower)
{
	return follower->led;
}

const char *follower_leader(const struct follower *follower)
{
	return follower->leader;
}

const char *follower_out(const struct follower *follower)
{
	return follower->out;
}

void follower_end(struct follower *follower, const struct job_end *end)
{
	struct item *item = outbox_add(&follower->outbox, ITEM_END, 0);

	if (item != NULL)
		item->end = *end;
	follower->end_added = true;
}

bool follower_is_done(const struct follower *follower)
{
	return !follower->led || follower->leader_ended ||
	       (follower->outbox.head == NULL && follower->kept.cnt == 0);
}

struct cluster_stats follower_stats(const struct follower *follower)
{
	struct cluster_stats ret = follower->stats;

	ret.resent = follower->outbox.resent;
	ret.dropped = follower->outbox.dropped;
	return ret;
}

static int subscribe(struct follower *f)
{
	static const struct {
		const char *subject;
		bus_handler *take;
	} subjects[] = {
		{ SUBJECT_STATE, take_state }, { SUBJECT_ANSWER, take_answer },
		{ SUBJECT_WHERE, take_where }, { SUBJECT_SLICES_COST, take_slices_cost },
		{ SUBJECT_ASK, take_ask },     { SUBJECT_SAVED, follower_take_saved },
	};
	char subject[BUS_SUBJECT_MAX];
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(subjects) && ret == 0; i++)
		ret = bus_sub(f->setup.local, subjects[i].subject, subjects[i].take, f,
			      &f->subs[i]);
	subject_write(subject, f->setup.job, "down", NULL);
	if (ret == 0)
		ret = bus_sub(f->setup.net, subject, take_down, f, &f->net_subs[0]);
	subject_write(subject, f->setup.job, "to", f->setup.id);
	if (ret == 0)
		ret = bus_sub(f->setup.net, subject, take_down, f, &f->net_subs[1]);
	return ret;
}

int follower_open(const struct cluster_setup *setup, struct follower **ret)
{
	struct follower *f = calloc(1, sizeof(*f));
	int r;

	if (f == NULL)
		return -ENOMEM;
	f->setup = *setup;
	f->boot = (uint64_t)clock_wall_ns() ^ ((uint64_t)getpid() << 48);
	outbox_init(&f->outbox);
	follower_open_spool(f);
	subject_write(f->subject, setup->job, "up", setup->id);
	r = subscribe(f);
	if (r < 0) {
		(void)follower_close(f);
		return r;
	}
	*ret = f;
	return 0;
}

struct follower *follower_close(struct follower *f)
{
	if (f == NULL)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(f->subs); i++)
		f->subs[i] = bus_unsub(f->setup.local, f->subs[i]);
	for (size_t i = 0; i < ARRAY_SIZE(f->net_subs); i++)
		f->net_subs[i] = bus_unsub(f->setup.net, f->net_subs[i]);
	follower_close_spool(f);
	outbox_done(&f->outbox);
	vec_done(&f->workers);
	free(f);
	return NULL;
}
