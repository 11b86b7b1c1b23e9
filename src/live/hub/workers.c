/* SPDX-License-Identifier: Apache-2.0 */
/* What hostd says of each worker: its state, its end, and that a rank was started again. */
#include "base/log.h"
#include "base/str.h"
#include "live/hub/hub_parts.h"

#include <inttypes.h>
#include <string.h>

/* A worker that another one replaced may still have a place in the map. */
static struct wire_state *find_worker(const struct hub *hub, uint32_t worker)
{
	uint32_t i = idmap_get(&hub->places, worker);

	return i < hub->workers.cnt && hub->workers.data[i].worker == worker ? &hub->workers.data[i]
									     : NULL;
}

static int set_place(struct hub *hub, const struct wire_state *state)
{
	uint32_t i = (uint32_t)(state - hub->workers.data);
	int ret = idmap_set(&hub->places, state->worker, i);

	return ret == 0 && state->rank >= 0 ? idmap_set(&hub->ranks, (uint64_t)state->rank, i)
					    : ret;
}

/* Of a rank that one worker has; NULL: none, or the rank is unknown. */
static struct wire_state *find_rank(const struct hub *hub, int32_t rank)
{
	uint32_t i = rank >= 0 ? idmap_get(&hub->ranks, (uint64_t)rank) : IDMAP_NONE;

	return i < hub->workers.cnt && hub->workers.data[i].rank == rank ? &hub->workers.data[i]
									 : NULL;
}

/* The greatest step of the present life; except: a worker that does not count, 0: all do. */
static uint64_t greatest_step(const struct hub *hub, uint32_t except)
{
	uint64_t step = 0;

	vec_foreach(state, &hub->workers) {
		if (state->worker != except)
			step = MAX(step, state->step);
	}
	return step;
}

/* --- ends --- */

static void note_gone(struct hub *hub, const struct wire_state *state)
{
	if (state->raised[0] != '\0' && !hub->ending)
		log_line(LOG_WARNING, "event=worker-raised rank=%d pid=%u step=%" PRIu64 " what=%s",
			 state->rank, state->pid, state->step, state->raised);
	else if (!state->bye && !hub->ending)
		log_line(LOG_WARNING, "event=worker-gone rank=%d pid=%u step=%" PRIu64, state->rank,
			 state->pid, state->step);
	hub_lose_worker(hub, state->worker, "its process ended during the profile");
}

/* The exit status comes a moment after the end of the connection. */
static void log_exit(const struct hub *hub, const struct wire_state *state)
{
	struct str how = { 0 };

	if (hub->ending || !life_is_failure(state) || life_is_interrupt(state))
		return;
	life_append_how(state, &how);
	log_line(LOG_WARNING, "event=worker-exit rank=%d pid=%u step=%" PRIu64 " how=\"%s\"",
		 state->rank, state->pid, state->step, str_borrow(&how));
	str_done(&how);
}

/* known: the state before; NULL: none, or the rank has a new process already. */
static void note_end(struct hub *hub, const struct wire_state *state,
		     const struct wire_state *known)
{
	bool kept = lives_know(&hub->lives, state->worker);

	if (known != NULL ? known->phase != PHASE_GONE : !kept)
		note_gone(hub, state);
	/* A host repeats it for a while, also after the hub has forgotten the worker. */
	if (state->exit_known && (known != NULL ? !known->exit_known : kept) &&
	    !lives_know_exit(&hub->lives, state->worker))
		log_exit(hub, state);
	/* Ends that the user asked for are no failures. */
	if (kept || !hub->ending)
		lives_note_end(&hub->lives, state, greatest_step(hub, state->worker));
}

static void note_silent(struct hub *hub, const struct wire_state *state)
{
	if (!state->silent) {
		hub_lose_host(hub, state); /* the leader has said so */
		return;
	}
	log_line(LOG_WARNING, "event=hook-disabled rank=%d pid=%u step=%" PRIu64, state->rank,
		 state->pid, state->step);
	hub_lose_worker(hub, state->worker, "its hook has switched itself off");
}

/* --- restarts --- */

/* The ended process that a restarted rank replaces. */
static struct wire_state *find_predecessor(const struct hub *hub, int32_t rank)
{
	struct wire_state *known = find_rank(hub, rank);

	if (rank >= 0 && !hub->twice_logged)
		return known != NULL && known->phase == PHASE_GONE ? known : NULL;
	vec_foreach(state, &hub->workers) {
		if (state->rank == rank && state->phase == PHASE_GONE)
			return state;
	}
	return NULL;
}

static void log_restart(const struct hub *hub)
{
	const struct life *life = lives_latest_failed(&hub->lives);
	struct str why = { 0 };

	if (life == NULL)
		return;
	life_append_end(&life_first_failure(life)->state, &why);
	log_line(LOG_WARNING, "event=job-restarted restarts=%u step=%" PRIu64 " why=\"%s\"",
		 hub->lives.restarts, life->step, str_borrow(&why));
	keeper_event(hub->keeper, "restart", "at step %" PRIu64 ": %s", life->step,
		     str_borrow(&why));
	str_done(&why);
}

/* What was seen of the processes that ended says nothing of the new ones: these count from 0. */
static void forget_ended(struct hub *hub, uint64_t step)
{
	const struct jobstate_pace none = { 0 };
	size_t kept = 0;

	vec_foreach(state, &hub->workers) {
		if (state->phase != PHASE_GONE)
			hub->workers.data[kept++] = *state;
	}
	hub->workers.cnt = kept;
	vec_foreach(state, &hub->workers)
		(void)!set_place(hub, state); /* the map has room: it was as large before */
	hub->wheres.cnt = 0;
	hub->hang_step = 0;
	hub->slowdown = none;
	hub->accepted = false;
	doubt_drop(&hub->doubt);
	moment_end(&hub->moment);
	reference_drop(&hub->reference);
	checkup_forget(&hub->checkup); /* what was seen of the processes that ended */
	history_pace(&hub->history, false, &none, step);
	jobwatch_forget(&hub->watch);
}

/* Returns whether the predecessor was replaced in place. */
static bool replace(struct hub *hub, const struct wire_state *state)
{
	struct wire_state *ended = find_predecessor(hub, state->rank);
	unsigned restarts = hub->lives.restarts;
	uint64_t step;

	if (ended == NULL)
		return false;
	step = greatest_step(hub, 0);
	if (!lives_note_successor(&hub->lives, ended, state->arrival, step)) {
		*ended = *state;
		return set_place(hub, ended) == 0;
	}
	forget_ended(hub, step);
	if (hub->lives.restarts > restarts)
		log_restart(hub);
	return false;
}

/* --- all --- */

/* Two jobs with one id, or two ranks with one number: what is found of them is wrong. */
static void note_twice(struct hub *hub, const struct wire_state *state)
{
	const struct wire_state *known = find_rank(hub, state->rank);

	if (hub->twice_logged || !wire_is_watched(state) || known == NULL ||
	    !wire_is_watched(known) || known->bye)
		return;
	hub->twice_logged = true;
	log_line(LOG_WARNING,
		 "event=rank-twice rank=%d processes=\"%u on %s, %u on %s\" "
		 "remedy=\"give each job an id, and each process a rank, of its own\"",
		 state->rank, known->pid, known->host, state->pid, state->host);
}

static void take_new(struct hub *hub, struct wire_state *state)
{
	note_twice(hub, state);
	state->arrival = ++hub->arrivals;
	if (replace(hub, state) || hub->workers.cnt >= HUB_WORKER_MAX ||
	    vec_push(&hub->workers, *state) < 0)
		return; /* no memory: hostd repeats it in 100 ms */
	if (set_place(hub, &hub->workers.data[hub->workers.cnt - 1]) < 0)
		hub->workers.cnt--;
}

void hub_take_state(void *arg, const struct bus_message *message)
{
	struct hub *hub = arg;
	struct wire_state heard, *state = &heard, *known;
	bool learned;

	if (message->len != sizeof(heard))
		return;
	memcpy(&heard, message->data, sizeof(heard));
	known = find_worker(hub, state->worker);
	state->arrival = known != NULL ? known->arrival : 0;
	if (state->phase == PHASE_GONE) {
		bool is_old = known == NULL && lives_know(&hub->lives, state->worker);

		note_end(hub, state, known);
		if (is_old)
			return;
	}
	if (state->phase == PHASE_SILENT && (known == NULL || known->phase != PHASE_SILENT))
		note_silent(hub, state);
	if (known == NULL) {
		take_new(hub, state);
		return;
	}
	learned = known->rank != state->rank;
	*known = *state;
	if (learned)
		(void)!set_place(hub,
				 known); /* no memory: its rank is found with its next process */
}
