/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/hosttally.h"

#include "memory/machinecause.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct hosttally_host *find(const struct hosttally *tally, const char *name, size_t len)
{
	vec_foreach(host, &tally->hosts) {
		if (strlen(host->name) == len && memcmp(host->name, name, len) == 0)
			return host;
	}
	return NULL;
}

const struct hosttally_host *hosttally_find(const struct hosttally *tally, const char *name)
{
	return find(tally, name, strlen(name));
}

static int find_or_make(struct hosttally *tally, const char *name, size_t len,
			struct hosttally_host **ret)
{
	struct hosttally_host host = { .name = NULL };

	*ret = find(tally, name, len);
	if (*ret != NULL || tally->hosts.cnt >= HOSTTALLY_HOSTS_MAX)
		return 0;
	host.name = strndup(name, len);
	if (host.name == NULL || vec_push(&tally->hosts, host) < 0) {
		free(host.name);
		return -ENOMEM;
	}
	*ret = &tally->hosts.data[tally->hosts.cnt - 1];
	return 0;
}

static int add_job(struct hosttally_host *host, const char *job)
{
	char *copy;

	vec_foreach(known, &host->jobs) {
		if (strcmp(*known, job) == 0)
			return 0;
	}
	copy = strdup(job);
	if (copy == NULL || vec_push(&host->jobs, copy) < 0) {
		free(copy);
		return -ENOMEM;
	}
	return 0;
}

static void add_kind(struct hosttally_host *host, const char *cause)
{
	size_t i = 0;

	while (i < host->kind_cnt && strcmp(host->kinds[i].cause, cause) != 0)
		i++;
	if (i == HOSTTALLY_KINDS_MAX)
		return;
	if (i == host->kind_cnt)
		(void)snprintf(host->kinds[host->kind_cnt++].cause, sizeof(host->kinds[0].cause),
			       "%s", cause);
	host->kinds[i].cnt++;
}

static int take(void *arg, const struct store_accusation *accusation)
{
	struct hosttally *tally = arg;

	if (!machinecause_is(accusation->cause) || strcmp(accusation->job, tally->except) == 0)
		return 0;
	for (const char *name = accusation->hosts; *name != '\0';) {
		size_t len = strcspn(name, ",");
		struct hosttally_host *host = NULL;
		int ret = len > 0 ? find_or_make(tally, name, len, &host) : 0;

		if (ret == 0 && host != NULL)
			ret = add_job(host, accusation->job);
		if (ret < 0)
			return ret;
		if (host != NULL) {
			add_kind(host, accusation->cause);
			host->last_ns = MAX(host->last_ns, accusation->made_ns);
		}
		name += len;
		name += strspn(name, ", ");
	}
	return 0;
}

int hosttally_read(struct store *store, const char *except, struct hosttally *ret, struct err *err)
{
	int r;

	ret->except = except;
	r = store_list_accusations(store, take, ret, err);
	return r == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : r;
}

void hosttally_done(struct hosttally *tally)
{
	vec_foreach(host, &tally->hosts) {
		free(host->name);
		vec_foreach(job, &host->jobs)
			free(*job);
		vec_done(&host->jobs);
	}
	vec_done(&tally->hosts);
}
