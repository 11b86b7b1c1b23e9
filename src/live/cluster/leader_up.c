/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the leader that takes what followers say and publishes it on its own bus. */
#include "base/clock.h"
#include "base/log.h"
#include "live/cluster/leader_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#define HOSTS_MAX 32767u /* slots above WIRE_OWN_WORKERS in a worker's id */
#define ASKS_MAX 64u
#define ACK_EVERY_NS (5 * NSEC_PER_SEC)
#define ITEM_ROOM (64u << 10)	     /* more than any message to the hub has */
#define SECOND_NS (3 * NSEC_PER_SEC) /* two daemons with one id speak within this time */

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
	leader_send_to(l, remote, &down);
}

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

	if (!leader_is_new(l, remote, from))
		return true;
	if (leader_is_of_earlier(l, remote, from))
		return leader_pass_earlier(l, remote, from);
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
	bool ret;

	if (from->epoch != 0 && from->epoch != l->epoch) {
		leader_note_late_cost(l, remote);
		return true;
	}
	ret = convert_slices_cost_in(from, &how, &cost);

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
	remote->exit_status = end->exit_status;
	log_line(LOG_INFO, "event=host-ended host=\"%s\" exit_status=%d signal=%d", remote->host,
		 end->exit_status, end->signal);
}

static bool take_piece(struct leader *l, struct remote *remote, const Cluster__Piece *piece)
{
	if (remote_add_piece(remote, piece) < 0)
		return false;
	return piece->name[0] == '\0' || remote->file.got < remote->file.size ||
	       leader_keep_recorder(l, remote, piece->name);
}

static void pass_item(struct leader *l, struct remote *remote, const Cluster__Item *item)
{
	bool valid = true;

	if (item->piece != NULL)
		valid = take_piece(l, remote, item->piece);
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
	else if (item->saved != NULL)
		leader_take_saved(l, remote, item->saved);
	/* else: of a later version */
	l->stats.refused += !valid;
}

/* Of an item becomes a message at most; what finds no room is not acknowledged, and comes again. */
static bool has_room(const struct leader *l)
{
	struct bus_stats stats = bus_stats(l->setup.local);

	return stats.pending_cnt < BUS_PENDING_CNT &&
	       stats.pending_bytes + ITEM_ROOM <= BUS_PENDING_BYTES;
}

/* Items that are not the next one have been taken, or come again. */
static void take_items(struct leader *l, struct remote *remote, const Cluster__Up *up)
{
	for (size_t i = 0; i < up->n_items; i++) {
		if (up->items[i]->number != remote->next)
			continue;
		if (!has_room(l))
			break;
		remote->next++;
		pass_item(l, remote, up->items[i]);
	}
	remote->ack_due |= up->n_items > 0;
}

static uint64_t hash_of(const char *id)
{
	return XXH3_64bits(id, strlen(id));
}

/* NULL: too many hosts, or no memory. */
static struct remote *add_remote(struct leader *l, const char *id)
{
	struct remote remote = { .boot = 0 };

	if (strlen(id) >= sizeof(remote.id) || l->remotes.cnt >= HOSTS_MAX)
		return NULL; /* no follower has such an id */
	memcpy(remote.id, id, strlen(id) + 1);
	if (vec_push(&l->remotes, remote) < 0)
		return NULL;
	if (idmap_set(&l->places, hash_of(id), (uint32_t)l->remotes.cnt - 1) < 0) {
		l->remotes.cnt--;
		return NULL;
	}
	return &l->remotes.data[l->remotes.cnt - 1];
}

static void publish_phase(struct leader *l, struct remote *remote, enum wire_phase phase)
{
	vec_foreach(state, &remote->states) {
		if (!wire_is_watched(state))
			continue;
		state->phase = phase;
		state->kept = (uint32_t)MIN(remote->spools.waiting, UINT32_MAX);
		publish(l, SUBJECT_STATE, state, sizeof(*state));
	}
}

/* What is silent may be well: nothing is known. */
void leader_silence(struct leader *l, struct remote *remote)
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

	uint32_t i = idmap_get(&l->places, hash_of(id));

	if (i == IDMAP_NONE)
		return add_remote(l, id);
	/* Two ids with one hash, which chance does not make: the second one is refused. */
	return strcmp(l->remotes.data[i].id, id) == 0 ? &l->remotes.data[i] : NULL;
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

/* The processes of an earlier daemon of this host have ended with it, unless it says that they run on. */
static void meet(struct leader *l, struct remote *remote, const Cluster__Up *up)
{
	remote->spools.waiting = up->spool != NULL ? up->spool->waiting : 0;
	publish_phase(l, remote, up->again ? PHASE_SILENT : PHASE_GONE);
	remote_begin(remote, up);
	remote->slot = ++l->last_slot;
	log_line(LOG_INFO, "event=host-joined host=\"%s\" node_rank=%u hosts=%zu", remote->host,
		 up->node_rank, l->remotes.cnt + !l->setup.no_workers);
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
	if (up->spool != NULL)
		remote->spools = (struct wire_spools){ .waiting = up->spool->waiting,
						       .bytes = up->spool->bytes,
						       .dropped = up->spool->dropped };
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

void leader_take_up(void *arg, const struct bus_message *message)
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
