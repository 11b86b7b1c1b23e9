/* SPDX-License-Identifier: Apache-2.0 */
#include "hang/hangrules.h"

#define SEE_TIMELINE                                                                              \
	"To see the Python stacks of all ranks until now: perftracker timeline, with the folder " \
	"of this report."

const struct hang_rule hangrules[] = {
	{ HANG_ENDED | HANG_ENDED_MEMORY, 0, "PT-909", "killed-for-memory",
	  "a process was killed because memory ran out",
	  "Give the job more memory, or use less of it: fewer loader workers, smaller batches; the "
	  "kernel log and memory.events of its cgroup have the size.",
	  "process killed: out of memory", true, CONFIDENCE_HIGH },
	{ HANG_ENDED | HANG_ENDED_WELL, 0, "PT-910", "left-early",
	  "a rank has ended its program, the others wait for it",
	  "The rank came to the end of its data or of its program sooner than the others: give all "
	  "ranks the same number of batches (drop_last, DistributedSampler, Join), and look for an "
	  "exit or a return that only this rank reaches.",
	  "left the job: its program ended", true, CONFIDENCE_HIGH },
	{ HANG_ENDED, 0, "PT-902", "process-ended", "process ended",
	  "Look at this rank's own output and the kernel log (out of memory?); the other ranks "
	  "wait for it and will not go on.",
	  "process ended", true, CONFIDENCE_HIGH },
	{ HANG_TRACED, 0, "PT-911", "traced-process", "a process is stopped by another one",
	  "A debugger or tracer holds the process: see TracerPid in /proc/PID/status, and let it "
	  "detach or end.",
	  "process traced (held by a debugger)", true, CONFIDENCE_HIGH },
	{ HANG_STOPPED, 0, "PT-107", "stopped-process", "stopped process",
	  "Find who sent the stop signal or holds the process in a debugger or freezer; kill -CONT "
	  "resumes it.",
	  "process stopped (SIGSTOP or a debugger)", true, CONFIDENCE_HIGH },
	{ HANG_ABSENT, 0, "PT-917", "no-dump", "a rank left no dump, and the others wait for it",
	  "See whether the process of this rank has ended: its own output, the kernel log, the exit "
	  "codes of the launcher. If it runs, take its stacks and read them with these dumps: "
	  "perftracker stacks PID --format json.",
	  "left no dump", true, CONFIDENCE_MEDIUM },
	{ HANG_HALTED, 0, .id = NULL }, /* it waits for that one, or for who does */
	{ HANG_SKIPPED, HANG_ROAMS, .id = NULL },
	{ HANG_ACCUSED | HANG_PAUSES, HANG_LOCK, .id = "", .pause = true },
	{ HANG_NOBODY | HANG_ALL_MOVE, 0, .id = "", .pause = true },
	{ HANG_ACCUSED | HANG_IN_KERNEL, 0, "PT-903", "kernel-wait",
	  "uninterruptible wait in the kernel",
	  "Usually storage, a network file system or a driver: see /proc/PID/stack as root, and "
	  "the kernel log.",
	  "uninterruptible wait in the kernel", false, CONFIDENCE_MEDIUM },
	{ HANG_ACCUSED | HANG_LOCK, 0, "PT-912", "waits-for-lock",
	  "a rank waits for a lock that is not released",
	  "See who holds the lock: the evidence has its holder, or the threads that can hold it. A "
	  "thread that takes a lock twice, or two locks in different orders, never goes on.",
	  "waits for a lock", false, CONFIDENCE_HIGH },
	{ HANG_ACCUSED | HANG_LOOP, 0, "PT-913", "endless-loop",
	  "a rank runs and does not come out of a function",
	  "The function ran whenever it was looked at, and the other ranks wait for it: see under which "
	  "condition its loop ends, and what is different on this rank.",
	  "runs in one function", false, CONFIDENCE_HIGH },
	{ HANG_UNFINISHED, 0, "PT-914", "gpu-work-not-ending", "work of a GPU does not end",
	  "Its peers have finished a collective that this rank has not, so its GPU or its driver does "
	  "not go on: see the kernel log for Xid or reset messages, and the health of the GPU.",
	  "in a collective that its peers have finished", false, CONFIDENCE_MEDIUM },
	{ HANG_UNBEGUN, 0, "PT-914", "gpu-work-not-ending", "work of a GPU does not end",
	  "The GPUs of its peers have begun a collective that the GPU of this rank has not, so a "
	  "kernel or copy before it does not end: see the kernel log for Xid or reset messages, and "
	  "the kernels that the named function launched.",
	  "before a collective that its peers have begun", false, CONFIDENCE_MEDIUM },
	{ HANG_ACCUSED | HANG_GPU, HANG_NOT_ENTERED | HANG_MISMATCH, "PT-914",
	  "gpu-work-not-ending", "work of a GPU does not end",
	  "The rank waits for its GPU, in no collective: see the kernel log for Xid or reset "
	  "messages, and the kernels that the named function launched.",
	  "waits for its GPU", false, CONFIDENCE_MEDIUM },
	{ HANG_SKIPPED | HANG_ROAMS | HANG_AT_LOADER, 0, "PT-904", "loader-blocked",
	  "no batch from the data loader",
	  "The data loader of this rank returns no batch: look at its worker processes and at the "
	  "storage or service they read from.",
	  "dataloader.next", false, CONFIDENCE_HIGH },
	{ HANG_BEHIND | HANG_AT_LOADER, HANG_SKIPPED, "PT-904", "loader-blocked",
	  "no batch from the data loader",
	  "The data loader of this rank returns no batch: look at its worker processes and at the "
	  "storage or service they read from.",
	  "dataloader.next", false, CONFIDENCE_HIGH },
	{ HANG_BEHIND, HANG_SKIPPED, "PT-905", "rank-behind",
	  "a rank made less progress than the others",
	  "The other ranks wait for this one in a collective. " SEE_TIMELINE,
	  "between two marks of the iteration", false, CONFIDENCE_MEDIUM },
	{ HANG_SKIPPED | HANG_ROAMS, 0, "PT-906", "collective-not-entered",
	  "a rank has not entered a collective",
	  "The other ranks are in the collective and wait for this one. " SEE_TIMELINE,
	  "on its way to a collective", false, CONFIDENCE_MEDIUM },
	{ HANG_NOT_ENTERED | HANG_AT_LOADER, 0, "PT-904", "loader-blocked",
	  "no batch from the data loader",
	  "The data loader of this rank returns no batch: look at its worker processes and at the "
	  "storage or service they read from.",
	  "dataloader.next", false, CONFIDENCE_HIGH },
	{ HANG_NOT_ENTERED, 0, "PT-906", "collective-not-entered",
	  "a rank has not entered a collective",
	  "The other ranks are in the collective and wait for this one. " SEE_TIMELINE,
	  "on its way to a collective", false, CONFIDENCE_MEDIUM },
	{ HANG_MISMATCH, 0, "PT-915", "collective-mismatch",
	  "a rank waits in another collective than the others",
	  "All ranks wait in collectives, but not in the same one: see which condition makes this rank "
	  "call another one, with other sizes, or one more or less than the others.",
	  "in another collective than the others", false, CONFIDENCE_MEDIUM },
	{ HANG_ELSEWHERE | HANG_AT_LOADER, 0, "PT-904", "loader-blocked",
	  "no batch from the data loader",
	  "The data loader of this rank returns no batch: look at its worker processes and at the "
	  "storage or service they read from.",
	  "dataloader.next", false, CONFIDENCE_MEDIUM },
	{ HANG_ELSEWHERE, 0, "PT-907", "elsewhere",
	  "a rank is in another function than the others, which wait",
	  "The other ranks wait in one function and this one is in another. " SEE_TIMELINE,
	  "elsewhere than the others", false, CONFIDENCE_MEDIUM },
	{ HANG_ALONE, 0, "PT-908", "hangs-alone", "the only rank does not come out of a function",
	  "See what the function waits for: a file system, a lock, another process. If it only "
	  "takes long (an evaluation, a compilation), the report is over when it ends.",
	  "in one function", false, CONFIDENCE_MEDIUM },
	{ HANG_NOBODY | HANG_UNLAUNCHED, 0, "PT-916", "launcher-ended",
	  "the launcher of the job has ended",
	  "The process that started the ranks is gone, so nothing restarts or ends them: see its "
	  "output, end the ranks, and start the job again.",
	  "launcher ended", true, CONFIDENCE_MEDIUM },
};

const size_t hangrules_cnt = ARRAY_SIZE(hangrules);

size_t hangrules_match(uint32_t facts)
{
	for (size_t i = 0; i < ARRAY_SIZE(hangrules); i++) {
		const struct hang_rule *rule = &hangrules[i];

		if ((facts & rule->needs) == rule->needs && (facts & rule->lacks) == 0)
			return rule->id != NULL ? i : HANG_NO_RULE;
	}
	return HANG_NO_RULE;
}
