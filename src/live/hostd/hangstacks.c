/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/hangstacks.h"

#include "base/log.h"
#include "hang/stackfacts.h"
#include "live/hostd/hostd_parts.h"
#include "read/dumps/dumps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BETWEEN_SAMPLES "2"

static struct hangstacks_reading *find(const struct hostd *hostd, uint32_t worker)
{
	vec_foreach(reading, &hostd->hangstacks.readings)
		if ((*reading)->where.worker == worker)
			return *reading;
	return NULL;
}

static struct hangstacks_reading *new_reading(const struct hostd *hostd, uint32_t pid, int rank,
					      const struct wire_where *where)
{
	struct hangstacks_reading *reading = calloc(1, sizeof(*reading));
	const char *out_dir = hostd->setup.options->out_dir;

	if (reading == NULL)
		return NULL;
	reading->where = *where;
	reading->pid = pid;
	reading->rank = rank;
	(void)snprintf(reading->path, sizeof(reading->path), "%s/stacks", out_dir);
	(void)mkdir(reading->path, 0755); /* EEXIST is fine; the reader reports other errors */
	(void)snprintf(reading->path, sizeof(reading->path), "%s/stacks/rank%d.json", out_dir,
		       rank);
	return reading;
}

static int start(struct hostd *hostd, struct hangstacks_reading *reading)
{
	char pid[16];
	const char *argv[] = { hostd->setup.options->program,
			       "stacks",
			       "--children",
			       "--twice",
			       BETWEEN_SAMPLES,
			       "--format",
			       "json",
			       "--output",
			       reading->path,
			       pid,
			       NULL };

	(void)snprintf(pid, sizeof(pid), "%u", reading->pid);
	return pool_add(hostd->hangstacks.pool, (uint64_t)(uintptr_t)reading, argv);
}

int hangstacks_begin(struct hostd *hostd, uint32_t pid, int rank, const struct wire_where *where)
{
	struct hangstacks_reading *reading;
	int error;

	if (find(hostd, where->worker) != NULL)
		return -EALREADY;
	if (hostd->setup.options->program == NULL || hostd->hangstacks.pool == NULL)
		return -ENOTSUP;
	reading = new_reading(hostd, pid, rank, where);
	if (reading == NULL)
		return -ENOMEM;
	error = vec_push(&hostd->hangstacks.readings, reading);
	if (error == 0) {
		error = start(hostd, reading);
		hostd->hangstacks.readings.cnt -= error < 0;
	}
	if (error < 0)
		free(reading);
	return error;
}

static int take_facts(const struct dumps *dumps, struct arena *arena, struct wire_where *ret)
{
	struct stackfacts facts;
	int error = dumps->records.cnt > 0 ? stackfacts_find(&dumps->records.data[0], arena, &facts)
					   : -ENODATA;

	if (error < 0)
		return error;
	ret->shown = facts.facts;
	ret->in_collective = facts.in_collective;
	(void)snprintf(ret->says, sizeof(ret->says), "%s", facts.says);
	(void)snprintf(ret->child, sizeof(ret->child), "%s", facts.child);
	if (ret->stack[0] == '\0')
		(void)snprintf(ret->stack, sizeof(ret->stack), "%s", facts.stack);
	return 0;
}

/* Fills what the file shows; leaves it as it is if there is none. */
static void take_file(const struct hangstacks_reading *reading, struct wire_where *ret)
{
	struct dumps dumps;
	struct err err = { "" };
	int error;

	dumps_init(&dumps);
	error = dumps_read(reading->path, &dumps, &err);
	if (error == 0)
		error = take_facts(&dumps, &dumps.arena, ret);
	if (error < 0)
		log_line(LOG_INFO, "event=stacks-not-read rank=%d pid=%u why=\"%s\"", reading->rank,
			 reading->pid, err.text);
	dumps_done(&dumps);
}

static void forget(struct hostd *hostd, const struct hangstacks_reading *reading)
{
	for (size_t i = 0; i < hostd->hangstacks.readings.cnt; i++) {
		if (hostd->hangstacks.readings.data[i] == reading) {
			hostd->hangstacks.readings.data[i] =
				hostd->hangstacks.readings.data[--hostd->hangstacks.readings.cnt];
			return;
		}
	}
}

void hangstacks_done(void *arg, uint64_t id, int status, const char *text)
{
	struct hostd *hostd = arg;
	struct hangstacks_reading *reading = (struct hangstacks_reading *)(uintptr_t)id;

	forget(hostd, reading);
	if (status != 0 && !hostd->setup.options->quiet)
		log_line(LOG_INFO,
			 "event=stacks-incomplete rank=%d pid=%u status=%d why=\"%.200s\"",
			 reading->rank, reading->pid, status, text);
	take_file(reading, &reading->where);
	reading->where.read = 1;
	hostd_publish(hostd, SUBJECT_WHERE, &reading->where, sizeof(reading->where));
	free(reading);
}
