/* SPDX-License-Identifier: Apache-2.0 */
#include "host/process/placement.h"

#include "host/process/procfs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENVIRONMENT_MAX_BYTES (256u << 10)
#define RANK_MAX (1 << 20)

struct environment {
	const char *text;
	size_t size;
};

/* The value of a variable; NULL: not set. */
static const char *find(const struct environment *env, const char *name)
{
	size_t len = strlen(name);
	const char *end;

	for (const char *at = env->text; at < env->text + env->size; at = end + 1) {
		end = memchr(at, '\0', (size_t)(env->text + env->size - at));
		if (end == NULL)
			return NULL;
		if (strncmp(at, name, len) == 0 && at[len] == '=')
			return at + len + 1;
	}
	return NULL;
}

/* Digits up to one of ends. Returns what is behind them, NULL where there is something else. */
static const char *read_number(const char *text, const char *ends, int32_t *ret)
{
	char *end;
	long number;

	if (text == NULL || *text < '0' || *text > '9')
		return NULL;
	errno = 0;
	number = strtol(text, &end, 10);
	if (errno != 0 || number > RANK_MAX || strchr(ends, *end) == NULL)
		return NULL;
	*ret = (int32_t)number;
	return end;
}

/* -1: unknown. */
static int32_t number_of(const struct environment *env, const char *name)
{
	int32_t ret = -1;

	return read_number(find(env, name), "", &ret) != NULL ? ret : -1;
}

/* Slurm's value for all nodes: "8(x2),4". Returns that of one node; 0: unknown. */
static int32_t tasks_of_node(const char *text, int32_t node)
{
	int32_t tasks, nodes;

	for (; node >= 0; node -= nodes) {
		nodes = 1;
		text = read_number(text, ",(", &tasks);
		if (text != NULL && strncmp(text, "(x", 2) == 0) {
			text = read_number(text + 2, ")", &nodes);
			text = text != NULL && *text == ')' ? text + 1 : NULL;
		}
		if (text == NULL || (*text != ',' && *text != '\0'))
			return 0;
		if (node < nodes)
			return tasks;
		text += *text == ',';
	}
	return 0;
}

static struct placement by_slurm(const struct environment *env)
{
	int32_t cnt = tasks_of_node(find(env, "SLURM_STEP_TASKS_PER_NODE"),
				    number_of(env, "SLURM_NODEID"));

	return (struct placement){ .rank_cnt = cnt };
}

static struct placement by_torchrun(const struct environment *env)
{
	int32_t cnt = number_of(env, "LOCAL_WORLD_SIZE"), local = number_of(env, "LOCAL_RANK");
	int32_t rank = number_of(env, "RANK");

	if (cnt <= 0 || local < 0 || local >= cnt || local > rank)
		return (struct placement){ 0 };
	return (struct placement){ .rank_cnt = cnt, .first = rank - local, .has_first = true };
}

static struct placement by_open_mpi(const struct environment *env)
{
	return (struct placement){ .rank_cnt = number_of(env, "OMPI_COMM_WORLD_LOCAL_SIZE") };
}

static struct placement by_mpich(const struct environment *env)
{
	return (struct placement){ .rank_cnt = number_of(env, "MPI_LOCALNRANKS") };
}

/* In the order in which python/perftracker/_rank.py asks them. */
static const struct {
	const char *rank;
	struct placement (*look)(const struct environment *env);
} launchers[] = {
	{ "RANK", by_torchrun },
	{ "SLURM_PROCID", by_slurm },
	{ "OMPI_COMM_WORLD_RANK", by_open_mpi },
	{ "PMI_RANK", by_mpich },
};

struct placement placement_parse(const char *environment, size_t size, int32_t rank)
{
	const struct environment env = { environment, size };

	for (size_t i = 0; i < ARRAY_SIZE(launchers) && rank >= 0; i++) {
		struct placement ret;

		if (number_of(&env, launchers[i].rank) != rank)
			continue;
		ret = launchers[i].look(&env);
		if (ret.rank_cnt > 0)
			return ret;
	}
	return (struct placement){ 0 };
}

struct placement placement_read(const char *root, uint32_t pid, int32_t rank)
{
	_cleanup_free_ char *text = malloc(ENVIRONMENT_MAX_BYTES);
	char path[64];
	int size;

	if (text == NULL)
		return (struct placement){ 0 };
	(void)snprintf(path, sizeof(path), "%u/environ", pid);
	size = procfs_read(root, path, text, ENVIRONMENT_MAX_BYTES);
	return placement_parse(text, size > 0 ? (size_t)size : 0, rank);
}
