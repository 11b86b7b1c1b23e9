/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/sequence.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A symbol is the mark in the upper half and, for optimizers, which one in the lower. */
#define SYMBOL_NEXT ((uint32_t)MARK_DATALOADER << 16)
#define SYMBOL_CLOSE ((uint32_t)MARK_ITERATION << 16)

/* Groups are compared by hash and length; the chance of a collision is 2^-64 a pair. */
struct group {
	uint64_t hash;
	uint32_t len;
};

struct sequence {
	struct sequence_config config;

	/* The last symbols and their times, by position modulo SEQUENCE_MAX. */
	uint32_t recent[SEQUENCE_MAX];
	int64_t recent_ns[SEQUENCE_MAX];
	uint64_t position;

	/* Learning. run[p]: how many groups in a row equalled the one p before. */
	struct group groups[SEQUENCE_GROUP];
	uint64_t group_cnt;
	uint32_t run[SEQUENCE_GROUP + 1];
	struct group open;
	uint32_t same_kind_cnt; /* symbols in a row of the kind of the last one */
	bool next_seen, user_marks;

	/* The sequence, and for each prefix its longest border (Knuth, Morris, Pratt). */
	uint32_t symbols[SEQUENCE_MAX];
	uint32_t border[SEQUENCE_MAX];
	uint32_t len;
	uint32_t pos; /* symbols matched */
	uint32_t since_match;
	uint32_t skip_streak;
	bool learned;
	bool steps_known;  /* an optimizer step was seen */
	bool steps_inside; /* the sequence holds one, or is the user's mark */
	struct sequence_match match;
};

static uint32_t kind_of(uint32_t symbol)
{
	return symbol >> 16;
}

struct sequence *sequence_new(const struct sequence_config *config)
{
	struct sequence *seq = calloc(1, sizeof(*seq));

	if (seq == NULL)
		return NULL;
	seq->config = *config;
	seq->config.repeat_cnt = MAX(config->repeat_cnt, 2u);
	return seq;
}

struct sequence *sequence_free(struct sequence *seq)
{
	free(seq);
	return NULL;
}

static void learn_restart(struct sequence *seq)
{
	memset(seq->run, 0, sizeof(seq->run));
	seq->group_cnt = 0;
	seq->open = (struct group){ 0 };
	seq->same_kind_cnt = 0;
	seq->next_seen = false;
	seq->learned = false;
	seq->pos = seq->since_match = seq->skip_streak = 0;
}

static struct group *group_at(struct sequence *seq, uint64_t idx)
{
	return &seq->groups[idx % SEQUENCE_GROUP];
}

static bool group_equal(const struct group *a, const struct group *b)
{
	return a->hash == b->hash && a->len == b->len;
}

/* Returns how many groups the shortest period has that was seen M times, 0 if none. */
static uint32_t group_close(struct sequence *seq)
{
	uint32_t period = 0;

	for (uint32_t p = 1; p <= SEQUENCE_GROUP && p <= seq->group_cnt; p++) {
		bool same = group_equal(&seq->open, group_at(seq, seq->group_cnt - p));

		seq->run[p] = same ? seq->run[p] + 1 : 0;
		if (period == 0 && seq->run[p] >= (seq->config.repeat_cnt - 1) * p)
			period = p;
	}
	*group_at(seq, seq->group_cnt) = seq->open;
	seq->group_cnt++;
	seq->open = (struct group){ 0 };
	return period;
}

static void group_add(struct sequence *seq, uint32_t symbol)
{
	seq->open.hash = (seq->open.hash ^ symbol) * 0x9e3779b97f4a7c15ULL;
	seq->open.hash ^= seq->open.hash >> 29;
	seq->open.len++;
}

static void compute_borders(struct sequence *seq)
{
	uint32_t border = 0;

	seq->border[0] = 0;
	for (uint32_t i = 1; i < seq->len; i++) {
		while (border > 0 && seq->symbols[i] != seq->symbols[border])
			border = seq->border[border - 1];
		if (seq->symbols[i] == seq->symbols[border])
			border++;
		seq->border[i] = border;
	}
}

/* The last `period` closed groups end at `end` (exclusive position). */
static enum sequence_result adopt(struct sequence *seq, uint32_t period, uint64_t end)
{
	uint32_t len = 0;
	bool same, steps = false;

	for (uint32_t i = 1; i <= period; i++) {
		len += group_at(seq, seq->group_cnt - i)->len;
		if (len > SEQUENCE_MAX - 1)
			return SEQUENCE_NONE;
	}
	same = len == seq->len;
	for (uint32_t i = 0; i < len; i++) {
		uint32_t symbol = seq->recent[(end - len + i) % SEQUENCE_MAX];

		same = same && symbol == seq->symbols[i];
		seq->symbols[i] = symbol;
		steps = steps || kind_of(symbol) != MARK_DATALOADER;
	}
	seq->len = len;
	seq->steps_inside = steps;
	compute_borders(seq);
	learn_restart(seq);
	seq->learned = true;
	return same ? SEQUENCE_REGAINED : SEQUENCE_LEARNED;
}

/*
 * One mark is a group of its own when nothing of the other kind is around. A
 * job that was seen to train has only a long evaluation when it stops stepping.
 */
static bool is_single_group(const struct sequence *seq, uint32_t symbol)
{
	if (symbol == SYMBOL_CLOSE)
		return true;
	if (seq->same_kind_cnt > seq->config.lost_cnt)
		return symbol != SYMBOL_NEXT || !seq->steps_known;
	return symbol != SYMBOL_NEXT && !seq->next_seen;
}

/* The symbol is at position - 1. */
static enum sequence_result learn(struct sequence *seq, uint32_t symbol, uint32_t previous)
{
	enum sequence_result result = SEQUENCE_NONE;
	bool turned = kind_of(previous) == MARK_OPTIMIZER && symbol == SYMBOL_NEXT;
	uint32_t period;

	seq->same_kind_cnt = kind_of(symbol) == kind_of(previous) ? seq->same_kind_cnt + 1 : 1;
	if (is_single_group(seq, symbol)) {
		seq->open = (struct group){ 0 };
		group_add(seq, symbol);
		period = group_close(seq);
		return period > 0 ? adopt(seq, period, seq->position) : SEQUENCE_NONE;
	}
	if (symbol == SYMBOL_NEXT && !seq->next_seen) {
		memset(seq->run, 0, sizeof(seq->run));
		seq->group_cnt = 0;
		seq->open = (struct group){ 0 };
	} else if (turned && seq->open.len > 0) {
		period = group_close(seq);
		if (period > 0)
			result = adopt(seq, period, seq->position - 1);
	}
	seq->next_seen = seq->next_seen || symbol == SYMBOL_NEXT;
	if (!seq->learned)
		group_add(seq, symbol);
	return result;
}

static enum sequence_result matched(struct sequence *seq)
{
	uint32_t skipped = seq->since_match - seq->len;
	int64_t begin_ns = seq->recent_ns[(seq->position - seq->len) % SEQUENCE_MAX];
	int64_t end_ns = seq->recent_ns[(seq->position - 1) % SEQUENCE_MAX];

	seq->match = (struct sequence_match){
		.begin_ns = begin_ns,
		.end_ns = end_ns,
		.skipped = skipped,
		.bound_ns = seq->symbols[0] == SYMBOL_NEXT ? begin_ns : end_ns,
	};
	seq->pos = 0;
	seq->since_match = 0;
	seq->skip_streak = skipped > 0 ? seq->skip_streak + 1 : 0;
	if (seq->skip_streak >= seq->config.repeat_cnt) {
		learn_restart(seq);
		return SEQUENCE_LOST;
	}
	return SEQUENCE_MATCHED;
}

static enum sequence_result follow(struct sequence *seq, uint32_t symbol)
{
	while (seq->pos > 0 && seq->symbols[seq->pos] != symbol)
		seq->pos = seq->border[seq->pos - 1];
	if (seq->symbols[seq->pos] == symbol)
		seq->pos++;
	seq->since_match++;
	if (seq->pos == seq->len)
		return matched(seq);
	/* The first step of a job that only loaded so far shows what an iteration is. */
	if (seq->since_match < seq->len + seq->config.lost_cnt &&
	    (seq->steps_inside || !seq->steps_known))
		return SEQUENCE_NONE;
	learn_restart(seq);
	return SEQUENCE_LOST;
}

static uint32_t symbol_of(uint16_t mark, uint16_t detail)
{
	if (mark == MARK_OPTIMIZER)
		return ((uint32_t)mark << 16) | detail;
	if (mark == MARK_DATALOADER || mark == MARK_ITERATION)
		return (uint32_t)mark << 16;
	return 0;
}

enum sequence_result sequence_mark(struct sequence *seq, uint16_t mark, uint16_t detail,
				   int64_t time_ns)
{
	uint32_t symbol = symbol_of(mark, detail);
	uint32_t previous;
	enum sequence_result result;

	if (symbol == 0 || (seq->user_marks && symbol != SYMBOL_CLOSE))
		return SEQUENCE_NONE;
	if (symbol == SYMBOL_CLOSE && !seq->user_marks) {
		seq->user_marks = true;
		learn_restart(seq);
	}
	previous = seq->position > 0 ? seq->recent[(seq->position - 1) % SEQUENCE_MAX] : 0;
	seq->recent[seq->position % SEQUENCE_MAX] = symbol;
	seq->recent_ns[seq->position % SEQUENCE_MAX] = time_ns;
	seq->position++;
	seq->steps_known = seq->steps_known || kind_of(symbol) == MARK_OPTIMIZER;
	if (seq->learned)
		return follow(seq, symbol);
	result = learn(seq, symbol, previous);
	if (seq->learned && symbol == SYMBOL_NEXT && seq->len > 1)
		(void)follow(seq, symbol); /* it closed a group and opens the next one */
	return result;
}

bool sequence_is_learned(const struct sequence *seq)
{
	return seq->learned;
}

const struct sequence_match *sequence_borrow_match(const struct sequence *seq)
{
	return &seq->match;
}

uint32_t sequence_step_cnt(const struct sequence *seq)
{
	uint32_t cnt[MARK_OPTIMIZER_BEGIN + 1] = { 0 };

	if (!seq->learned)
		return 0;
	for (uint32_t i = 0; i < seq->len; i++)
		cnt[kind_of(seq->symbols[i])]++;
	if (cnt[MARK_ITERATION] > 0)
		return cnt[MARK_ITERATION];
	return cnt[MARK_OPTIMIZER] > 0 ? cnt[MARK_OPTIMIZER] : cnt[MARK_DATALOADER];
}

/* --- for people --- */

#define UNIT_MAX 4u	 /* symbols in a unit that repeats */
#define DESCRIBE_MAX 32u /* symbols of a sequence that are listed */

struct text {
	char *buf;
	size_t size, used;
};

static void add_text(struct text *text, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text->buf + text->used, text->size - text->used, format, args);
	va_end(args);
	text->used += len > 0 ? (size_t)len : 0;
	text->used = MIN(text->used, text->size - 1);
}

/* Which of the iteration's optimizers it is, in order of appearance. */
static uint32_t optimizer_number(const struct sequence *seq, uint32_t symbol)
{
	uint32_t number = 1;

	for (uint32_t i = 0; i < seq->len && seq->symbols[i] != symbol; i++) {
		bool first = kind_of(seq->symbols[i]) == MARK_OPTIMIZER;

		for (uint32_t k = 0; k < i && first; k++)
			first = seq->symbols[k] != seq->symbols[i];
		number += first;
	}
	return number;
}

static void add_symbol(const struct sequence *seq, uint32_t symbol, struct text *text)
{
	if (symbol == SYMBOL_NEXT)
		add_text(text, "loader");
	else if (symbol == SYMBOL_CLOSE)
		add_text(text, "perftracker.step()");
	else if ((symbol & UINT16_MAX) == SEQUENCE_BACKWARD)
		add_text(text, "backward");
	else
		add_text(text, "optimizer %u", optimizer_number(seq, symbol));
}

/* How often the unit of len symbols at `at` comes in a row. */
static uint32_t count_repeats(const struct sequence *seq, uint32_t at, uint32_t len)
{
	uint32_t cnt = 1;

	while (at + (cnt + 1) * len <= seq->len &&
	       memcmp(&seq->symbols[at], &seq->symbols[at + cnt * len],
		      len * sizeof(*seq->symbols)) == 0)
		cnt++;
	return cnt;
}

/* Adds the unit at `at` whose repeats are the longest. Returns the symbols it covers. */
static uint32_t add_unit(const struct sequence *seq, uint32_t at, struct text *text)
{
	uint32_t len = 1, cnt = count_repeats(seq, at, 1);

	for (uint32_t other = 2; other <= UNIT_MAX && at + other <= seq->len; other++) {
		uint32_t repeats = count_repeats(seq, at, other);

		if (repeats > 1 && repeats * other > cnt * len) {
			len = other;
			cnt = repeats;
		}
	}
	if (cnt > 1)
		add_text(text, len > 1 ? "%u x (" : "%u x ", cnt);
	for (uint32_t i = 0; i < len; i++) {
		add_text(text, i > 0 ? ", " : "");
		add_symbol(seq, seq->symbols[at + i], text);
	}
	add_text(text, cnt > 1 && len > 1 ? ")" : "");
	return cnt * len;
}

void sequence_describe(const struct sequence *seq, uint32_t load_cnt, char *buf, size_t size)
{
	struct text text = { .buf = buf, .size = size };
	uint32_t at = 0;

	if (size == 0)
		return;
	buf[0] = '\0';
	if (seq->learned && seq->len > DESCRIBE_MAX) {
		add_text(&text, "%u optimizer steps", sequence_step_cnt(seq));
		return;
	}
	if (seq->learned && load_cnt > 1 && seq->symbols[0] == SYMBOL_NEXT) {
		add_text(&text, "%u x loader", load_cnt);
		at = 1;
	}
	while (seq->learned && at < seq->len && text.used + 1 < size) {
		add_text(&text, at > 0 ? ", " : "");
		at += add_unit(seq, at, &text);
	}
}
