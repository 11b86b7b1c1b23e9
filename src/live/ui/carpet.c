/* SPDX-License-Identifier: Apache-2.0 */
#include "live/ui/carpet.h"

#include "base/clock.h"

#include <string.h>

#define COLUMN_NS NSEC_PER_SEC
#define BEHIND_NS (3 * NSEC_PER_SEC / 2)
#define BEHIND_STEPS 2u
#define SILENT_ITERATIONS 4
#define SILENT_COLUMNS 3

static const struct {
	const char *word;
	char letter;
} cells[] = {
	[CARPET_UNKNOWN] = { "not seen", ' ' },	   [CARPET_WATCHING] = { "watching", '.' },
	[CARPET_PROFILING] = { "profiling", 'p' }, [CARPET_LEARNING] = { "learning", 'l' },
	[CARPET_OFF] = { "not watched", 'o' },	   [CARPET_ENDED] = { "ended", 'e' },
	[CARPET_SLOW] = { "slow", 's' },	   [CARPET_BEHIND] = { "behind", 'r' },
	[CARPET_SILENT] = { "silent", 'q' },	   [CARPET_BLOCKED] = { "blocked", 'b' },
};

const char *carpet_word(enum carpet_cell cell)
{
	return cell < CARPET_CELL_CNT ? cells[cell].word : "";
}

char carpet_letter(enum carpet_cell cell)
{
	return cell < CARPET_CELL_CNT ? cells[cell].letter : ' ';
}

void carpet_ranks(const struct carpet *carpet, size_t row, int32_t *ret_first, int32_t *ret_last)
{
	int64_t world = carpet->world_size, cnt = (int64_t)carpet->row_cnt;

	*ret_first = (int32_t)(((int64_t)row * world + cnt - 1) / cnt);
	*ret_last = (int32_t)((((int64_t)row + 1) * world + cnt - 1) / cnt - 1);
}

static size_t row_of(const struct carpet *carpet, int32_t rank)
{
	return (size_t)((int64_t)rank * (int64_t)carpet->row_cnt / carpet->world_size);
}

static enum carpet_cell cell_of(uint32_t phase)
{
	static const uint8_t of_phase[] = {
		[PHASE_LEARNING] = CARPET_LEARNING,   [PHASE_STEADY] = CARPET_WATCHING,
		[PHASE_SLOW] = CARPET_SLOW,	      [PHASE_BLOCKED] = CARPET_BLOCKED,
		[PHASE_PROFILING] = CARPET_PROFILING, [PHASE_GONE] = CARPET_ENDED,
		[PHASE_SILENT] = CARPET_OFF,
	};

	return phase < ARRAY_SIZE(of_phase) ? (enum carpet_cell)of_phase[phase] : CARPET_UNKNOWN;
}

/* Only ranks that are expected to move can be behind or silent. */
static bool moves(const struct wire_state *state)
{
	return state->phase == PHASE_STEADY || state->phase == PHASE_SLOW;
}

static void merge_pairs(struct carpet *carpet)
{
	size_t cnt = (carpet->column_cnt + 1) / 2;

	for (size_t i = 0; i < carpet->row_cnt; i++) {
		uint8_t *row = carpet->rows[i].cells;

		for (size_t k = 0; k < cnt; k++)
			row[k] = 2 * k + 1 < carpet->column_cnt ? MAX(row[2 * k], row[2 * k + 1])
								: row[2 * k];
		memset(row + cnt, CARPET_UNKNOWN, CARPET_COLUMNS_MAX - cnt);
	}
	carpet->column_cnt = cnt;
	carpet->column_ns *= 2;
}

/* The column of this moment; seconds in which the hub said nothing stay unknown. */
static void go_on(struct carpet *carpet, int64_t mono_ns)
{
	while (mono_ns >= carpet->column_end_ns) {
		if (carpet->column_cnt == CARPET_COLUMNS_MAX)
			merge_pairs(carpet);
		carpet->column_cnt++;
		carpet->column_end_ns += carpet->column_ns;
	}
}

static void begin(struct carpet *carpet, int32_t world_size, int64_t mono_ns, int64_t wall_ns)
{
	memset(carpet, 0, sizeof(*carpet));
	carpet->world_size = world_size;
	carpet->row_cnt = MIN((size_t)world_size, (size_t)CARPET_ROWS_MAX);
	carpet->begin_ns = wall_ns;
	carpet->column_ns = COLUMN_NS;
	carpet->column_end_ns = mono_ns;
	for (size_t i = 0; i < carpet->row_cnt; i++)
		carpet->rows[i].moved_ns = mono_ns;
}

static void note_cell(struct carpet *carpet, size_t row, enum carpet_cell cell)
{
	uint8_t *at = &carpet->rows[row].cells[carpet->column_cnt - 1];

	*at = (uint8_t)MAX(*at, (uint8_t)cell);
}

static bool is_behind(const struct wire_state *state, uint64_t first)
{
	uint64_t steps = first > state->step ? first - state->step : 0;

	return steps >= BEHIND_STEPS && state->iteration_ns > 0 &&
	       (int64_t)MIN(steps, (uint64_t)1 << 20) * state->iteration_ns >= BEHIND_NS;
}

/* least[row]: of its ranks that move; UINT64_MAX: none. */
static void note_silence(struct carpet *carpet, const uint64_t *least, const int64_t *longest_ns,
			 int64_t mono_ns)
{
	for (size_t i = 0; i < carpet->row_cnt; i++) {
		struct carpet_row *row = &carpet->rows[i];

		if (least[i] == UINT64_MAX || least[i] != row->step) {
			row->step = least[i];
			row->moved_ns = mono_ns;
		}
		if (least[i] != UINT64_MAX && longest_ns[i] > 0 &&
		    mono_ns - row->moved_ns >
			    MAX(SILENT_COLUMNS * COLUMN_NS, SILENT_ITERATIONS * longest_ns[i]))
			note_cell(carpet, i, CARPET_SILENT);
	}
}

static void note_states(struct carpet *carpet, const struct wire_state *states, size_t cnt,
			int64_t mono_ns)
{
	uint64_t least[CARPET_ROWS_MAX], first = 0;
	int64_t longest_ns[CARPET_ROWS_MAX] = { 0 };

	memset(least, 0xff, sizeof(least));
	for (size_t i = 0; i < cnt; i++)
		first = moves(&states[i]) ? MAX(first, states[i].step) : first;
	for (size_t i = 0; i < cnt; i++) {
		const struct wire_state *state = &states[i];
		size_t row;

		if (state->rank < 0 || state->rank >= carpet->world_size)
			continue;
		row = row_of(carpet, state->rank);
		note_cell(carpet, row, cell_of(state->phase));
		if (!moves(state))
			continue;
		if (is_behind(state, first))
			note_cell(carpet, row, CARPET_BEHIND);
		least[row] = MIN(least[row], state->step);
		longest_ns[row] = MAX(longest_ns[row], state->iteration_ns);
	}
	note_silence(carpet, least, longest_ns, mono_ns);
}

void carpet_note(struct carpet *carpet, const struct wire_state *states, size_t cnt,
		 int64_t mono_ns, int64_t wall_ns)
{
	int32_t world_size = 0;

	for (size_t i = 0; i < cnt; i++)
		world_size = MAX(world_size, states[i].world_size);
	if (world_size <= 0)
		return;
	if (world_size != carpet->world_size)
		begin(carpet, world_size, mono_ns, wall_ns);
	go_on(carpet, mono_ns);
	note_states(carpet, states, cnt, mono_ns);
}
