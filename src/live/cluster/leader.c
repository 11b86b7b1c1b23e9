/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "base/vec.h"
#include "live/cluster/cluster.h"
#include "live/cluster/convert.h"
#include "live/cluster/remote.h"
#include "live/cluster/subject.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOSTS_MAX 4095u			   /* slots above CONVERT_WORKERS_MAX in a worker's id */
#define ORDER_LASTS_NS (60 * NSEC_PER_SEC) /* an order is repeated for so long */
#define ASKS_MAX 64u
#define SECOND_NS (3 * NSEC_PER_SEC) /* two daemons with one id speak within this time */
#define ACK_EVERY_NS (5 * NSEC_PER_SEC)
#define ABSENT_SHOWN 16u

/* A client of another host that waits for a reply. Ids here are above those of hostd's clients. */
struct asked {
	uint64_t id, client;
	size_t remote; /* index */
};

#define ASKED_FROM (UINT64_C(1) << 48)

/* What the hub wants, as it said last. */
struct wanted {
	struct wire_order order;
	struct wire_slices slices;
	struct wire_profile profile;
	struct wire_report report;
	uint64_t accepted_step;
	uint32_t backoff;
	int64_t order_ns; /* when */
};

struct leader {
	struct cluster_setup setup;
	char subject[BUS_SUBJECT_MAX];
	struct bus_sub *subs[7], *net_sub;
	VEC(struct remote) remotes;
	uint32_t last_slot;
	VEC(struct asked) asked;
	uint64_t last_asked, epoch;
	struct wanted wanted;
	int64_t now_ns, beat_ns; /* of the latest tick; of the next message */
	int64_t opened_ns;
	bool urgent, full_logged, version_logged, absent_logged;
	struct cluster_stats stats;
};

/* --- to the network --- */

static void send_down(struct leader *l, const char *subject, Cluster__Down *down)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t len;

	down->version = CLUSTER_VERSION;
	down->epoch = l->epoch;
	down->host = (char *)(uintptr_t)l->setup.host;
	down->out = (char *)(uintptr_t)l->setup.out_dir;
	down->program = (char *)(uintptr_t)PT_VERSION;
	len = cluster__down__get_packed_size(down);
	bytes = malloc(len + 1);
	if (bytes == NULL)
		return; /* it is repeated */
	(void)cluster__down__pack(down, bytes);
	if (bus_pub(l->setup.net, subject, bytes, len) == 0)
		l->stats.sent++;
}

static void send_to(struct leader *l, const struct remote *remote, Cluster__Down *down)
{
	char subject[BUS_SUBJECT_MAX];

	subject_write(subject, l->setup.job, "to", "");
	/* The id is a part of a subject already. */
	(void)snprintf(strrchr(subject, '.') + 1,
		       sizeof(subject) - (size_t)(strrchr(subject, '.') + 1 - subject), "%s",
		       remote->id);
	send_down(l, subject, down);
}

static void acknowledge(struct leader *l, struct remote *remote)
{
	Cluster__Down down;
	Cluster__Ack ack, *acks[] = { &ack };

	cluster__down__init(&down);
	cluster__ack__init(&ack);
	remote->ack_due = false;
	remote->acked_ns = l->now_ns;
	ack.boot = remote->boot;
	ack.number = remote->next - 1;
	down.acks = acks;
	down.n_acks = 1;
	send_to(l, remote, &down);
}

static void send_wanted(struct leader *l, bool ended, int64_t now_ns)
{
	Cluster__Down down;
	Cluster__Order order;
	Cluster__Slices slices;
	Cluster__Report report;
	struct convert_findings room;
	struct wanted *wanted = &l->wanted;

	cluster__down__init(&down);
	down.wanted = true;
	down.progress = wanted->profile.progress;
	down.restarts = wanted->profile.restarts;
	down.canceled = wanted->profile.canceled;
	down.accepted_step = wanted->accepted_step;
	down.backoff = wanted->backoff;
	down.ended = ended;
	if (wanted->order.id != 0 && now_ns - wanted->order_ns < ORDER_LASTS_NS) {
		convert_order_out(&wanted->order, &order);
		down.order = &order;
	}
	if (wanted->slices.id != 0) {
		convert_slices_out(&wanted->slices, &slices);
		down.slices = &slices;
	}
	if (wanted->report.number != 0) {
		convert_report_out(&wanted->report, &room, &report);
		down.report = &report;
	}
	send_down(l, l->subject, &down);
}

/* --- from this host's bus --- */

static void take_order(void *arg, const struct bus_message *message)
{
	struct leader *l = arg;

	if (message->len != sizeof(l->wanted.order))
		return;
	memcpy(&l->wanted.order, message->data, message->len);
	l->wanted.order_ns = l->now_ns;
	l->urgent = true;
}

static void take_slices(void *arg, const struct bus_message *message)
{
	struct leader *l = arg;

	if (message->len != sizeof(l->wanted.slices))
		return;
	memcpy(&l->wanted.slices, message->data, message->len);
	l->urgent = true;
}

static void take_profile(void *arg, const struct bus_message *message)
{
	struct leader *l = arg;
	struct wire_profile profile;

	if (message->len != sizeof(profile))
		return;
	memcpy(&profile, message->data, sizeof(profile));
	l->urgent |= profile.progress != l->wanted.profile.progress ||
		     profile.canceled != l->wanted.profile.canceled;
	l->wanted.profile = profile;
}

static void take_report(void *arg, const struct bus_message *message)
{
	struct leader *l = arg;

	if (message->len != sizeof(l->wanted.report))
		return;
	memcpy(&l->wanted.report, message->data, message->len);
	l->urgent = true;
}

static void take_accept(void *arg, const struct bus_message *message)
{
	struct leader *l = arg;
	const struct wire_accept *accept = message->data;

	if (message->len != sizeof(*accept))
		return;
	l->wanted.accepted_step = accept->step;
	l->urgent = true;
}

static void take_cost(void *arg, const struct bus_message *message)
{
	struct leader *l = arg;
	const struct wire_overhead *cost = message->data;

	if (message->len == sizeof(*cost))
		l->wanted.backoff = cost->backoff;
}

/* To clients of other hosts; those of this host get theirs from hostd. */
static void take_reply(void *arg, const struct bus_message *message)
{
	struct leader *l = arg;
	struct wire_reply wire;
	Cluster__Down down;
	Cluster__Reply reply, *replies[] = { &reply };

	if (message->len != sizeof(wire))
		return;
	cluster__down__init(&down);
	cluster__reply__init(&reply);
	memcpy(&wire, message->data, sizeof(wire));
	wire.text[sizeof(wire.text) - 1] = '\0';
	for (size_t i = 0; i < l->asked.cnt; i++) {
		const struct asked *asked = &l->asked.data[i];
		const struct remote *remote = &l->remotes.data[asked->remote];

		if (asked->id != wire.client)
			continue;
		reply.boot = remote->boot;
		reply.client = asked->client;
		reply.status = wire.status;
		reply.text = wire.text;
		down.replies = replies;
		down.n_replies = 1;
		send_to(l, remote, &down);
		l->asked.data[i] = l->asked.data[--l->asked.cnt];
		return;
	}
}

/* --- from other hosts --- */

static void publish(struct leader *l, const char *subject, const void *data, size_t len)
{
	(void)bus_pub(l->setup.local, subject, data, len); /* a full bus counts it */
}

static void pass_state(struct leader *l, struct remote *remote, const Cluster__State *from)
{
	const struct convert_from how = remote_from(remote);
	struct wire_state state;

	if (!convert_state_in(from, &how, &state)) {
		l->stats.refused++;
		return;
	}
	publish(l, SUBJECT_STATE, &state, sizeof(state));
	if (remote_keep_state(remote, &state) < 0)
		l->stats.dropped++;
}

static int32_t rank_of(const struct remote *remote, uint32_t worker)
{
	vec_foreach(state, &remote->states) {
		if (state->worker == worker)
			return state->rank;
	}
	return -1;
}

/* The path of a fingerprint, as hostd names those of this host. */
static void fingerprint_path(const struct leader *l, uint64_t order, int32_t rank, char *ret,
			     size_t size)
{
	int len = snprintf(ret, size, "%s/fingerprints/%" PRIu64, l->setup.out_dir, order);

	(void)mkdir(ret, 0755); /* EEXIST is fine; other errors show when the file is written */
	if (len > 0 && (size_t)len < size)
		(void)snprintf(ret + len, size - (size_t)len, "/rank%d.ptfp", rank);
}

static bool pass_answer(struct leader *l, struct remote *remote, const Cluster__Answer *from)
{
	const struct convert_from how = remote_from(remote);
	struct wire_answer answer;
	struct err err;
	char path[WIRE_TEXT];

	if (!convert_answer_in(from, &how, &answer))
		return false;
	if (answer.outcome == OUTCOME_SUMMARIZED) {
		fingerprint_path(l, answer.order_id, rank_of(remote, answer.worker), path,
				 sizeof(path));
		if (remote_save_file(remote, from->worker, from->order, path, &err) == 0) {
			memcpy(answer.text, path, sizeof(answer.text));
		} else {
			answer.outcome = OUTCOME_MISSED;
			(void)snprintf(answer.text, sizeof(answer.text), "%.500s", err.text);
		}
	}
	publish(l, SUBJECT_ANSWER, &answer, sizeof(answer));
	return true;
}

static bool pass_where(struct leader *l, const struct remote *remote, const Cluster__Where *from)
{
	const struct convert_from how = remote_from(remote);
	struct wire_where where;
	bool ret = convert_where_in(from, &how, &where);

	if (ret)
		publish(l, SUBJECT_WHERE, &where, sizeof(where));
	return ret;
}

static bool pass_slices_cost(struct leader *l, const struct remote *remote,
			     const Cluster__SlicesCost *from)
{
	const struct convert_from how = remote_from(remote);
	struct wire_slices_cost cost;
	bool ret = convert_slices_cost_in(from, &how, &cost);

	if (ret)
		publish(l, SUBJECT_SLICES_COST, &cost, sizeof(cost));
	return ret;
}

static bool pass_ask(struct leader *l, const struct remote *remote, const Cluster__Ask *from)
{
	struct asked asked = { .client = from->client,
			       .remote = (size_t)(remote - l->remotes.data) };
	struct wire_ask ask;

	convert_ask_in(from, &ask);
	asked.id = ask.client = ASKED_FROM + ++l->last_asked;
	if (ask.kind > ASK_ACCEPT || l->asked.cnt >= ASKS_MAX || vec_push(&l->asked, asked) < 0)
		return false;
	publish(l, SUBJECT_ASK, &ask, sizeof(ask));
	return true;
}

static void note_end(struct remote *remote, const Cluster__End *end)
{
	remote->ended = true;
	log_line(LOG_INFO, "event=host-ended host=\"%s\" exit_status=%d signal=%d", remote->host,
		 end->exit_status, end->signal);
}

static void pass_item(struct leader *l, struct remote *remote, const Cluster__Item *item)
{
	bool valid = true;

	if (item->piece != NULL)
		valid = remote_add_piece(remote, item->piece) == 0;
	else if (item->answer != NULL)
		valid = pass_answer(l, remote, item->answer);
	else if (item->where != NULL)
		valid = pass_where(l, remote, item->where);
	else if (item->slices_cost != NULL)
		valid = pass_slices_cost(l, remote, item->slices_cost);
	else if (item->ask != NULL)
		valid = pass_ask(l, remote, item->ask);
	else if (item->end != NULL)
		note_end(remote, item->end);
	/* else: of a later version */
	l->stats.refused += !valid;
}

/* Items that are not the next one have been taken, or come again. */
static void take_items(struct leader *l, struct remote *remote, const Cluster__Up *up)
{
	for (size_t i = 0; i < up->n_items; i++) {
		if (up->items[i]->number != remote->next)
			continue;
		remote->next++;
		pass_item(l, remote, up->items[i]);
	}
	remote->ack_due |= up->n_items > 0;
}

/* NULL: too many hosts, or no memory. */
static struct remote *add_remote(struct leader *l, const char *id)
{
	struct remote remote = { .boot = 0 };

	(void)snprintf(remote.id, sizeof(remote.id), "%s", id);
	return vec_push(&l->remotes, remote) == 0 ? &l->remotes.data[l->remotes.cnt - 1] : NULL;
}

static void publish_phase(struct leader *l, struct remote *remote, enum wire_phase phase)
{
	vec_foreach(state, &remote->states) {
		if (!wire_is_watched(state))
			continue;
		state->phase = phase;
		publish(l, SUBJECT_STATE, state, sizeof(*state));
	}
}

/* What is silent may be well: nothing is known. */
static void silence(struct leader *l, struct remote *remote)
{
	remote->silent = true;
	if (remote->ended)
		return;
	log_line(LOG_WARNING, "event=host-silent host=\"%s\" seconds=%lld", remote->host,
		 (long long)(CLUSTER_QUIET_NS / NSEC_PER_SEC));
	publish_phase(l, remote, PHASE_SILENT);
}

/* The last part of a subject. */
static struct remote *find_remote(struct leader *l, const char *subject)
{
	const char *id = strrchr(subject, '.') + 1;

	vec_foreach(remote, &l->remotes) {
		if (strcmp(remote->id, id) == 0)
			return remote;
	}
	return add_remote(l, id);
}

/* Ids of workers have room for so many hosts, and for each of their daemons' starts. */
static bool has_slot(struct leader *l)
{
	if (l->last_slot < HOSTS_MAX)
		return true;
	if (!l->full_logged)
		log_line(LOG_ERROR, "event=host-refused why=\"more than %u hosts\"", HOSTS_MAX);
	l->full_logged = true;
	return false;
}

/* The processes of an earlier daemon of this host have ended with it. */
static void meet(struct leader *l, struct remote *remote, const Cluster__Up *up)
{
	publish_phase(l, remote, PHASE_GONE);
	remote_begin(remote, up);
	remote->slot = ++l->last_slot;
	log_line(LOG_INFO, "event=host-joined host=\"%s\" node_rank=%u hosts=%zu", remote->host,
		 up->node_rank, l->remotes.cnt + 1);
	if (strcmp(up->program, PT_VERSION) != 0)
		log_line(LOG_WARNING,
			 "event=other-version host=\"%s\" version=\"%.40s\" here=" PT_VERSION,
			 remote->host, up->program);
	l->urgent = true; /* it learns at once what the hub wants */
}

/* A host whose daemon was started again was silent for longer. */
static bool is_second(const struct leader *l, struct remote *remote, const Cluster__Up *up)
{
	if (remote->boot == 0 || remote->boot == up->boot || remote->ended ||
	    l->now_ns - remote->heard_ns > SECOND_NS)
		return false;
	if (!remote->doubled)
		log_line(
			LOG_ERROR,
			"event=member-twice node_rank=%u hosts=\"%s, %.60s\" effect=\"the second one "
			"is watched alone\" remedy=\"give each host a rank of its own\"",
			up->node_rank, remote->host, up->host);
	remote->doubled = true;
	return true;
}

static void take_readable(struct leader *l, const char *subject, const Cluster__Up *up)
{
	struct remote *remote = find_remote(l, subject);

	if (remote == NULL || is_second(l, remote, up) ||
	    (remote->boot != up->boot && !has_slot(l))) {
		l->stats.dropped++;
		return;
	}
	if (remote->boot != up->boot)
		meet(l, remote, up);
	remote_hear(remote, up);
	remote->heard_ns = l->now_ns;
	if (remote->silent && !remote->ended)
		log_line(LOG_INFO, "event=host-back host=\"%s\"", remote->host);
	remote->silent = false;
	for (size_t i = 0; i < up->n_states; i++)
		pass_state(l, remote, up->states[i]);
	take_items(l, remote, up);
	/* Also without items: a follower is led as long as it is acknowledged. */
	if (remote->ack_due || l->now_ns - remote->acked_ns >= ACK_EVERY_NS)
		acknowledge(l, remote);
}

static void note_version(struct leader *l, const Cluster__Up *up)
{
	if (up == NULL || up->boot == 0 || up->version == CLUSTER_VERSION || l->version_logged)
		return;
	l->version_logged = true;
	log_line(
		LOG_ERROR,
		"event=other-protocol host=\"%.60s\" version=\"%.40s\" here=" PT_VERSION
		" effect=\"that host is watched alone\" remedy=\"install one version on all hosts\"",
		up->host, up->program);
}

static void take_up(void *arg, const struct bus_message *message)
{
	struct leader *l = arg;
	Cluster__Up *up = cluster__up__unpack(NULL, message->len, message->data);

	if (up != NULL && up->version == CLUSTER_VERSION && up->boot != 0) {
		l->stats.taken++;
		take_readable(l, message->subject, up);
	} else {
		l->stats.refused++;
		note_version(l, up);
	}
	if (up != NULL)
		cluster__up__free_unpacked(up, NULL);
}

/* --- begin, tick, end --- */

static bool has_come(const struct leader *l, uint32_t node_rank)
{
	vec_foreach(remote, &l->remotes) {
		if (remote->node_rank == node_rank)
			return true;
	}
	return node_rank == l->setup.node_rank;
}

/* Says once which members have not come; of many the first. */
static void note_absent(struct leader *l)
{
	struct str list = { 0 };
	uint32_t absent = 0;

	if (l->absent_logged || l->now_ns - l->opened_ns < CLUSTER_AWAITED_NS)
		return;
	l->absent_logged = true;
	for (uint32_t i = 0; i < l->setup.members; i++) {
		if (has_come(l, i) || absent++ >= ABSENT_SHOWN)
			continue;
		str_printf(&list, "%s%u", absent > 1 ? "," : "", i);
	}
	if (absent > 0)
		log_line(
			LOG_WARNING,
			"event=members-missing came=%u of=%u missing=\"%s%s\" remedy=\"the same command "
			"on these hosts, too\"",
			l->setup.members - absent, l->setup.members, str_borrow(&list),
			absent > ABSENT_SHOWN ? ",..." : "");
	str_done(&list);
}

void leader_tick(struct leader *l, int64_t now_ns)
{
	l->now_ns = now_ns;
	if (l->opened_ns == 0)
		l->opened_ns = now_ns;
	note_absent(l);
	vec_foreach(remote, &l->remotes) {
		if (!remote->silent && now_ns - remote->heard_ns > CLUSTER_QUIET_NS)
			silence(l, remote);
	}
	if (!l->urgent && now_ns < l->beat_ns)
		return;
	l->urgent = false;
	l->beat_ns = now_ns + CLUSTER_BEAT_NS;
	send_wanted(l, false, now_ns);
}

size_t leader_hosts(const struct leader *leader)
{
	return leader->remotes.cnt;
}

size_t leader_running(const struct leader *leader)
{
	size_t ret = 0;

	vec_foreach(remote, &leader->remotes)
		ret += !remote->ended && !remote->silent;
	return ret;
}

void leader_end(struct leader *leader)
{
	send_wanted(leader, true, leader->now_ns);
}

struct cluster_stats leader_stats(const struct leader *leader)
{
	return leader->stats;
}

static int subscribe(struct leader *l)
{
	static const struct {
		const char *subject;
		bus_handler *take;
	} subjects[] = {
		{ SUBJECT_ORDER, take_order },	   { SUBJECT_SLICES, take_slices },
		{ SUBJECT_PROFILE, take_profile }, { SUBJECT_REPORT, take_report },
		{ SUBJECT_ACCEPT, take_accept },   { SUBJECT_COST, take_cost },
		{ SUBJECT_REPLY, take_reply },
	};
	char subject[BUS_SUBJECT_MAX];
	int ret = 0;

	_Static_assert(ARRAY_SIZE(subjects) == ARRAY_SIZE(l->subs), "one entry for each");
	for (size_t i = 0; i < ARRAY_SIZE(subjects) && ret == 0; i++)
		ret = bus_sub(l->setup.local, subjects[i].subject, subjects[i].take, l,
			      &l->subs[i]);
	subject_write(subject, l->setup.job, "up", NULL);
	(void)snprintf(subject + strlen(subject), sizeof(subject) - strlen(subject), ".>");
	if (ret == 0)
		ret = bus_sub(l->setup.net, subject, take_up, l, &l->net_sub);
	return ret;
}

int leader_open(const struct cluster_setup *setup, struct leader **ret)
{
	struct leader *l = calloc(1, sizeof(*l));
	int r;

	if (l == NULL)
		return -ENOMEM;
	l->setup = *setup;
	l->epoch = (uint64_t)clock_wall_ns();
	subject_write(l->subject, setup->job, "down", NULL);
	r = subscribe(l);
	if (r < 0) {
		(void)leader_close(l);
		return r;
	}
	*ret = l;
	return 0;
}

struct leader *leader_close(struct leader *l)
{
	if (l == NULL)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(l->subs); i++)
		l->subs[i] = bus_unsub(l->setup.local, l->subs[i]);
	l->net_sub = bus_unsub(l->setup.net, l->net_sub);
	vec_foreach(remote, &l->remotes)
		remote_done(remote);
	vec_done(&l->remotes);
	vec_done(&l->asked);
	free(l);
	return NULL;
}
