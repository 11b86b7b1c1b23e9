/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterations, which no table of an export holds: ranges that are iterations by their name, or
 * what repeats in the kernels. They are added as "ProfilerStep#N".
 */
#include "base/recurrence.h"
#include "base/str.h"
#include "read/nsys/nsys_parts.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- ranges with a name that speaks of iterations --- */

#define MAX_STEM_BYTES 128

/* "iteration", "iter", "step", "batch" as a word or the end of one: "train_step", "Step 12". */
static bool is_step_word(const char *word, size_t len)
{
	static const char *const words[] = { "iteration", "iter", "step", "batch", "itr" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strlen(words[i]) == len && strncasecmp(word, words[i], len) == 0)
			return true;
	}
	return false;
}

static bool speaks_of_step(const char *stem)
{
	size_t begin = 0;

	for (size_t i = 0;; i++) {
		if (isalpha((unsigned char)stem[i]))
			continue;
		if (i > begin && is_step_word(stem + begin, i - begin))
			return true;
		if (stem[i] == '\0')
			return false;
		begin = i + 1;
	}
}

/* Splits "iteration 12 (warm)": the name without its first number, and the number. */
static bool split_name(const char *name, char stem[static MAX_STEM_BYTES], int64_t *ret_number)
{
	size_t begin = strcspn(name, "0123456789");
	size_t digits = strspn(name + begin, "0123456789"), rest = strlen(name + begin + digits);

	if (begin + rest >= MAX_STEM_BYTES)
		return false;
	memcpy(stem, name, begin);
	memcpy(stem + begin, name + begin + digits, rest + 1);
	*ret_number = digits > 0 && digits < 16 ? strtoll(name + begin, NULL, 10) : -1;
	return true;
}

/* "Optimizer.step#Adam.step" is a part of an iteration. */
static bool is_part(const char *name)
{
	static const char *const parts[] = { "optim",	"loader",   "scheduler",
					     "forward", "backward", "zero_grad",
					     "loss",	"eval",	    "valid" };

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (strcasestr(name, parts[i]) != NULL)
			return true;
	}
	return false;
}

/* "batch 1" as "batch #1": numbers behind a '#' are no part of a function's identity. */
static int number_name(struct nsys_pass *pass, const char *name, uint32_t *ret)
{
	size_t begin = strcspn(name, "0123456789");
	struct str text = { 0 };
	int r;

	str_append_len(&text, name, begin);
	if (begin > 0 && name[begin] != '\0' && name[begin - 1] != '#')
		str_append_char(&text, '#');
	str_append(&text, name + begin);
	r = str_error(&text) == 0 ? nsys_intern(pass, str_borrow(&text), text.len, ret) : -ENOMEM;
	str_done(&text);
	return r;
}

int nsys_note_step(struct nsys_pass *pass, uint32_t name, uint16_t lane, int64_t start_ns,
		   int64_t end_ns)
{
	const char *text = strtab_text(&pass->trace->strings, name);
	struct nsys_step step = { .start_ns = start_ns, .end_ns = end_ns, .lane = lane };
	char stem[MAX_STEM_BYTES];
	int64_t length;
	int ret;

	if (__builtin_sub_overflow(end_ns, start_ns, &length) || length <= 0 ||
	    !split_name(text, stem, &step.number) || is_part(text))
		return 0;
	if (strncmp(text, "ProfilerStep#", 13) != 0 && !speaks_of_step(stem))
		return 0;
	step.stem = strtab_intern(&pass->trace->strings, stem, strlen(stem));
	ret = step.stem != STRTAB_NONE ? number_name(pass, text, &step.name) : -ENOMEM;
	if (ret == 0)
		ret = vec_push(&pass->steps, step);
	return ret == 0 ? 1 : ret;
}

static int by_stem(const void *a, const void *b)
{
	const struct nsys_step *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->stem != y->stem)
		return x->stem < y->stem ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Time that steps[cnt] cover, -1 when they overlap: those are no iterations of one loop. */
static double covered(const struct nsys_step *steps, size_t cnt)
{
	double total = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (i > 0 && steps[i].start_ns < steps[i - 1].end_ns)
			return -1;
		total += (double)(steps[i].end_ns - steps[i].start_ns);
	}
	return total;
}

/* Of the sequences with one name on one thread, at least two ranges long, the widest. */
static size_t widest(const struct nsys_step *steps, size_t cnt, size_t *ret_len)
{
	double best_ns = -1;
	size_t best = 0;

	*ret_len = 0;
	for (size_t i = 0, end; i < cnt; i = end) {
		double time_ns;

		for (end = i + 1; end < cnt && steps[end].lane == steps[i].lane &&
				  steps[end].stem == steps[i].stem;
		     end++)
			;
		time_ns = covered(&steps[i], end - i);
		if (end - i >= 2 && time_ns > best_ns) {
			best_ns = time_ns;
			best = i;
			*ret_len = end - i;
		}
	}
	return best;
}

static int add_step(struct nsys_pass *pass, uint16_t lane, int64_t number, int64_t start_ns,
		    int64_t end_ns)
{
	struct event event = { .kind = KIND_ANNOTATION };
	char text[48];
	int len = snprintf(text, sizeof(text), "ProfilerStep#%" PRId64, number);
	int ret = nsys_intern(pass, text, (size_t)len, &event.name);

	return ret == 0 ? nsys_add(pass, event, lane, start_ns, end_ns, NULL) : ret;
}

static bool numbers_grow(const struct nsys_step *steps, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (steps[i].number < 0 || (i > 0 && steps[i].number <= steps[i - 1].number))
			return false;
	}
	return true;
}

/* An iteration lasts to the next one: what lies between two ranges is loading. */
static int add_steps(struct nsys_pass *pass, const struct nsys_step *steps, size_t cnt)
{
	bool numbered = numbers_grow(steps, cnt);
	int ret = 0;

	for (size_t i = 0; i < cnt && ret == 0; i++) {
		int64_t end_ns = i + 1 < cnt ? steps[i + 1].start_ns : steps[i].end_ns;

		ret = add_step(pass, steps[i].lane, numbered ? steps[i].number : (int64_t)i,
			       steps[i].start_ns, end_ns);
	}
	return ret;
}

/* --- what repeats in the kernels --- */

/* The lane with the most events of a kind; LANE ids are small. UINT16_MAX: none. */
static int busiest_lane(const struct trace *trace, enum event_kind kind, uint16_t *ret)
{
	_cleanup_free_ uint64_t *cnt = calloc(trace->lane_cnt + 1, sizeof(*cnt));

	if (cnt == NULL)
		return -ENOMEM;
	*ret = UINT16_MAX;
	for (size_t i = 0; i < trace->event_cnt; i++)
		cnt[trace->events[i].lane] += trace->events[i].kind == kind;
	for (size_t i = 0; i < trace->lane_cnt; i++) {
		if (cnt[i] > 0 && (*ret == UINT16_MAX || cnt[i] > cnt[*ret]))
			*ret = (uint16_t)i;
	}
	return 0;
}

static int collect_kernels(const struct trace *trace, uint16_t lane, recurrence_vec *kernels)
{
	for (size_t i = 0; i < trace->event_cnt; i++) {
		const struct event *event = &trace->events[i];

		if (event->kind == KIND_KERNEL && event->lane == lane &&
		    vec_push(kernels,
			     (struct recurrence_item){ event->start_ns, event->name, 0, 0 }) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add_repeats(struct nsys_pass *pass, uint16_t stream, uint16_t thread)
{
	recurrence_vec kernels = { 0 };
	struct recurrence found = { 0 };
	int ret = collect_kernels(pass->trace, stream, &kernels);

	if (ret == 0)
		found = recurrence_find(&kernels, 2, &pass->trace->strings);
	for (size_t i = 0; kernels.data != NULL && i + 1 < found.cnt && ret == 0; i++) {
		const struct recurrence_item *kernel = &kernels.data[found.first + i];

		ret = add_step(pass, thread, (int64_t)i, kernel[0].start_ns, kernel[1].start_ns);
		pass->trace->iterations_by = ITERATIONS_REPEATS;
	}
	vec_done(&kernels);
	return ret;
}

/* --- which of them --- */

static bool has_optimizer(const struct trace *trace)
{
	static const char word[] = "Optimizer.step#";

	for (size_t i = 0; i < trace->strings.cnt; i++) {
		if (strncmp(trace->strings.entries[i].text, word, sizeof(word) - 1) == 0)
			return true;
	}
	return false;
}

static bool has_marks(const struct nsys_pass *pass, const struct nsys_step *step)
{
	return strcmp(strtab_text(&pass->trace->strings, step->stem), "ProfilerStep#") == 0;
}

/* The ranges that are kept as they are: all but steps[first..first + len). */
static int add_others(struct nsys_pass *pass, size_t first, size_t len)
{
	int ret = 0;

	for (size_t i = 0; i < pass->steps.cnt && ret == 0; i++) {
		const struct nsys_step *step = &pass->steps.data[i];
		struct event event = { .name = step->name, .kind = KIND_ANNOTATION };

		if (i - first >= len)
			ret = nsys_add(pass, event, step->lane, step->start_ns, step->end_ns, NULL);
	}
	return ret;
}

static int find_repeats(struct nsys_pass *pass)
{
	uint16_t stream, thread;
	int ret;

	if (has_optimizer(pass->trace))
		return 0;
	ret = busiest_lane(pass->trace, KIND_KERNEL, &stream);
	if (ret == 0)
		ret = busiest_lane(pass->trace, KIND_RUNTIME, &thread);
	if (ret < 0 || stream == UINT16_MAX || thread == UINT16_MAX)
		return ret;
	return add_repeats(pass, stream, thread);
}

int nsys_find_iterations(struct nsys_pass *pass)
{
	size_t first, len;
	int ret;

	if (pass->steps.cnt > 0)
		qsort(pass->steps.data, pass->steps.cnt, sizeof(*pass->steps.data), by_stem);
	vec_foreach(step, &pass->steps) {
		if (has_marks(pass, step))
			return add_others(pass, 0, 0);
	}
	first = widest(pass->steps.data, pass->steps.cnt, &len);
	ret = add_others(pass, first, len);
	if (ret < 0)
		return ret;
	return len > 0 ? add_steps(pass, &pass->steps.data[first], len) : find_repeats(pass);
}
