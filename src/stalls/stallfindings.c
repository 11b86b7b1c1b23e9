/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of one class, function and culprit become a finding. */
#include "model/thresholds.h"
#include "stalls/kernelrules.h"
#include "stalls/stalljudge_parts.h"

#include <errno.h>
#include <string.h>

/* What makes parts alike. */
struct key {
	enum stall_class class;
	char function[STALL_FUNCTION_BYTES];
	uint32_t command; /* text id of the culprit: several processes of one program */
	uint32_t file;
};

const struct class_traits *judge_traits(enum stall_class class)
{
	static const struct class_traits TRAITS[STALL_CLASS_CNT] = {
		[STALL_STOPPED] = { .by = BY_SIGNALS },
		[STALL_TRACED] = { .by = BY_SIGNALS },
		[STALL_STARVED] = { .by = BY_CPUS },
		[STALL_MMAP_LOCK] = { .culprit = true, .by = BY_WAKING_PROCESSES },
		[STALL_MM_INTERNAL] = { .function = true, .by = BY_WAKING_THREADS },
		[STALL_COMPACTION] = { .function = true },
		[STALL_RECLAIM] = { .function = true },
		[STALL_NETWORK_FILE] = { .function = true, .file = true },
		[STALL_DISK] = { .function = true, .file = true },
		[STALL_GIL] = { .by = BY_WAKING_THREADS },
		[STALL_KERNEL_LOCK] = { .function = true,
					.culprit = true,
					.by = BY_WAKING_PROCESSES },
		[STALL_UNKNOWN] = { .function = true, .by = BY_WAKING_PROCESSES },
		[STALL_UNKNOWN_WAIT] = { .function = true, .by = BY_WAKING_PROCESSES },
		[STALL_FUTEX] = { .by = BY_WAKING_THREADS },
		[STALL_SHARED_FUTEX] = { .culprit = true, .by = BY_WAKING_PROCESSES },
		[STALL_GPU] = { .function = true },
		[STALL_CHANNEL] = { .function = true, .culprit = true, .by = BY_WAKING_PROCESSES },
	};

	return &TRAITS[class];
}

static uint32_t command_of(const struct judge *judge, uint32_t pid)
{
	const struct stall_process *process = stallrecording_process(judge->recording, pid);

	if (process == NULL)
		return 0;
	return process->command != 0 ? process->command : process->name;
}

/* A culprit that another one interrupted, or a timer, is no culprit. */
static bool has_waker(const struct judge *judge, const struct stall_part *part)
{
	return part->pid != 0 && !kernelrules_interrupt(judge_text(judge, part->waker_chain));
}

static struct key key_of(const struct judge *judge, const struct stall_part *part)
{
	const struct class_traits *traits = judge_traits(part->class);
	struct key key = { .class = part->class };

	if (traits->function)
		kernelrules_function(judge_text(judge, part->chain), key.function);
	if (traits->culprit && has_waker(judge, part))
		key.command = command_of(judge, part->pid);
	if (traits->file)
		key.file = part->file;
	return key;
}

static bool same_key(const struct key *a, const struct key *b)
{
	return a->class == b->class && a->command == b->command && a->file == b->file &&
	       strcmp(a->function, b->function) == 0;
}

enum { FINDINGS_MAX = 256 };

struct keyed {
	struct key keys[FINDINGS_MAX];
};

/* UINT32_MAX: there are too many. */
static uint32_t find(struct judge *judge, struct keyed *keyed, const struct key *key)
{
	struct stall_verdict *verdict = judge->verdict;
	struct stall_finding finding = { .class = key->class, .file = key->file };

	for (uint32_t i = 0; i < verdict->findings.cnt; i++)
		if (same_key(&keyed->keys[i], key))
			return i;
	if (verdict->findings.cnt == FINDINGS_MAX || vec_push(&verdict->findings, finding) < 0)
		return UINT32_MAX;
	memcpy(verdict->findings.data[verdict->findings.cnt - 1].function, key->function,
	       sizeof(key->function));
	keyed->keys[verdict->findings.cnt - 1] = *key;
	return (uint32_t)verdict->findings.cnt - 1;
}

static int group(struct judge *judge)
{
	struct stall_verdict *verdict = judge->verdict;
	_cleanup_free_ struct keyed *keyed = calloc(1, sizeof(*keyed));

	if (keyed == NULL)
		return -ENOMEM;
	vec_foreach(part, &verdict->parts) {
		struct key key;

		if (!verdict->accounts.data[part->thread].judged)
			continue;
		key = key_of(judge, part);
		part->finding = find(judge, keyed, &key);
	}
	return 0;
}

/* Whether the time lost is worth a person's look. */
static bool matters(const struct judge *judge, const struct stall_finding *finding)
{
	const double window_ns = (double)(judge->recording->end_ns - judge->recording->begin_ns),
		     total_ns = (double)finding->total_ns;

	if (stallclass_about(finding->class)->kind != STALL_KIND_STALL)
		return false;
	if (finding->class == STALL_STARVED || finding->class == STALL_UNPLACED)
		return total_ns >= HUNT_STARVED_FRAC * window_ns ||
		       finding->longest_ns >= HUNT_LONG_NS;
	if (finding->longest_ns < HUNT_SHORT_NS)
		return total_ns >= HUNT_STARVED_FRAC * window_ns;
	return total_ns >= HUNT_TOTAL_FRAC * window_ns || finding->longest_ns >= HUNT_LONG_NS ||
	       finding->period_ns > 0;
}

/* Time lost in stalls, and how much of it has a cause. */
static void count_lost(struct judge *judge)
{
	vec_foreach(part, &judge->verdict->parts) {
		struct stall_account *account = &judge->verdict->accounts.data[part->thread];

		if (!account->judged || stallclass_about(part->class)->kind != STALL_KIND_STALL)
			continue;
		account->lost_ns += part->end_ns - part->begin_ns;
		if (part->class != STALL_UNKNOWN)
			account->explained_ns += part->end_ns - part->begin_ns;
	}
}

int judge_findings(struct judge *judge)
{
	int error = group(judge);

	for (uint32_t i = 0; i < judge->verdict->findings.cnt && error == 0; i++) {
		error = judge_rhythm(judge, i);
		if (error == 0)
			error = judge_culprits(judge, i);
		judge->verdict->findings.data[i].matters =
			matters(judge, &judge->verdict->findings.data[i]);
	}
	count_lost(judge);
	return error;
}
