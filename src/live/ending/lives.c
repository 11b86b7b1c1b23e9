/* SPDX-License-Identifier: Apache-2.0 */
#include "live/ending/lives.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define INTERRUPT "KeyboardInterrupt"

void life_append_signal(int number, struct str *out)
{
	static const struct {
		int number;
		const char *name;
	} names[] = {
		{ SIGHUP, "SIGHUP" },	{ SIGINT, "SIGINT" },	{ SIGQUIT, "SIGQUIT" },
		{ SIGILL, "SIGILL" },	{ SIGTRAP, "SIGTRAP" }, { SIGABRT, "SIGABRT" },
		{ SIGBUS, "SIGBUS" },	{ SIGFPE, "SIGFPE" },	{ SIGKILL, "SIGKILL" },
		{ SIGSEGV, "SIGSEGV" }, { SIGPIPE, "SIGPIPE" }, { SIGTERM, "SIGTERM" },
		{ SIGXCPU, "SIGXCPU" }, { SIGSYS, "SIGSYS" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (names[i].number == number) {
			str_append(out, names[i].name);
			return;
		}
	}
	str_printf(out, "signal %d", number);
}

/* --- how one worker ended --- */

bool life_is_failure(const struct wire_state *state)
{
	if (state->exit_known != 0)
		return state->exit_status != 0;
	return state->raised[0] != '\0' || state->bye == 0;
}

bool life_is_interrupt(const struct wire_state *state)
{
	bool by_signal = state->exit_known != 0 && WIFSIGNALED(state->exit_status) &&
			 WTERMSIG(state->exit_status) == SIGINT;

	return by_signal || strcmp(state->raised, INTERRUPT) == 0;
}

void life_append_how(const struct wire_state *state, struct str *out)
{
	bool known = state->exit_known != 0;

	if (known && WIFSIGNALED(state->exit_status)) {
		str_append(out, "by ");
		life_append_signal(WTERMSIG(state->exit_status), out);
	} else if (state->raised[0] != '\0' && life_is_failure(state)) {
		str_printf(out, "by %s", state->raised);
	} else if (known) {
		str_printf(out, "with exit code %d", WEXITSTATUS(state->exit_status));
	} else {
		str_append(out, state->bye != 0 ? "by itself" : "without notice");
	}
}

void life_append_end(const struct wire_state *state, struct str *out)
{
	str_printf(out, "rank %d (pid %u) ended at step %" PRIu64 " ", state->rank, state->pid,
		   state->step);
	life_append_how(state, out);
}

/* --- a life --- */

const struct life_end *life_first(const struct life *life)
{
	return life->cnt > 0 ? &life->ends[0] : NULL;
}

static bool is_abort(const struct wire_state *state)
{
	return state->exit_known != 0 && WIFSIGNALED(state->exit_status) &&
	       WTERMSIG(state->exit_status) == SIGABRT;
}

const struct life_end *life_first_failure(const struct life *life)
{
	const struct life_end *abort = NULL;

	for (size_t i = 0; i < life->cnt; i++) {
		const struct wire_state *state = &life->ends[i].state;

		if (!life_is_failure(state))
			continue;
		if (abort == NULL && is_abort(state))
			abort = &life->ends[i];
		else if (abort == NULL || state->raised[0] != '\0')
			return &life->ends[i];
	}
	return abort;
}

bool life_is_interrupted(const struct life *life)
{
	size_t failures = 0, interrupts = 0;

	for (size_t i = 0; i < life->cnt; i++) {
		failures += life_is_failure(&life->ends[i].state);
		interrupts += life_is_interrupt(&life->ends[i].state);
	}
	return interrupts > 0 && 2 * interrupts >= failures;
}

/* --- all --- */

const struct life *lives_present(const struct lives *lives)
{
	return &lives->all[lives->earlier_cnt];
}

const struct life *lives_latest_failed(const struct lives *lives)
{
	for (size_t i = lives->earlier_cnt; i > 0; i--) {
		if (lives->all[i - 1].failed)
			return &lives->all[i - 1];
	}
	return NULL;
}

static struct life_end *find_end(struct lives *lives, uint32_t worker)
{
	for (size_t i = 0; i <= lives->earlier_cnt; i++) {
		for (size_t k = 0; k < lives->all[i].cnt; k++) {
			if (lives->all[i].ends[k].state.worker == worker)
				return &lives->all[i].ends[k];
		}
	}
	return NULL;
}

bool lives_know(struct lives *lives, uint32_t worker)
{
	return find_end(lives, worker) != NULL;
}

bool lives_know_exit(struct lives *lives, uint32_t worker)
{
	const struct life_end *end = find_end(lives, worker);

	return end != NULL && end->state.exit_known != 0;
}

bool lives_ended_well(const struct lives *lives)
{
	const struct life *now = lives_present(lives);

	return now->cnt > 0 && now->cnt < LIFE_ENDS_MAX && life_first_failure(now) == NULL;
}

void lives_note_end(struct lives *lives, const struct wire_state *state, uint64_t others_step)
{
	struct life *now = &lives->all[lives->earlier_cnt];
	struct life_end *known = find_end(lives, state->worker);

	if (known != NULL)
		known->state = *state;
	else if (now->cnt < LIFE_ENDS_MAX)
		now->ends[now->cnt++] = (struct life_end){ *state, others_step };
}

/* A launcher may have ended it: by SIGTERM, SIGKILL or, as Ray does, an exit() without Python's end. */
static bool may_be_ended(const struct wire_state *state)
{
	int status = state->exit_status;

	if (state->exit_known == 0 || state->raised[0] != '\0')
		return false;
	return status == SIGTERM || status == SIGKILL || (WIFEXITED(status) && state->bye == 0);
}

static bool ended_alike(const struct life *life)
{
	for (size_t i = 1; i < life->cnt; i++) {
		if (life->ends[i].state.exit_known == 0 ||
		    life->ends[i].state.exit_status != life->ends[0].state.exit_status)
			return false;
	}
	return life->cnt > 1 || life->ends[0].state.exit_status != SIGKILL;
}

/*
 * Launchers end the processes of a program that is done before they start the next one, all in the
 * same way. After a failure they end the others by SIGTERM.
 */
static bool has_failed(const struct life *life)
{
	bool ended = false;

	for (size_t i = 0; i < life->cnt; i++) {
		const struct wire_state *state = &life->ends[i].state;

		if (!life_is_failure(state))
			continue;
		if (!may_be_ended(state))
			return true;
		ended |= state->exit_status != SIGTERM;
	}
	return ended && !ended_alike(life);
}

/* Beyond the limit the life before the last one makes way. */
static void begin_life(struct lives *lives, uint32_t arrival)
{
	if (lives->earlier_cnt + 1 < LIVES_MAX)
		lives->earlier_cnt++;
	else
		lives->all[LIVES_MAX - 2] = lives->all[LIVES_MAX - 1];
	lives->all[lives->earlier_cnt] = (struct life){ .first_arrival = arrival };
}

bool lives_note_successor(struct lives *lives, const struct wire_state *ended, uint32_t arrival,
			  uint64_t step)
{
	struct life *now = &lives->all[lives->earlier_cnt];

	if (ended->arrival < now->first_arrival)
		return false; /* another rank has begun the present life */
	now->step = step;
	now->failed = has_failed(now);
	lives->restarts += now->failed;
	begin_life(lives, arrival);
	return true;
}
