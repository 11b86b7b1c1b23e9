/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions: for each worker a bit per entry, whether it has it; then the columns. A
 * row of a column is a number or, as one bit, that the number is the expected one
 * (predict()): most functions hold the path for as long as they run, and do the same
 * on all workers of a host.
 */
#include "center/wire/fpwire_walk.h"

#include <errno.h>
#include <string.h>

static void write_presence(struct wire *w, const struct fpwire *m, const struct fpwire_worker *x)
{
	size_t row = x->first;

	for (size_t base = 0; base < m->entries.cnt; base += 8) {
		uint8_t bits = 0;

		for (; row < x->first + x->cnt && m->entry_of.data[row] < base + 8; row++)
			bits |= (uint8_t)(1u << (m->entry_of.data[row] - base));
		wire_byte(w, &bits);
	}
}

static void read_presence(struct wire *w, struct fpwire *m, struct fpwire_worker *x)
{
	x->first = m->entry_of.cnt;
	for (size_t base = 0; base < m->entries.cnt && w->error == 0; base += 8) {
		uint8_t bits = 0;

		wire_byte(w, &bits);
		if (base + 8 > m->entries.cnt && bits >> (m->entries.cnt - base) != 0)
			wire_fail(w, "no function behind the last", bits);
		for (; bits != 0 && w->error == 0; bits &= (uint8_t)(bits - 1)) {
			uint32_t entry = (uint32_t)base + (uint32_t)__builtin_ctz(bits);

			if (vec_push(&m->entry_of, entry) < 0)
				w->error = -ENOMEM;
		}
	}
	x->cnt = m->entry_of.cnt - x->first;
}

/* Which functions each worker has. */
void wire_presence(struct wire *w, struct fpwire *m)
{
	vec_foreach(x, &m->workers) {
		if (wire_reads(w))
			read_presence(w, m, x);
		else
			write_presence(w, m, x);
	}
}

/*
 * Largest codes, whether a number may be absent, and how far from the expected one it
 * may be, in codes, to be taken for it. total_ns is shown in reports and never compared.
 */
static const struct {
	uint16_t top, slack;
	bool may_lack;
} columns[FPWIRE_COLUMN_CNT] = {
	[FPWIRE_SHARE] = { CODE16_TOP, 0, false },	[FPWIRE_BETA] = { CODE16_ONE, 1, false },
	[FPWIRE_TOTAL] = { CODE16_TOP, 4, false },	[FPWIRE_THREAD] = { CODE16_TOP, 1, false },
	[FPWIRE_MU] = { CODE16_ONE, 0, true },		[FPWIRE_SIGMA] = { CODE16_ONE, 0, true },
	[FPWIRE_EXECUTIONS] = { CODE16_TOP, 0, false }, [FPWIRE_ELEMENTS] = { CODE16_TOP, 0, true },
	[FPWIRE_BYTES] = { CODE16_TOP, 0, true },
};

/* What a column expects, from the rows before and the columns before. */
struct predictor {
	const struct fpwire *m;
	enum fpwire_column column;
	uint16_t *last;		    /* by entry: the latest worker's */
	bool off_thread[CLASS_CNT]; /* functions of the class are not on the training thread */
	int64_t window_ns;	    /* of the worker at hand */
};

static uint16_t predict(const struct predictor *p, size_t row, uint32_t entry)
{
	uint16_t share = p->m->columns[FPWIRE_SHARE].data[row];

	switch (p->column) {
	case FPWIRE_BETA:
		return (uint16_t)MIN(
			code16_of_frac((double)code16_ns(share) / (double)p->window_ns),
			(uint16_t)CODE16_ONE);
	case FPWIRE_TOTAL:
		return share;
	case FPWIRE_THREAD:
		return p->off_thread[p->m->entries.data[entry].class] ? 0 : share;
	case FPWIRE_SIGMA:
		return p->m->columns[FPWIRE_MU].data[row] == CODE16_ABSENT ? CODE16_ABSENT : 0;
	case FPWIRE_SHARE:
	case FPWIRE_MU:
	case FPWIRE_EXECUTIONS:
	case FPWIRE_ELEMENTS:
	case FPWIRE_BYTES:
	case FPWIRE_COLUMN_CNT:
		break;
	}
	return p->last[entry];
}

static void learn(struct predictor *p, uint32_t entry, uint16_t code)
{
	if (p->column == FPWIRE_THREAD)
		p->off_thread[p->m->entries.data[entry].class] = code == 0;
	/* A utilization is never the same twice; only its absence predicts the next code. */
	if (p->column != FPWIRE_MU || code == CODE16_ABSENT)
		p->last[entry] = code;
}

static bool is_set(const uint8_t *bits, size_t row)
{
	return (bits[row / 8] >> row % 8 & 1) != 0;
}

/* How a column is stored. */
enum column_mode { COLUMN_EXPECTED, COLUMN_MIXED, COLUMN_GIVEN };

static void start_column(struct predictor *p, struct fpwire *m)
{
	uint16_t none = columns[p->column].may_lack ? CODE16_ABSENT : 0;

	for (size_t i = 0; i < m->entries.cnt; i++)
		m->last.data[i] = none;
	p->last = m->last.data;
	memset(p->off_thread, 0, sizeof(p->off_thread));
}

/* Whether a number is not the expected one; near enough, and it becomes that. */
static bool is_surprise(const struct predictor *p, uint16_t expected, uint16_t *code)
{
	/* Zero is no time at all, which is more than a little less. */
	if (*code != 0 && expected != 0 && abs(*code - expected) <= columns[p->column].slack)
		*code = expected;
	return *code != expected;
}

/* Sets a bit for each row that is not as expected. Returns their number. */
static size_t find_surprises(struct predictor *p, struct fpwire *m, uint8_t *bits)
{
	size_t cnt = 0;

	start_column(p, m);
	vec_foreach(x, &m->workers) {
		p->window_ns = x->fp.window_ns;
		for (size_t row = x->first; row < x->first + x->cnt; row++) {
			uint32_t entry = m->entry_of.data[row];
			uint16_t *code = &m->columns[p->column].data[row];
			bool surprises = is_surprise(p, predict(p, row, entry), code);

			bits[row / 8] |= (uint8_t)(surprises << row % 8);
			cnt += surprises;
			learn(p, entry, *code);
		}
	}
	return cnt;
}

static void write_column(struct wire *w, struct predictor *p, struct fpwire *m)
{
	uint16_t *codes = m->columns[p->column].data;
	size_t row_cnt = m->entry_of.cnt, bytes = (row_cnt + 7) / 8, surprises;
	_cleanup_free_ uint8_t *bits = calloc(bytes + 1, 1);
	uint8_t mode = COLUMN_MIXED;

	if (bits == NULL) {
		w->error = -ENOMEM;
		return;
	}
	surprises = find_surprises(p, m, bits);
	if (p->column == FPWIRE_SHARE || 2 * row_cnt <= bytes + 2 * surprises)
		mode = COLUMN_GIVEN;
	else if (surprises == 0)
		mode = COLUMN_EXPECTED;
	wire_byte(w, &mode);
	if (mode == COLUMN_MIXED)
		str_append_len(w->out, (const char *)bits, bytes);
	for (size_t row = 0; row < row_cnt; row++) {
		if (mode == COLUMN_GIVEN || is_set(bits, row))
			wire_code(w, &codes[row]);
	}
}

/* The next cnt bytes of the message; NULL when it has fewer. */
static const uint8_t *take_bytes(struct wire *w, size_t cnt, const char *expected)
{
	const uint8_t *bytes = w->data + w->off;

	w->field_off = w->off;
	if (w->len - w->off < cnt) {
		wire_fail(w, expected, w->len - w->off);
		return NULL;
	}
	w->off += cnt;
	return bytes;
}

static size_t count_bits(const uint8_t *bits, size_t row_cnt)
{
	size_t cnt = 0;

	for (size_t row = 0; row < row_cnt; row++)
		cnt += is_set(bits, row);
	return cnt;
}

static uint16_t code_at(const uint8_t *codes, size_t idx)
{
	return (uint16_t)(codes[2 * idx] | codes[2 * idx + 1] << 8);
}

/* Rows that are as expected, but for those with a bit: these are given, in order. */
static void fill_column(struct predictor *p, struct fpwire *m, const uint8_t *bits,
			const uint8_t *given)
{
	uint16_t *codes = m->columns[p->column].data;
	size_t used = 0;

	start_column(p, m);
	vec_foreach(x, &m->workers) {
		p->window_ns = x->fp.window_ns;
		for (size_t row = x->first; row < x->first + x->cnt; row++) {
			uint32_t entry = m->entry_of.data[row];

			codes[row] = bits != NULL && is_set(bits, row) ? code_at(given, used++)
								       : predict(p, row, entry);
			learn(p, entry, codes[row]);
		}
	}
}

static void check_column(struct wire *w, const struct fpwire *m, enum fpwire_column column)
{
	const uint16_t *codes = m->columns[column].data;
	uint16_t top = columns[column].top;
	bool may_lack = columns[column].may_lack;

	for (size_t row = 0; row < m->entry_of.cnt; row++) {
		if (codes[row] > top && !(may_lack && codes[row] == CODE16_ABSENT))
			wire_fail(w, "numbers of their column", codes[row]);
	}
}

static void read_column(struct wire *w, struct predictor *p, struct fpwire *m)
{
	size_t row_cnt = m->entry_of.cnt;
	const uint8_t *bits = NULL, *given = NULL;
	uint8_t mode = 0;

	wire_byte(w, &mode);
	/* Two bytes for each row at least: memory is bounded by the message. */
	if (w->error == 0 &&
	    (mode > COLUMN_GIVEN || (p->column == FPWIRE_SHARE && mode != COLUMN_GIVEN)))
		wire_fail(w, "the mode of a column", mode);
	if (w->error == 0 && mode == COLUMN_MIXED)
		bits = take_bytes(w, (row_cnt + 7) / 8, "a bit for each row");
	if (w->error == 0 && mode == COLUMN_MIXED)
		given = take_bytes(w, 2 * count_bits(bits, row_cnt), "a number for each bit");
	if (w->error == 0 && mode == COLUMN_GIVEN)
		given = take_bytes(w, 2 * row_cnt, "a number for each row");
	wire_resize(w, &m->columns[p->column], row_cnt);
	if (w->error != 0)
		return;
	if (mode != COLUMN_GIVEN)
		fill_column(p, m, bits, given);
	for (size_t row = 0; row < row_cnt && mode == COLUMN_GIVEN; row++)
		m->columns[p->column].data[row] = code_at(given, row);
	check_column(w, m, p->column);
}

void wire_columns(struct wire *w, struct fpwire *m)
{
	struct predictor p = { .m = m };

	if (w->error == 0 && vec_reserve(&m->last, m->entries.cnt + 1) < 0)
		w->error = -ENOMEM;
	for (int c = 0; c < FPWIRE_COLUMN_CNT && w->error == 0; c++) {
		p.column = (enum fpwire_column)c;
		if (wire_reads(w))
			read_column(w, &p, m);
		else
			write_column(w, &p, m);
	}
}
