/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker hosts: hosts that findings accused, over all jobs of the store and folders. */
#include "cmd/storechoice.h"
#include "serve/hostsjson.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define KINDS_SHOWN 3u

struct hosts_options {
	const char *store;
	enum output_format format; /* text or JSON */
	int64_t min_jobs;
	unsigned exclude; /* index of exclude_forms */
};

static const char *const exclude_forms[] = { "", "slurm", "kubernetes" };

#define FIELD(field) OPTION_FIELD(struct hosts_options, field)

static const struct option_row rows[] = {
	STORE_CHOICE_ROW(struct hosts_options, store),
	{ .name = "exclude",
	  .letter = 'x',
	  .words = "none|slurm|kubernetes",
	  FIELD(exclude),
	  .help = "print the hosts to keep out of the next jobs, as the scheduler takes them",
	  .preset = "none",
	  .more = "A suggestion: PerfTracker excludes nothing. Only findings of causes that lie in a "
		  "machine count: CPU starvation, a slow GPU, link or copy, an operator that is "
		  "slower than on its peers." },
	{ .name = "min-jobs",
	  .argument = "N",
	  FIELD(min_jobs),
	  .low = 1,
	  .high = 1000000,
	  .help = "only hosts whose machine was accused in N jobs, with --exclude",
	  .preset = "3" },
	{ .name = "format",
	  .letter = 'f',
	  .words = "text|json",
	  FIELD(format),
	  .help = "output format",
	  .preset = "text" },
};

static void print_host(const struct hostledger_host *host)
{
	struct str kinds = { 0 };

	for (size_t i = 0; i < MIN(host->kind_cnt, (size_t)KINDS_SHOWN); i++)
		str_printf(&kinds, "%s%s %zu", i > 0 ? ", " : "", host->kinds[i].cause,
			   host->kinds[i].cnt);
	if (host->kind_cnt > KINDS_SHOWN)
		str_printf(&kinds, ", %zu more", host->kind_cnt - KINDS_SHOWN);
	(void)printf("%-24.60s %5zu %7zu %8zu  %-20s  %s\n", host->name, host->job_cnt,
		     host->machine_jobs.cnt, host->finding_cnt,
		     host->accusations.cnt > 0 ? host->accusations.data[0].made : "",
		     str_borrow(&kinds));
	str_done(&kinds);
}

static void print_table(const struct hostledger *ledger)
{
	if (ledger->hosts.cnt == 0) {
		(void)puts("no finding accuses a host");
		return;
	}
	(void)printf("%-24s %5s %7s %8s  %-20s  %s\n", "host", "jobs", "machine", "findings",
		     "last (UTC)", "causes");
	vec_foreach(host, &ledger->hosts)
		print_host(host);
	(void)puts("machine: jobs with a cause that lies in the machine, not in the program");
	if (ledger->left_out > 0)
		(void)printf("%zu more hosts are not shown\n", ledger->left_out);
}

static int print_exclude(const struct hosts_options *options, const struct hostledger *ledger,
			 struct str *out)
{
	const char *form = exclude_forms[options->exclude];
	int ret;

	if (options->format == OUTPUT_JSON)
		return hostsjson_print_exclude(ledger, form, (uint64_t)options->min_jobs, out);
	ret = hostsjson_exclude(ledger, form, (uint64_t)options->min_jobs, out);
	if (ret == 0 && out->len == 0)
		(void)fprintf(
			stderr,
			"perftracker: no machine was accused in %lld jobs: nothing to exclude\n",
			(long long)options->min_jobs);
	else if (ret == 0 && out->data[out->len - 1] != '\n')
		str_append_char(out, '\n');
	return ret < 0 ? ret : str_error(out);
}

static int print(const struct hosts_options *options, const struct hostledger *ledger,
		 struct err *err)
{
	struct str out = { 0 };
	int ret = 0;

	if (options->exclude != 0)
		ret = print_exclude(options, ledger, &out);
	else if (options->format == OUTPUT_JSON)
		ret = hostsjson_print(ledger, &out);
	else
		print_table(ledger);
	if (ret == 0)
		(void)fputs(str_borrow(&out), stdout);
	str_done(&out);
	return ret < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}

/* folders[cnt]: with reports beside the store's. */
static int show(const struct hosts_options *options, char **folders, size_t cnt, struct err *err)
{
	struct archive archive = { .store = NULL };
	struct hostledger ledger = { .left_out = 0 };
	int ret;

	store_place(options->store, archive.place, sizeof(archive.place));
	archive.catalog = catalog_new((const char *const *)folders, cnt);
	ret = archive.catalog == NULL ? err_set(err, ENOMEM, "out of memory")
				      : hostledger_read(&archive, &ledger, err);
	if (ret == 0)
		ret = print(options, &ledger, err);
	hostledger_done(&ledger);
	archive_done(&archive);
	return ret;
}

static int hosts_main(const struct command *command, int argc, char **argv)
{
	struct hosts_options options = { .min_jobs = HOSTSJSON_JOBS_PRESET };
	struct err err = { "" };
	int first, status = optiontable_parse(command, argc, argv, &options, &first);

	if (status != OPTIONS_PARSED)
		return status;
	return show(&options, argv + first, (size_t)(argc - first), &err) == 0
		       ? EXIT_DONE
		       : cmd_fail("%s", err.text);
}

const struct command cmd_hosts = {
	.name = "hosts",
	.summary = "list the hosts that findings accused, over all jobs",
	.usage = "[OPTION]... [DIR]...\n",
	.about =
		"Lists hosts that findings of any job in the store accused: in how many jobs, how "
		"often, of what, and when last; those of most jobs first. A host that is accused in "
		"one job may have had bad luck; one whose machine is accused in three deserves a "
		"look at its hardware. Reports in the folders DIR count, too, each with its first "
		"finding.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker hosts\n"
		    "perftracker hosts --exclude slurm --min-jobs 2\n"
		    "sbatch $(perftracker hosts --exclude slurm) train.sh\n",
	.run = hosts_main,
};
