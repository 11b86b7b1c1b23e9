/* SPDX-License-Identifier: Apache-2.0 */
#include "format/stallfile/stallfile.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { NUMBERS_MAX = 12, TEXTS_MAX = 1 << 20, PERIOD_MAX = UINT32_MAX / 2 };
#define TIME_MAX (INT64_MAX / 4)
#define WINDOW_MAX_NS (86400 * NSEC_PER_SEC)
#define STATES "RSDTtIZXP-"

/* Writing. */

static void write_text(struct str *out, const char *text)
{
	str_append(out, "text ");
	for (; *text != '\0'; text++) {
		if (*text == '\n')
			str_append(out, "\\n");
		else if (*text == '\\')
			str_append(out, "\\\\");
		else
			str_append_char(out, *text);
	}
	str_append(out, "\n");
}

static void write_process(struct str *out, const struct stall_process *p)
{
	str_printf(out,
		   "process %u %u %u %u %d %d %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		   p->pid, p->parent, p->name, p->command, p->watched, p->own, p->tracer,
		   p->gil_begin, p->gil_end, p->quota_us, p->period_us);
}

static void write_thread(struct str *out, const struct stall_thread *t)
{
	str_printf(out, "thread %u %u %d %u %u %" PRId64 " %" PRIu64 " %" PRIu64 " %c\n", t->tid,
		   t->pid, t->main, t->name, t->cpus, t->cpu_ns, t->minor_faults, t->major_faults,
		   t->state);
}

static void write_counters(struct str *out, const struct stall_counters *c)
{
	str_printf(out,
		   "counters %" PRId64 " %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		   " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		   c->time_ns, c->pid, c->throttled_cnt, c->throttled_ns, c->total_ticks,
		   c->steal_ticks, c->irq_ticks, c->compact_stalls, c->reclaim_stalls,
		   c->pressure_cpu_us, c->pressure_io_us, c->pressure_memory_us);
}

static void write_event(struct str *out, const struct stall_event *e)
{
	str_printf(out, "event %" PRId64 " %d %u %u %u %u %u %u %" PRIu64 " %" PRIu64 " %c\n",
		   e->time_ns, (int)e->kind, e->tid, e->pid, e->other, e->cpu, e->chain, e->file,
		   e->address, e->value, e->state);
}

int stallfile_write(const struct stall_recording *r, struct str *out)
{
	const size_t start = out->len;

	str_append(out, STALLFILE_MAGIC);
	str_printf(out,
		   "window %" PRId64 " %" PRId64 " %u %u %u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		   r->begin_ns, r->end_ns, r->cpu_cnt, r->own_pid, r->sources, r->sample_ns,
		   r->lost, r->dropped);
	for (size_t i = 1; i < r->texts.cnt; i++)
		write_text(out, strtab_text(&r->texts, (uint32_t)i));
	vec_foreach(note, &r->notes)
		str_printf(out, "note %u\n", *note);
	vec_foreach(process, &r->processes)
		write_process(out, process);
	vec_foreach(thread, &r->threads)
		write_thread(out, thread);
	vec_foreach(counters, &r->counters)
		write_counters(out, counters);
	vec_foreach(event, &r->events)
		write_event(out, event);
	str_printf(out, "end %zu\n", r->events.cnt);
	return str_finish(out, start);
}

/* Parsing. */

struct parser {
	const char *path, *text;
	size_t len, at; /* at: begin of the line */
	size_t line_len;
	struct stall_recording *out;
	struct err *err;
	bool window, end;
	/* Of the line. */
	uint64_t numbers[NUMBERS_MAX];
	const char *rest; /* behind the numbers, up to the line end */
	size_t rest_len;
};

static int fail(const struct parser *parser, const char *expected)
{
	return err_set(parser->err, EINVAL, "%s:%zu: expected %s, found '%.*s'", parser->path,
		       parser->at, expected, (int)MIN(parser->line_len, (size_t)60),
		       parser->text + parser->at);
}

static bool take_number(const char **at, const char *end, uint64_t *ret)
{
	const bool negative = *at < end && **at == '-';
	const char *c = *at + negative;
	uint64_t value = 0;

	if (c == end || *c < '0' || *c > '9')
		return false;
	for (; c < end && *c >= '0' && *c <= '9'; c++) {
		const uint64_t digit = (uint64_t)(*c - '0');

		if (value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*ret = negative ? 0 - value : value;
	*at = c;
	return true;
}

/* " N N N", `cnt` of them; the rest of the line follows a blank. */
static bool take_numbers(struct parser *parser, size_t word_len, size_t cnt)
{
	const char *at = parser->text + parser->at + word_len,
		   *end = parser->text + parser->at + parser->line_len;

	for (size_t i = 0; i < cnt; i++) {
		if (at == end || *at++ != ' ' || !take_number(&at, end, &parser->numbers[i]))
			return false;
	}
	if (at < end && *at++ != ' ')
		return false;
	parser->rest = at;
	parser->rest_len = (size_t)(end - at);
	return true;
}

static bool is_small(const uint64_t *numbers, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		if (numbers[i] > UINT32_MAX)
			return false;
	return true;
}

static bool is_time(uint64_t number)
{
	return number <= (uint64_t)TIME_MAX;
}

static bool is_text(const struct parser *parser, uint64_t id)
{
	return id < parser->out->texts.cnt;
}

/* One letter at the end of the line; '\0': it is none of them. */
static char take_state(const struct parser *parser)
{
	return parser->rest_len == 1 && strchr(STATES, *parser->rest) != NULL ? *parser->rest
									      : '\0';
}

static int take_window(struct parser *parser)
{
	const uint64_t *n = parser->numbers;

	if (parser->window || !is_time(n[0]) || !is_time(n[1]) || n[1] < n[0] ||
	    n[1] - n[0] > (uint64_t)WINDOW_MAX_NS || !is_small(&n[2], 3) ||
	    n[5] > (uint64_t)NSEC_PER_SEC)
		return fail(parser, "one window of at most a day");
	parser->window = true;
	parser->out->begin_ns = (int64_t)n[0];
	parser->out->end_ns = (int64_t)n[1];
	parser->out->cpu_cnt = (uint32_t)n[2];
	parser->out->own_pid = (uint32_t)n[3];
	parser->out->sources = (uint32_t)n[4];
	parser->out->sample_ns = n[5];
	parser->out->lost = n[6];
	parser->out->dropped = n[7];
	return 0;
}

static int take_text(struct parser *parser)
{
	_cleanup_(str_done) struct str text = { 0 };
	const size_t before = parser->out->texts.cnt;
	uint32_t id;

	for (size_t i = 0; i < parser->rest_len; i++) {
		if (parser->rest[i] != '\\') {
			str_append_char(&text, parser->rest[i]);
			continue;
		}
		if (++i == parser->rest_len)
			return fail(parser, "'n' or '\\' behind '\\'");
		str_append_char(&text, parser->rest[i] == 'n' ? '\n' : '\\');
	}
	if (str_error(&text) < 0)
		return str_error(&text);
	if (before == TEXTS_MAX || memchr(str_borrow(&text), '\0', text.len) != NULL)
		return fail(parser, "at most 1048576 texts, without NUL");
	id = strtab_intern(&parser->out->texts, str_borrow(&text), text.len);
	if (id == STRTAB_NONE)
		return -ENOMEM;
	return id == before ? 0 : fail(parser, "a text that did not come before");
}

static int take_note(struct parser *parser)
{
	if (!is_text(parser, parser->numbers[0]) || parser->out->notes.cnt == STALL_NOTES_MAX)
		return fail(parser, "the id of a text");
	return vec_push(&parser->out->notes, (uint32_t)parser->numbers[0]);
}

static int take_process(struct parser *parser)
{
	const uint64_t *n = parser->numbers;
	const struct stall_process process = {
		.pid = (uint32_t)n[0],
		.parent = (uint32_t)n[1],
		.name = (uint32_t)n[2],
		.command = (uint32_t)n[3],
		.watched = n[4] != 0,
		.own = n[5] != 0,
		.tracer = (uint32_t)n[6],
		.gil_begin = n[7],
		.gil_end = n[8],
		.quota_us = n[9],
		.period_us = n[10],
	};

	if (!is_small(n, 7) || !is_text(parser, n[2]) || !is_text(parser, n[3]) ||
	    n[9] > PERIOD_MAX || n[10] > PERIOD_MAX)
		return fail(parser, "a process with ids of texts");
	if (parser->out->processes.cnt == STALL_PROCESSES_MAX)
		return fail(parser, "at most 8192 processes");
	return vec_push(&parser->out->processes, process);
}

static int take_thread(struct parser *parser)
{
	const uint64_t *n = parser->numbers;
	const struct stall_thread thread = {
		.tid = (uint32_t)n[0],
		.pid = (uint32_t)n[1],
		.main = n[2] != 0,
		.state = take_state(parser),
		.name = (uint32_t)n[3],
		.cpus = (uint32_t)n[4],
		.cpu_ns = (int64_t)n[5],
		.minor_faults = n[6],
		.major_faults = n[7],
	};

	if (!is_small(n, 5) || !is_text(parser, n[3]) || !is_text(parser, n[4]) ||
	    thread.cpu_ns < -1 || thread.cpu_ns > TIME_MAX || thread.state == '\0')
		return fail(parser, "a thread with ids of texts and a state");
	if (parser->out->threads.cnt == STALL_THREADS_MAX)
		return fail(parser, "at most 64 threads");
	vec_foreach(other, &parser->out->threads) {
		if (other->tid == thread.tid)
			return fail(parser, "each thread once");
	}
	return vec_push(&parser->out->threads, thread);
}

static int take_counters(struct parser *parser)
{
	const uint64_t *n = parser->numbers;
	const struct stall_counters counters = {
		.time_ns = (int64_t)n[0],
		.pid = (uint32_t)n[1],
		.throttled_cnt = n[2],
		.throttled_ns = n[3],
		.total_ticks = n[4],
		.steal_ticks = n[5],
		.irq_ticks = n[6],
		.compact_stalls = n[7],
		.reclaim_stalls = n[8],
		.pressure_cpu_us = n[9],
		.pressure_io_us = n[10],
		.pressure_memory_us = n[11],
	};
	const size_t cnt = parser->out->counters.cnt;

	for (size_t i = 0; i < 12; i++)
		if (!is_time(n[i]))
			return fail(parser, "numbers below 2^61");
	if (!is_small(&n[1], 1) ||
	    (cnt > 0 && parser->out->counters.data[cnt - 1].time_ns > counters.time_ns))
		return fail(parser, "counters in the order of time");
	if (cnt == STALL_EVENTS_MAX)
		return fail(parser, "fewer counters");
	return vec_push(&parser->out->counters, counters);
}

static int take_event(struct parser *parser)
{
	const uint64_t *n = parser->numbers;
	const struct stall_event event = {
		.time_ns = (int64_t)n[0],
		.kind = (enum stall_event_kind)MIN(n[1], (uint64_t)STALL_KIND_CNT),
		.tid = (uint32_t)n[2],
		.pid = (uint32_t)n[3],
		.other = (uint32_t)n[4],
		.cpu = (uint32_t)n[5],
		.chain = (uint32_t)n[6],
		.file = (uint32_t)n[7],
		.address = n[8],
		.value = n[9],
		.state = take_state(parser),
	};

	if (!is_time(n[0]) || (int64_t)n[0] > parser->out->end_ns + NSEC_PER_SEC)
		return fail(parser, "a time not behind the window");
	if (event.kind == STALL_KIND_CNT)
		return fail(parser, "a known kind of event");
	if (!is_small(&n[2], 6) || !is_text(parser, n[6]) || !is_text(parser, n[7]) ||
	    event.state == '\0')
		return fail(parser, "an event with ids of texts and a state");
	if (parser->out->events.cnt == STALL_EVENTS_MAX)
		return fail(parser, "at most 2097152 events");
	return vec_push(&parser->out->events, event);
}

static int take_end(struct parser *parser)
{
	if (parser->numbers[0] != parser->out->events.cnt)
		return fail(parser, "the count of the events");
	parser->end = true;
	return 0;
}

static const struct {
	const char *word;
	size_t cnt;
	int (*take)(struct parser *parser);
} LINES[] = {
	{ "event", 10, take_event },  { "counters", 12, take_counters },
	{ "text", 0, take_text },     { "process", 11, take_process },
	{ "thread", 8, take_thread }, { "note", 1, take_note },
	{ "window", 8, take_window }, { "end", 1, take_end },
};

static int take_line(struct parser *parser)
{
	const char *line = parser->text + parser->at;
	const char *blank = memchr(line, ' ', parser->line_len);
	const size_t word = blank != NULL ? (size_t)(blank - line) : parser->line_len;

	for (size_t i = 0; i < ARRAY_SIZE(LINES); i++) {
		if (strlen(LINES[i].word) != word || memcmp(LINES[i].word, line, word) != 0)
			continue;
		if (!parser->window && LINES[i].take != take_window)
			return fail(parser, "'window' first");
		if (!take_numbers(parser, word, LINES[i].cnt))
			return fail(parser, "as many numbers as the word has");
		return LINES[i].take(parser);
	}
	return fail(parser, "a line of a recording");
}

static int parse_lines(struct parser *parser)
{
	int error = 0;

	parser->line_len = MIN(parser->len, strlen(STALLFILE_MAGIC));
	if (parser->len < strlen(STALLFILE_MAGIC) ||
	    memcmp(parser->text, STALLFILE_MAGIC, strlen(STALLFILE_MAGIC)) != 0)
		return fail(parser, "'perftracker-stalls 1'");
	parser->at = strlen(STALLFILE_MAGIC);
	while (error == 0 && parser->at < parser->len && !parser->end) {
		const char *line = parser->text + parser->at;
		const char *newline = memchr(line, '\n', parser->len - parser->at);

		parser->line_len =
			newline != NULL ? (size_t)(newline - line) : parser->len - parser->at;
		if (newline == NULL)
			return fail(parser, "a line end");
		error = take_line(parser);
		if (error == 0)
			parser->at += parser->line_len + 1;
	}
	parser->line_len = 0;
	if (error == 0 && !parser->end)
		return fail(parser, "'end'");
	return error;
}

int stallfile_parse(const char *path, const char *text, size_t len, struct stall_recording *ret,
		    struct err *err)
{
	struct stall_recording recording;
	struct parser parser = {
		.path = path, .text = text, .len = len, .out = &recording, .err = err
	};
	int error = stallrecording_init(&recording);

	if (error == 0)
		error = parse_lines(&parser);
	if (error < 0) {
		stallrecording_done(&recording);
		return error == -ENOMEM ? err_set(err, ENOMEM, "%s: out of memory", path) : error;
	}
	stallrecording_sort(&recording);
	*ret = recording;
	return 0;
}

int stallfile_read(const char *path, struct stall_recording *ret, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int fd = open(path, O_RDONLY | O_CLOEXEC), error;

	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	error = file_read_whole(path, fd, STALLFILE_BYTES_MAX, &text, &len, err);
	(void)close(fd);
	return error < 0 ? error : stallfile_parse(path, text, len, ret, err);
}
