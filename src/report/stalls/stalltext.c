/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/clean.h"
#include "report/stalls/stallforms.h"

#include <stdio.h>
#include <string.h>

enum { CHAIN_SHOWN = 6 };

struct page {
	const struct stall_verdict *verdict;
	bool verbose;
	struct str *out;
};

static double ms(int64_t ns)
{
	return (double)ns / NSEC_PER_MSEC;
}

static double window_ns(const struct page *page)
{
	const struct stall_recording *recording = page->verdict->recording;

	return (double)MAX(recording->end_ns - recording->begin_ns, (int64_t)1);
}

/* Names of programs and files may hold anything, also what a terminal obeys. */
static void append_clean(const struct page *page, const char *before, const char *text)
{
	str_append(page->out, before);
	clean_append(page->out, text);
}

static const char *text_of(const struct page *page, uint32_t id)
{
	return strtab_text(&page->verdict->recording->texts, id);
}

/* The scheduler is innermost on all stacks of threads without a CPU. */
static const char *skip_scheduler(const char *name)
{
	while (strncmp(name, "__schedule", 10) == 0 || strncmp(name, "schedule", 8) == 0) {
		const char *next = strchr(name, '<');

		if (next == NULL)
			return name;
		name = next + 1;
	}
	return name;
}

/* "a<b<c" as "a < b < c", the innermost ones. */
static void append_chain(const struct page *page, uint32_t chain)
{
	const char *name = text_of(page, chain);

	if (!page->verbose)
		name = skip_scheduler(name);
	for (int i = 0; *name != '\0'; i++) {
		const size_t len = strcspn(name, "<");

		if (i == CHAIN_SHOWN && !page->verbose) {
			str_append(page->out, " < ...");
			return;
		}
		char one[96];

		(void)snprintf(one, sizeof(one), "%.*s", (int)MIN(len, sizeof(one) - 1), name);
		append_clean(page, i > 0 ? " < " : "", one);
		name += len + (name[len] == '<');
	}
}

static void append_thread(const struct page *page, size_t index)
{
	const struct stall_thread *thread = &page->verdict->recording->threads.data[index];
	const struct stall_account *account = &page->verdict->accounts.data[index];
	const double all = window_ns(page);

	str_printf(page->out, "  thread %u `", thread->tid);
	append_clean(page, "", text_of(page, thread->name));
	str_printf(page->out, "`%s ran %.1f %%, waited for a CPU %.1f %%, was blocked %.1f %%",
		   thread->main ? " (main)" : "", 100 * (double)account->running_ns / all,
		   100 * (double)account->runnable_ns / all,
		   100 * (double)account->blocked_ns / all);
	if (account->waited_ns > 0)
		str_printf(page->out, " (by its own wish %.1f %%)",
			   100 * (double)account->waited_ns / all);
	str_append(page->out, "\n");
	if (account->lost_ns > 0)
		str_printf(page->out,
			   "    lost %.0f ms in stalls of 1 ms or more, %.0f %% explained\n",
			   ms(account->lost_ns),
			   100 * (double)account->explained_ns / (double)account->lost_ns);
}

static void append_head(const struct page *page)
{
	const struct stall_recording *recording = page->verdict->recording;

	str_printf(page->out, "Stalls in %.1f s", window_ns(page) / NSEC_PER_SEC);
	vec_foreach(process, &recording->processes) {
		if (!process->watched)
			continue;
		str_printf(page->out, "\nprocess %u `", process->pid);
		stallforms_command(
			text_of(page, process->command != 0 ? process->command : process->name),
			page->out);
		str_append(page->out, "`");
	}
	str_append(page->out, "\n");
	for (size_t i = 0; i < recording->threads.cnt; i++)
		if (page->verdict->accounts.data[i].judged || page->verbose)
			append_thread(page, i);
}

static void append_measure(const struct page *page, const struct stall_finding *finding)
{
	struct str *out = page->out;

	if (finding->cpu_frac > 0) {
		str_printf(out, ": %.1f %% of the time of all CPUs\n", 100 * finding->cpu_frac);
		return;
	}
	str_printf(out, ": %.0f ms", ms(finding->total_ns));
	if (stallclass_about(finding->class)->kind == STALL_KIND_KERNEL) {
		str_printf(out, " by %zu samples\n", finding->cnt);
		return;
	}
	if (finding->cnt == 1)
		str_append(out, ", once");
	else
		str_printf(out, " in %zu times, longest %.1f ms, median %.1f ms", finding->cnt,
			   ms(finding->longest_ns), ms(finding->median_ns));
	if (finding->period_ns > 0)
		str_printf(out, ", every %.2f s", (double)finding->period_ns / NSEC_PER_SEC);
	if (finding->in_turn)
		str_append(out, ", one process after the other");
	str_append(out, "\n");
}

/* Which threads, where there are several. */
static void append_victims(const struct page *page, const struct stall_finding *finding)
{
	const struct stall_recording *recording = page->verdict->recording;
	size_t shown = 0, judged = 0;

	vec_foreach(account, &page->verdict->accounts)
		judged += account->judged;
	if (judged < 2 || finding->thread_bits == 0)
		return;
	str_append(page->out, "   threads  ");
	for (size_t i = 0; i < recording->threads.cnt; i++)
		if ((finding->thread_bits >> i & 1) != 0)
			str_printf(page->out, "%s%u", shown++ > 0 ? ", " : "",
				   recording->threads.data[i].tid);
	str_append(page->out, "\n");
}

static void append_culprits(const struct page *page, const struct stall_finding *finding)
{
	for (size_t i = 0; i < finding->culprit_cnt; i++) {
		const struct stall_culprit *culprit = &finding->culprits[i];

		str_append(page->out, i > 0		? "            "
				      : finding->likely ? "   perhaps  "
							: "   by       ");
		stallforms_culprit(page->verdict, culprit, page->out);
		str_printf(page->out, ", %.0f ms", ms(culprit->ns));
		if (i == 0 && finding->holder[0] != '\0')
			append_clean(page, ", in ", finding->holder);
		if (i == 0 && finding->did[0] != '\0')
			str_printf(page->out, ", which %s", finding->did);
		str_append(page->out, "\n");
	}
	if (finding->culprits_more > 0)
		str_printf(page->out, "            and %zu more\n", finding->culprits_more);
	if (finding->culprit_cnt == 0 &&
	    stallclass_about(finding->class)->kind == STALL_KIND_STALL &&
	    finding->class != STALL_QUOTA && finding->class != STALL_STEAL &&
	    finding->class != STALL_DISK && finding->class != STALL_NETWORK_FILE)
		str_append(page->out, "   by       not seen\n");
}

static void append_details(const struct page *page, const struct stall_finding *finding)
{
	if (finding->class == STALL_QUOTA) {
		if (finding->quota_us > 0)
			str_printf(page->out, "   limit    %.1f ms of CPU in each %.1f ms\n",
				   (double)finding->quota_us / 1000,
				   (double)finding->period_us / 1000);
		str_printf(page->out,
			   "   held     %.0f ms in %llu periods, by the cgroup's count\n",
			   ms((int64_t)finding->throttled_ns),
			   (unsigned long long)finding->throttled_cnt);
	}
	if (finding->file != 0) {
		append_clean(page, "   file     ", text_of(page, finding->file));
		str_append(page->out, "\n");
	}
	if (finding->class == STALL_FAULTS)
		str_printf(page->out, "   faults   %llu, and %llu that read a disk\n",
			   (unsigned long long)finding->minor_faults,
			   (unsigned long long)finding->major_faults);
	if (finding->chain != 0) {
		str_append(page->out, "   kernel   ");
		append_chain(page, finding->chain);
		str_append(page->out, "\n");
	}
}

static void append_finding(const struct page *page, const struct stall_finding *finding,
			   size_t number)
{
	str_printf(page->out, "\n%zu. %s", number, stallclass_about(finding->class)->text);
	if (finding->function[0] != '\0')
		append_clean(page, " in ", finding->function);
	append_measure(page, finding);
	append_victims(page, finding);
	append_culprits(page, finding);
	append_details(page, finding);
	if (stallforms_advice(finding)[0] != '\0')
		str_printf(page->out, "   do       %s\n", stallforms_advice(finding));
}

/* One line for each: what is below the thresholds, or may be the program's way of working. */
static void append_brief(const struct page *page, bool waits, const char *title)
{
	bool any = false;

	vec_foreach(finding, &page->verdict->findings) {
		const bool is_wait = stallclass_about(finding->class)->kind == STALL_KIND_WAIT;

		if (finding->matters || is_wait != waits)
			continue;
		if (!any)
			str_printf(page->out, "\n%s\n", title);
		any = true;
		str_printf(page->out, "  %s", stallclass_about(finding->class)->text);
		if (finding->function[0] != '\0')
			append_clean(page, " in ", finding->function);
		str_printf(page->out, ": %.0f ms, %zu times, longest %.1f ms",
			   ms(finding->total_ns), finding->cnt, ms(finding->longest_ns));
		if (finding->culprit_cnt > 0) {
			str_append(page->out, ", by ");
			stallforms_culprit(page->verdict, &finding->culprits[0], page->out);
			if (finding->did[0] != '\0')
				str_printf(page->out, ", which %s", finding->did);
		}
		str_append(page->out, "\n");
	}
}

static void append_notes(const struct page *page)
{
	const struct stall_recording *recording = page->verdict->recording;

	if (recording->notes.cnt > 0 || recording->lost > 0 || recording->dropped > 0)
		str_append(page->out, "\nNot seen\n");
	vec_foreach(note, &recording->notes) {
		append_clean(page, "  ", text_of(page, *note));
		str_append(page->out, "\n");
	}
	if (recording->lost > 0)
		str_printf(page->out, "  %llu records that the kernel lost\n",
			   (unsigned long long)recording->lost);
	if (recording->dropped > 0)
		str_printf(page->out, "  %llu records beyond the limits of PerfTracker\n",
			   (unsigned long long)recording->dropped);
}

int stallforms_text(const struct stall_verdict *verdict, bool verbose, struct str *out)
{
	const struct page page = { verdict, verbose, out };
	const size_t start = out->len;
	size_t number = 0;

	append_head(&page);
	if (verdict->stall_cnt == 0)
		str_append(out, verdict->incomplete
					? "\nNo stall was seen, but not all could be seen.\n"
					: "\nNo stall.\n");
	vec_foreach(finding, &verdict->findings) {
		if (finding->matters)
			append_finding(&page, finding, ++number);
	}
	append_brief(&page, true, "Waits that the program asked for");
	if (verbose)
		append_brief(&page, false, "Too little to matter");
	append_notes(&page);
	return str_finish(out, start);
}
