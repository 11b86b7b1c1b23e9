/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "live/cluster/leader_parts.h"
#include "live/cluster/subject.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ORDER_LASTS_NS (60 * NSEC_PER_SEC) /* an order is repeated for so long */
#define ABSENT_SHOWN 16u

/* --- to the network --- */

void leader_send(struct leader *l, const char *subject, Cluster__Down *down)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t len;

	down->version = CLUSTER_VERSION;
	down->epoch = l->epoch;
	down->host = (char *)(uintptr_t)l->setup.host;
	down->out = (char *)(uintptr_t)l->setup.out_dir;
	down->program = (char *)(uintptr_t)PT_VERSION;
	down->commits = true;
	down->sequence = ++l->sequence;
	down->sent_wall_ns = clock_wall_ns();
	len = cluster__down__get_packed_size(down);
	bytes = malloc(len + SEAL_BYTES);
	if (bytes == NULL)
		return; /* it is repeated */
	(void)cluster__down__pack(down, bytes);
	if (l->setup.seal != NULL) {
		if (seal_add(l->setup.seal, subject, bytes, len) < 0)
			return;
		len += SEAL_BYTES;
	}
	if (bus_pub(l->setup.net, subject, bytes, len) == 0)
		l->stats.sent++;
}

void leader_send_to(struct leader *l, const struct remote *remote, Cluster__Down *down)
{
	char subject[BUS_SUBJECT_MAX];
	size_t len;

	subject_write(subject, l->setup.job, "to", NULL);
	len = strlen(subject);
	/* The id is a part of a subject already. */
	(void)snprintf(subject + len, sizeof(subject) - len, ".%s", remote->id);
	leader_send(l, subject, down);
}

static void send_wanted(struct leader *l, bool ended, int64_t now_ns)
{
	Cluster__Down down;
	Cluster__Order order;
	Cluster__Window window;
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
	down.collect = l->collecting.until_ns != 0 ? l->collecting.id : 0;
	if (wanted->order.id != 0 && now_ns - wanted->order_ns < ORDER_LASTS_NS) {
		convert_order_out(&wanted->order, &window, &order);
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
	leader_send(l, l->subject, &down);
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
		leader_send_to(l, remote, &down);
		l->asked.data[i] = l->asked.data[--l->asked.cnt];
		return;
	}
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
			leader_silence(l, remote);
	}
	leader_mind_collect(l);
	if (!l->urgent && now_ns < l->beat_ns)
		return;
	l->urgent = false;
	l->beat_ns = now_ns + CLUSTER_BEAT_NS;
	send_wanted(l, false, now_ns);
	leader_publish_spools(l);
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

struct leader_ends leader_ends(const struct leader *leader)
{
	struct leader_ends ret = { .hosts = leader->remotes.cnt };

	vec_foreach(remote, &leader->remotes) {
		ret.ended += remote->ended;
		ret.silent += remote->silent && !remote->ended;
		if (remote->ended && remote->exit_status > 0)
			ret.exit_status = MAX(ret.exit_status, remote->exit_status);
		else if (remote->ended && remote->exit_status < 0 && ret.exit_status == 0)
			ret.exit_status = -1;
	}
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
		{ SUBJECT_ORDER, take_order },
		{ SUBJECT_SLICES, take_slices },
		{ SUBJECT_PROFILE, take_profile },
		{ SUBJECT_REPORT, take_report },
		{ SUBJECT_ACCEPT, take_accept },
		{ SUBJECT_COST, take_cost },
		{ SUBJECT_REPLY, take_reply },
		{ SUBJECT_COLLECT, leader_take_collect },
		{ SUBJECT_COMMITTED, leader_take_committed },
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
		ret = bus_sub(l->setup.net, subject, leader_take_up, l, &l->net_sub);
	return ret;
}

int leader_open(const struct cluster_setup *setup, struct leader **ret)
{
	struct leader *l = calloc(1, sizeof(*l));
	int r;

	if (l == NULL)
		return -ENOMEM;
	l->setup = *setup;
	l->epoch = setup->epoch != 0 ? setup->epoch : (uint64_t)clock_wall_ns();
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
	idmap_done(&l->places);
	vec_done(&l->asked);
	vec_done(&l->held);
	idmap_done(&l->held_places);
	free(l);
	return NULL;
}
