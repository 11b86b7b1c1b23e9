/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/clean.h"
#include "report/stalls/stallforms.h"

#include <string.h>

enum { COMMAND_SHOWN = 120 };

static const char *const ADVICE[STALL_CLASS_CNT] = {
	[STALL_STOPPED] =
		"Continue the process with SIGCONT, and keep the sender from stopping it.",
	[STALL_TRACED] = "Detach the debugger or tracer.",
	[STALL_FROZEN] =
		"Thaw the cgroup (cgroup.freeze or freezer.state), and find what froze it.",
	[STALL_QUOTA] =
		"Raise the CPU limit of the container (cpu.max, limits.cpu), or start fewer "
		"threads.",
	[STALL_STARVED] =
		"Move the named processes to other CPUs or hosts, or give the job CPUs of "
		"its own (cpuset, taskset).",
	[STALL_UNPLACED] = "Look for steal of the hypervisor, deep idle states of the CPUs, or "
			   "interrupts that keep one busy.",
	[STALL_MMAP_LOCK] =
		"Keep that process from reading smaps or the like of the job: of psutil "
		"memory_info instead of memory_full_info; Ray: issue 55117.",
	[STALL_MM_INTERNAL] = "Let the allocator keep its memory (jemalloc or tcmalloc, "
			      "MALLOC_TRIM_THRESHOLD_), so that threads map and unmap less.",
	[STALL_COMPACTION] = "Set transparent huge pages to defer or madvise "
			     "(/sys/kernel/mm/transparent_hugepage/defrag).",
	[STALL_RECLAIM] = "Give the job or its cgroup more memory, or less page cache to fill.",
	[STALL_NETWORK_FILE] = "Read ahead in other processes, or copy the data to a local disk.",
	[STALL_DISK] = "Read and write files in other threads or processes, or use a faster disk.",
	[STALL_GIL] = "Let the named thread release the GIL, or move its work to another process.",
	[STALL_GC] =
		"Call gc.freeze() when the job has started, so that what remains is not looked at "
		"again, or gc.disable() and gc.collect() at chosen iterations of all ranks alike.",
	[STALL_FAULTS] = "Reuse memory instead of allocating it anew (pinned buffers, "
			 "MALLOC_TRIM_THRESHOLD_, huge pages).",
	[STALL_MIGRATION] = "Bind each rank to a NUMA node, or switch kernel.numa_balancing off.",
	[STALL_SHOOTDOWN] = "Unmap and remap less memory: let the allocator keep it.",
	[STALL_STEAL] = "The virtual machine gets less CPU than it has: ask for dedicated CPUs.",
	[STALL_INTERRUPTS] = "Move interrupts of network and disks to CPUs that the job does not "
			     "use (irqbalance, smp_affinity).",
};

const char *stallforms_advice(const struct stall_finding *finding)
{
	return ADVICE[finding->class] != NULL ? ADVICE[finding->class] : "";
}

static const struct stall_thread *find_thread(const struct stall_verdict *verdict, uint32_t tid)
{
	vec_foreach(thread, &verdict->recording->threads) {
		if (thread->tid == tid)
			return thread;
	}
	return NULL;
}

void stallforms_command(const char *command, struct str *out)
{
	clean_append_short(out, command[0] != '\0' ? command : "?", COMMAND_SHOWN);
}

void stallforms_culprit(const struct stall_verdict *verdict, const struct stall_culprit *culprit,
			struct str *out)
{
	const struct strtab *texts = &verdict->recording->texts;
	const char *command =
		strtab_text(texts, culprit->command != 0 ? culprit->command : culprit->name);

	if (culprit->tid != 0 && culprit->same) {
		const struct stall_thread *thread = find_thread(verdict, culprit->tid);

		str_printf(out, "thread %u of its own", culprit->tid);
		if (thread != NULL) {
			str_append(out, " `");
			stallforms_command(strtab_text(texts, thread->name), out);
			str_append(out, "`");
		}
		return;
	}
	str_printf(out, "process %u `", culprit->pid);
	stallforms_command(command, out);
	str_append(out, "`");
	if (culprit->own)
		str_append(out, " (PerfTracker itself)");
	else if (culprit->same)
		str_append(out, " (threads of its own)");
}

/* Which processes it hits, where it does not hit all. */
static void append_hit(const struct stall_verdict *verdict, const struct stall_finding *finding,
		       struct str *out)
{
	const struct stall_recording *recording = verdict->recording;
	uint32_t hit[STALL_THREADS_MAX];
	size_t watched = 0, cnt = 0;

	vec_foreach(process, &recording->processes)
		watched += process->watched;
	for (size_t i = 0; i < recording->threads.cnt && i < STALL_THREADS_MAX; i++) {
		bool known = (finding->thread_bits >> i & 1) == 0;

		for (size_t j = 0; j < cnt && !known; j++)
			known = hit[j] == recording->threads.data[i].pid;
		if (!known)
			hit[cnt++] = recording->threads.data[i].pid;
	}
	if (cnt == 0 || cnt >= watched)
		return;
	for (size_t i = 0; i < cnt; i++)
		str_printf(out, "%s %u",
			   i > 0     ? ","
			   : cnt > 1 ? " of processes"
				     : " of process",
			   hit[i]);
}

void stallforms_sentence(const struct stall_verdict *verdict, const struct stall_finding *finding,
			 struct str *out)
{
	str_append(out, stallclass_about(finding->class)->text);
	if (finding->function[0] != '\0') {
		str_append(out, " in ");
		clean_append(out, finding->function);
	}
	append_hit(verdict, finding, out);
	if (finding->cpu_frac > 0)
		str_printf(out, ": %.1f %% of the time of all CPUs", 100 * finding->cpu_frac);
	else
		str_printf(out, ": %.0f ms in %zu time%s, longest %.1f ms",
			   (double)finding->total_ns / NSEC_PER_MSEC, finding->cnt,
			   plural((double)finding->cnt),
			   (double)finding->longest_ns / NSEC_PER_MSEC);
	if (finding->period_ns > 0)
		str_printf(out, ", every %.2f s", (double)finding->period_ns / NSEC_PER_SEC);
	if (finding->in_turn)
		str_append(out, ", one process after the other");
	if (finding->culprit_cnt > 0) {
		str_append(out, finding->likely ? ", perhaps by " : ", by ");
		stallforms_culprit(verdict, &finding->culprits[0], out);
	}
	if (finding->culprit_cnt > 0 && finding->holder[0] != '\0') {
		str_append(out, ", in ");
		clean_append(out, finding->holder);
	}
	if (finding->file != 0) {
		str_append(out, ", file ");
		stallforms_command(strtab_text(&verdict->recording->texts, finding->file), out);
	}
}
