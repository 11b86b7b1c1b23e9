/* SPDX-License-Identifier: Apache-2.0 */
#include "read/foreign.h"

#include "read/common/input.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES (64u << 10)

/* The first bytes of a file, with a NUL behind them; NUL bytes in them became spaces. */
struct head {
	char *text;
	size_t len;
	bool whole; /* the file has no more */
};

static bool has(const struct head *head, const char *word)
{
	return strstr(head->text, word) != NULL;
}

static bool begins(const struct head *head, const char *bytes, size_t len)
{
	return head->len >= len && memcmp(head->text, bytes, len) == 0;
}

/* --- each returns its sentence or NULL --- */

static const char flight_recorder[] =
	"a dump of PyTorch's NCCL flight recorder, which has no times of functions: 'perftracker "
	"analyze' reads it with those of the other ranks, apart from traces";
static const char memory_snapshot[] =
	"a memory snapshot of PyTorch, which has no times of functions: "
	"https://pytorch.org/memory_viz shows it";

static const char *describe_binary(const struct head *head)
{
	static const char marks[][3] = {
		{ '\x80', 2, 0 }, { '\x80', 3, 0 }, { '\x80', 4, 0 }, { '\x80', 5, 0 }
	};

	if (begins(head, "PK\003\004", 4))
		return "a ZIP archive, such as a checkpoint of torch.save: unpack traces from it";
	if (begins(head, "PERFILE2", 8))
		return "a profile of Linux perf, which has samples of CPUs and no iterations: "
		       "'perftracker attach PID' samples all ranks of a job together";
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		if (!begins(head, marks[i], 2))
			continue;
		if (has(head, "pg_config") || has(head, "collective_seq_id"))
			return flight_recorder;
		return has(head, "device_traces") || has(head, "segments")
			       ? memory_snapshot
			       : "a pickle of Python: give traces of torch.profiler";
	}
	return NULL;
}

static const char *describe_object(const struct head *head)
{
	if (has(head, "\"traceEvents\""))
		return NULL;
	if (has(head, "\"perftracker."))
		return "a report of PerfTracker: give the traces or fingerprints it was made from";
	if (has(head, "\"nodes\"") && (has(head, "chakra") || has(head, "\"schema\"")))
		return "an execution trace (Chakra), which has no times of kernels: give the "
		       "trace that torch.profiler exported beside it";
	if (has(head, "\"pg_config\"") && has(head, "\"entries\""))
		return flight_recorder;
	if (has(head, "\"device_traces\"") || has(head, "\"segments\""))
		return memory_snapshot;
	return head->whole ? "JSON without a \"traceEvents\" array: no trace" : NULL;
}

/* The first byte behind '[' that is no space. */
static char first_in_array(const struct head *head)
{
	const char *p = strchr(head->text, '[') + 1;

	while (isspace((unsigned char)*p))
		p++;
	return *p;
}

static const char *describe_array(const struct head *head)
{
	switch (first_in_array(head)) {
	case '[':
		return "a memory timeline of torch.profiler, which has no times of functions: "
		       "give what export_chrome_trace() wrote";
	case '{':
		return head->whole && !has(head, "\"ph\"") ? "a JSON array of no events: no trace"
							   : NULL;
	default:
		return NULL;
	}
}

/* "python3 20824 55209.261456:   10101010 cpu-clock:", then frames: lines with an address. */
static bool is_perf_script(const char *p)
{
	const char *line_end, *time;
	int frames = 0;

	while (*p == '#' || *p == '\n')
		p += strcspn(p, "\n") + (p[strcspn(p, "\n")] == '\n');
	line_end = p + strcspn(p, "\n");
	time = memmem(p, (size_t)(line_end - p), ": ", 2);
	if (*line_end == '\0' || time == NULL || time == p || !isdigit((unsigned char)time[-1]))
		return false;
	for (p = line_end + 1; *p == ' ' || *p == '\t'; p += strcspn(p, "\n") + 1) {
		const char *address = p + strspn(p, " \t");
		size_t digits = strspn(address, "0123456789abcdef");

		if (digits == 0 || address[digits] != ' ')
			return false;
		frames++;
		if (p[strcspn(p, "\n")] == '\0')
			break;
	}
	return frames > 0;
}

static const char *describe_text(const struct head *head)
{
	if (is_perf_script(head->text))
		return "the text of 'perf script', which has samples of CPUs and no iterations: "
		       "'perftracker attach PID' samples all ranks of a job together";
	if (has(head, "elapsed time per iteration (ms)"))
		return "a log of Megatron-LM, which has the length of iterations and not what is in "
		       "them: give traces of torch.profiler (--profile --use-pytorch-profiler)";
	return NULL;
}

/* An XSpace message: its first field is a plane, whose name is in the first bytes. */
static bool is_xplane(const struct head *head)
{
	return begins(head, "\n", 1) &&
	       (has(head, "/host:") || has(head, "/device:") || has(head, "Task Environment"));
}

static const char *describe_head(const struct head *head)
{
	const char *p = head->text;

	while (isspace((unsigned char)*p))
		p++;
	if (*p == '{')
		return describe_object(head);
	if (*p == '[')
		return describe_array(head);
	if (strncasecmp(p, "<!doctype", 9) == 0 || strncasecmp(p, "<html", 5) == 0)
		return "a page of HTML: give the traces it was made from";
	if (is_xplane(head))
		return "a profile of XLA (XSpace): give the .trace.json.gz beside it";
	p = describe_binary(head);
	return p != NULL ? p : describe_text(head);
}

/* Returns 0 or -errno. */
static int read_head(const char *path, struct head *head)
{
	struct input *input;
	const char *why;
	int ret = input_open(path, &input, NULL);

	if (ret < 0)
		return ret;
	while (ret == 0 && head->len < HEAD_BYTES && !head->whole) {
		ssize_t n = input_read(input, head->text + head->len, HEAD_BYTES - head->len, &why);

		head->whole = n == 0;
		head->len += n > 0 ? (size_t)n : 0;
		ret = n < 0 ? (int)n : 0;
	}
	input_free(input);
	for (size_t i = 0; i < head->len; i++)
		head->text[i] = head->text[i] != '\0' ? head->text[i] : ' ';
	return ret;
}

/* A document that was cut off may have been a trace. */
static bool is_closed(const struct head *head)
{
	size_t len = head->len;

	while (len > 0 && isspace((unsigned char)head->text[len - 1]))
		len--;
	return len > 0 && (head->text[len - 1] == '}' || head->text[len - 1] == ']');
}

static bool ends_with(const char *path, const char *suffix)
{
	size_t len = strlen(path), want = strlen(suffix);

	return len > want && strcmp(path + len - want, suffix) == 0;
}

const char *foreign_describe(const char *path)
{
	_cleanup_free_ char *text = NULL;
	struct head head = { 0 };

	if (ends_with(path, ".nsys-rep") || ends_with(path, ".qdrep"))
		return "a report of Nsight Systems: make an export of it with 'nsys export --type "
		       "sqlite'";
	text = head.text = calloc(HEAD_BYTES + 1, 1);
	if (text == NULL || read_head(path, &head) < 0 || head.len == 0)
		return NULL;
	head.whole = head.whole && is_closed(&head);
	return describe_head(&head);
}
