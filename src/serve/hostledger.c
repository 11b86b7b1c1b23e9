/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/hostledger.h"

#include "base/clock.h"
#include "memory/machinecause.h"
#include "serve/jobwords.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* One accusation, wherever it comes from. */
struct charge {
	const char *hosts, *job, *name, *title, *cause, *made, *report;
	int64_t made_ns;
	double gain_ms;
};

static void free_accusation(struct hostledger_accusation *accusation)
{
	free(accusation->job);
	free(accusation->title);
	free(accusation->cause);
}

void hostledger_done(struct hostledger *ledger)
{
	vec_foreach(host, &ledger->hosts) {
		free(host->name);
		vec_foreach(job, &host->jobs)
			free(*job);
		vec_foreach(job, &host->machine_jobs)
			free(*job);
		vec_done(&host->machine_jobs);
		vec_foreach(accusation, &host->accusations)
			free_accusation(accusation);
		vec_done(&host->jobs);
		vec_done(&host->accusations);
	}
	vec_done(&ledger->hosts);
}

static int find_host(struct hostledger *ledger, const char *name, size_t len,
		     struct hostledger_host **ret)
{
	struct hostledger_host host = { .name = NULL };

	*ret = NULL;
	vec_foreach(known, &ledger->hosts) {
		if (strlen(known->name) == len && memcmp(known->name, name, len) == 0) {
			*ret = known;
			return 0;
		}
	}
	if (ledger->hosts.cnt >= HOSTLEDGER_HOSTS_MAX) {
		ledger->left_out++;
		return 0;
	}
	host.name = strndup(name, len);
	if (host.name == NULL || vec_push(&ledger->hosts, host) < 0 || ledger->hosts.data == NULL) {
		free(host.name);
		return -ENOMEM;
	}
	*ret = &ledger->hosts.data[ledger->hosts.cnt - 1];
	return 0;
}

static int add_name(hostledger_names *names, const char *name)
{
	char *copy;

	vec_foreach(known, names) {
		if (strcmp(*known, name) == 0)
			return 0;
	}
	copy = strdup(name);
	if (copy == NULL || vec_push(names, copy) < 0) {
		free(copy);
		return -ENOMEM;
	}
	return 0;
}

static int add_job(struct hostledger_host *host, const struct charge *charge)
{
	int ret = add_name(&host->jobs, charge->job);

	if (ret == 0 && machinecause_is(charge->cause))
		ret = add_name(&host->machine_jobs, charge->job);
	host->job_cnt = host->jobs.cnt;
	return ret;
}

static void add_kind(struct hostledger_host *host, const char *cause)
{
	size_t i = 0;

	while (i < host->kind_cnt && strcmp(host->kinds[i].cause, cause) != 0)
		i++;
	if (i == HOSTLEDGER_KINDS_MAX)
		return;
	if (i == host->kind_cnt)
		(void)snprintf(host->kinds[host->kind_cnt++].cause, sizeof(host->kinds[0].cause),
			       "%s", cause);
	host->kinds[i].cnt++;
}

static int add_accusation(struct hostledger_host *host, const struct charge *charge)
{
	struct hostledger_accusation accusation = { .job = strdup(charge->name),
						    .title = strdup(charge->title),
						    .cause = strdup(charge->cause),
						    .made_ns = charge->made_ns,
						    .gain_ms = charge->gain_ms };

	(void)snprintf(accusation.report, sizeof(accusation.report), "%s", charge->report);
	(void)snprintf(accusation.made, sizeof(accusation.made), "%s", charge->made);
	if (accusation.job == NULL || accusation.title == NULL || accusation.cause == NULL ||
	    vec_push(&host->accusations, accusation) < 0) {
		free_accusation(&accusation);
		return -ENOMEM;
	}
	host->finding_cnt++;
	add_kind(host, charge->cause);
	return 0;
}

/* charge->hosts: names joined by commas. */
static int add_charge(struct hostledger *ledger, const struct charge *charge)
{
	ledger->charge_cnt++;
	for (const char *name = charge->hosts; *name != '\0';) {
		size_t len = strcspn(name, ",");
		struct hostledger_host *host = NULL;
		int ret = len > 0 ? find_host(ledger, name, len, &host) : 0;

		bool again = host != NULL && host->charge == ledger->charge_cnt;

		if (ret == 0 && host != NULL && !again)
			ret = add_job(host, charge);
		if (ret == 0 && host != NULL && !again)
			ret = add_accusation(host, charge);
		if (host != NULL)
			host->charge = ledger->charge_cnt;

		if (ret < 0)
			return ret;
		name += len + (name[len] == ',');
		name += strspn(name, " ");
	}
	return 0;
}

static int take_accusation(void *arg, const struct store_accusation *accusation)
{
	char made[32], report[ARCHIVE_ID_BYTES];

	jobwords_iso(accusation->made_ns, made);
	archive_print_id(accusation->job, accusation->number, report);
	return add_charge(arg, &(struct charge){ .hosts = accusation->hosts,
						 .job = accusation->job,
						 .name = accusation->name,
						 .title = accusation->title,
						 .cause = accusation->cause,
						 .made = made,
						 .report = report,
						 .made_ns = accusation->made_ns,

						 .gain_ms = accusation->gain_ms });
}

typedef VEC(char *) folder_list;

static int take_folder(void *arg, const struct store_job *job)
{
	folder_list *folders = arg;
	char *copy = strdup(job->folder);

	if (copy == NULL || vec_push(folders, copy) < 0) {
		free(copy);
		return -ENOMEM;
	}
	return 0;
}

static bool has_folder(const folder_list *folders, const char *folder)
{
	_cleanup_free_ char *whole = realpath(folder, NULL);

	vec_foreach(known, folders) {
		if (whole != NULL && strcmp(*known, whole) == 0)
			return true;
	}
	return false;
}

/* The first finding of each report; the others are in the report. */
static int read_folders(struct archive *archive, const folder_list *folders,
			struct hostledger *ledger)
{
	int ret = catalog_refresh(archive->catalog, clock_mono_ns());
	const struct catalog_report *report;

	for (size_t i = 0; ret == 0 && (report = catalog_borrow(archive->catalog, i)) != NULL;
	     i++) {
		if (report->hosts == NULL || report->hosts[0] == '\0' ||
		    has_folder(folders, report->folder))
			continue;
		ret = add_charge(ledger,
				 &(struct charge){
					 .hosts = report->hosts,
					 .job = report->folder,
					 .name = report->job != NULL ? report->job : report->folder,
					 .title = report->title != NULL ? report->title : "",
					 .cause = report->cause != NULL ? report->cause : "",
					 .made = report->made != NULL ? report->made : "",
					 .report = report->id,
					 .made_ns = report->changed_ns,

					 .gain_ms = report->gain_ms });
	}
	return ret;
}

static int order_hosts(const void *a, const void *b)
{
	const struct hostledger_host *x = a, *y = b;

	if (x->job_cnt != y->job_cnt)
		return x->job_cnt > y->job_cnt ? -1 : 1;
	if (x->finding_cnt != y->finding_cnt)
		return x->finding_cnt > y->finding_cnt ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int order_accusations(const void *a, const void *b)
{
	const struct hostledger_accusation *x = a, *y = b;
	if (x->made_ns != y->made_ns)
		return x->made_ns > y->made_ns ? -1 : 1;
	return strcmp(x->report, y->report);
}

static int order_kinds(const void *a, const void *b)
{
	const struct hostledger_kind *x = a, *y = b;

	if (x->cnt != y->cnt)
		return x->cnt > y->cnt ? -1 : 1;
	return strcmp(x->cause, y->cause);
}

static void sort(struct hostledger *ledger)
{
	vec_foreach(host, &ledger->hosts) {
		qsort(host->kinds, host->kind_cnt, sizeof(*host->kinds), order_kinds);
		qsort(host->accusations.data, host->accusations.cnt,
		      sizeof(*host->accusations.data), order_accusations);
		while (host->accusations.cnt > HOSTLEDGER_SHOWN_MAX)
			free_accusation(&host->accusations.data[--host->accusations.cnt]);
	}
	if (ledger->hosts.cnt > 0)
		qsort(ledger->hosts.data, ledger->hosts.cnt, sizeof(*ledger->hosts.data),
		      order_hosts);
}

int hostledger_read(struct archive *archive, struct hostledger *ret, struct err *err)
{
	folder_list folders = { 0 };
	int r = archive_open_store(archive, err);

	if (r == 0)
		r = store_list_accusations(archive->store, take_accusation, ret, err);
	if (r == 0)
		r = store_list_jobs(archive->store, 0, take_folder, &folders, err);
	if (r == -ENOENT)
		r = 0;
	else if (r < 0)
		archive_drop_store(archive);
	if (r == 0)
		r = read_folders(archive, &folders, ret);
	vec_foreach(folder, &folders)
		free(*folder);
	vec_done(&folders);
	if (r == -ENOMEM)
		return err_set(err, ENOMEM, "out of memory");
	sort(ret);
	return r;
}
