/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the leader that knows which results hosts still keep. Each is passed to the hub once; the
 * leader acknowledges it to its host when the hub has committed the window. Results of a window that an earlier hub
 * ordered go to the hub as such.
 */
#include "base/log.h"
#include "live/cluster/leader_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#define HELD_MAX 524288u
#define NUMBERS_MAX 1024u /* in one message */

/* --- what is known --- */

static uint64_t key_of(const struct held *held)
{
	const uint64_t parts[] = { held->remote, held->spool, held->number };

	return XXH3_64bits(parts, sizeof(parts));
}

static struct held *find_held(struct leader *l, const struct held *like)
{
	uint32_t i = idmap_get(&l->held_places, key_of(like));
	struct held *held = i < l->held.cnt ? &l->held.data[i] : NULL;

	return held != NULL && held->remote == like->remote && held->spool == like->spool &&
			       held->number == like->number
		       ? held
		       : NULL;
}

/* Returns 0 or -ENOMEM. */
static int add_held(struct leader *l, const struct held *held)
{
	int ret = vec_push(&l->held, *held);

	if (ret < 0)
		return ret;
	ret = idmap_set(&l->held_places, key_of(held), (uint32_t)l->held.cnt - 1);
	l->held.cnt -= ret < 0;
	return ret;
}

static bool is_committed(const struct leader *l, uint64_t epoch, uint64_t order)
{
	for (size_t i = 0; i < LEADER_COMMITTED; i++) {
		if (l->committed[i].epoch == epoch && l->committed[i].order == order)
			return epoch != 0;
	}
	return false;
}

static void tell(struct leader *l, size_t remote, uint64_t spool, uint64_t *numbers, size_t cnt)
{
	Cluster__Down down;
	Cluster__Committed committed, *pointers[] = { &committed };

	cluster__down__init(&down);
	cluster__committed__init(&committed);
	committed.spool = spool;
	committed.numbers = numbers;
	committed.n_numbers = cnt;
	down.committed = pointers;
	down.n_committed = 1;
	leader_send_to(l, &l->remotes.data[remote], &down);
}

/* Those that are committed make room: one that a host sends again after that counts as late. */
static void make_room(struct leader *l)
{
	__typeof__(l->held) all = l->held;

	if (l->held.cnt < HELD_MAX)
		return;
	memset(&l->held, 0, sizeof(l->held));
	idmap_done(&l->held_places);
	vec_foreach(held, &all) {
		if (!held->committed && add_held(l, held) < 0)
			l->stats.dropped++;
	}
	vec_done(&all);
}

bool leader_is_new(struct leader *l, struct remote *remote, const Cluster__Answer *answer)
{
	const Cluster__Result *result = answer->result;
	struct held fresh;
	const struct held *known;

	if (result == NULL || result->spool == 0)
		return true; /* in no spool: it came once */
	fresh = (struct held){ .remote = (size_t)(remote - l->remotes.data),
			       .spool = result->spool,
			       .number = result->number,
			       .epoch = result->epoch,
			       .order = answer->order };
	known = find_held(l, &fresh);
	if (known != NULL) {
		if (known->committed)
			tell(l, fresh.remote, fresh.spool, &fresh.number, 1);
		return false;
	}
	make_room(l);
	/* A rank that has missed a window adds nothing to one that is reported. */
	fresh.committed =
		answer->outcome != OUTCOME_SUMMARIZED && is_committed(l, fresh.epoch, fresh.order);
	if (fresh.committed)
		tell(l, fresh.remote, fresh.spool, &fresh.number, 1);
	if (l->held.cnt >= HELD_MAX || add_held(l, &fresh) < 0)
		l->stats.dropped++; /* the host sends it to the next leader */
	return !fresh.committed;
}

/* --- the hub has committed a window --- */

static int by_spool(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	if (x->remote != y->remote)
		return x->remote < y->remote ? -1 : 1;
	if (x->spool != y->spool)
		return x->spool < y->spool ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* Acknowledges to each host at once its results of the window. */
static void tell_hosts(struct leader *l, const struct held *sorted, size_t cnt)
{
	uint64_t numbers[NUMBERS_MAX];
	size_t filled = 0;

	for (size_t i = 0; i < cnt; i++) {
		numbers[filled++] = sorted[i].number;
		if (i + 1 < cnt && filled < NUMBERS_MAX &&
		    sorted[i + 1].remote == sorted[i].remote &&
		    sorted[i + 1].spool == sorted[i].spool)
			continue;
		tell(l, sorted[i].remote, sorted[i].spool, numbers, filled);
		filled = 0;
	}
}

void leader_take_committed(void *arg, const struct bus_message *message)
{
	struct leader *l = arg;
	const struct wire_committed *window = message->data;
	VEC(struct held) of_window = { 0 };

	if (message->len != sizeof(*window))
		return;
	if (!is_committed(l, window->epoch, window->order_id))
		l->committed[l->committed_cnt++ % LEADER_COMMITTED] =
			(struct leader_window){ window->epoch, window->order_id };
	vec_foreach(held, &l->held) {
		if (held->committed || held->epoch != window->epoch ||
		    held->order != window->order_id)
			continue;
		held->committed = true;
		(void)!vec_push(&of_window, *held); /* no memory: said when it comes again */
	}
	if (of_window.cnt > 0)
		qsort(of_window.data, of_window.cnt, sizeof(*of_window.data), by_spool);
	tell_hosts(l, of_window.data, of_window.cnt);
	vec_done(&of_window);
}

/* --- windows of an earlier hub --- */

/* A daemon that was started again has other workers than those that the answer is of. */
static bool has_worker(const struct remote *remote, uint32_t worker)
{
	uint32_t id = remote->slot * WIRE_OWN_WORKERS + worker;

	vec_foreach(state, &remote->states) {
		if (state->worker == id)
			return true;
	}
	return false;
}

bool leader_is_of_earlier(const struct leader *l, const struct remote *remote,
			  const Cluster__Answer *answer)
{
	return answer->result != NULL && answer->result->epoch != 0 &&
	       (answer->result->epoch != l->epoch || !has_worker(remote, answer->worker));
}

static int save(const struct leader *l, struct remote *remote, const Cluster__Answer *from,
		char *path, size_t size, struct err *err)
{
	int len = snprintf(path, size, "%s/fingerprints", l->setup.out_dir);

	if (len > 0 && (size_t)len < size && from->result->epoch != l->epoch)
		len += snprintf(path + len, size - (size_t)len, "/%" PRIu64 "-%" PRIu64,
				from->result->epoch, from->order);
	else if (len > 0 && (size_t)len < size)
		len += snprintf(path + len, size - (size_t)len, "/%" PRIu64, from->order);

	(void)mkdir(path, 0755); /* other errors than EEXIST show when the file is written */
	if (len > 0 && (size_t)len < size)
		(void)snprintf(path + len, size - (size_t)len, "/rank%d.ptfp", from->result->rank);
	return remote_save_file(remote, from->worker, from->order, path, err);
}

bool leader_pass_earlier(struct leader *l, struct remote *remote, const Cluster__Answer *from)
{
	struct wire_result result = { .epoch = from->result->epoch,
				      .order_id = from->order,
				      .rank = from->result->rank,
				      .outcome = from->outcome };
	struct err err = { "" };

	if (from->outcome != OUTCOME_SUMMARIZED && from->outcome != OUTCOME_MISSED)
		return from->outcome < OUTCOME_SUMMARIZED; /* a part of the way: no news now */
	convert_window_in(from->result->window, &result.window);
	(void)snprintf(result.text, sizeof(result.text), "%.500s", from->text);
	if (from->outcome == OUTCOME_SUMMARIZED &&
	    save(l, remote, from, result.text, sizeof(result.text), &err) < 0) {
		result.outcome = OUTCOME_MISSED;
		(void)snprintf(result.text, sizeof(result.text), "%.500s", err.text);
	}
	(void)bus_pub(l->setup.local, SUBJECT_RESULT, &result, sizeof(result));
	return true;
}

/* A measurement that an earlier hub began is not continued. */
void leader_note_late_cost(struct leader *l, const struct remote *remote)
{
	if (l->stats.late++ == 0)
		log_line(LOG_INFO,
			 "event=costs-dropped host=\"%s\" why=\"an earlier hub has ordered their "
			 "measurement\"",
			 remote->host);
}

/* --- what hosts keep, for `perftracker status` --- */

void leader_publish_spools(struct leader *l)
{
	struct wire_spools sum = { 0 };

	vec_foreach(remote, &l->remotes) {
		sum.waiting += remote->spools.waiting;
		sum.bytes += remote->spools.bytes;
		sum.dropped += remote->spools.dropped;
	}
	(void)bus_pub(l->setup.local, SUBJECT_SPOOLS, &sum, sizeof(sum));
}
