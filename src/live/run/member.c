/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/member.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The hub's port is so far from that of the job's own rendezvous, which all members know. */
#define PORT_APART 413u
#define PORT_USUAL 29500u /* torch's */

typedef const char *find_fn(const char *name);

/* --- words --- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* "--node-rank" and "--node_rank" are one option. */
static bool same_option(const char *word, const char *name, size_t len)
{
	if (strncmp(word, "--", 2) != 0 || strlen(name) != len)
		return false;
	word += 2;
	for (size_t i = 0; i < len; i++) {
		char a = word[i] == '_' ? '-' : word[i];

		if (a != name[i])
			return false;
	}
	return true;
}

/* The value of "--NAME VALUE" or "--NAME=VALUE" up to the script; NULL: not given. */
static const char *option(char *const *argv, const char *name)
{
	for (size_t i = 0; argv[i] != NULL; i++) {
		size_t len = strcspn(argv[i], "=");

		if (strcmp(argv[i], "--") == 0 ||
		    (i > 0 && strstr(argv[i], ".py") != NULL && argv[i][0] != '-'))
			break; /* what follows is the script's */
		if (len < 3 || !same_option(argv[i], name, len - 2))
			continue;
		return argv[i][len] == '=' ? argv[i] + len + 1 : argv[i + 1];
	}
	return NULL;
}

static bool has_flag(char *const *argv, const char *name)
{
	for (size_t i = 0; argv[i] != NULL; i++) {
		size_t len = strlen(argv[i]);

		if (len > 2 && same_option(argv[i], name, len - 2))
			return true;
	}
	return false;
}

/* The first that is set. */
static const char *first_of(const char *a, const char *b, const char *c)
{
	if (a != NULL && a[0] != '\0')
		return a;
	if (b != NULL && b[0] != '\0')
		return b;
	return c;
}

/* A whole number of at least 0; -1: none. "2:4", as torchrun has it, is its second. */
static int number(const char *text)
{
	const char *colon = text == NULL ? NULL : strchr(text, ':');
	char *end;
	long value;

	if (colon != NULL)
		text = colon + 1;
	if (text == NULL || text[0] == '\0')
		return -1;
	value = strtol(text, &end, 10);
	return *end == '\0' && value >= 0 && value < 10000000 ? (int)value : -1;
}

void member_first_host(const char *list, char *ret, size_t size)
{
	size_t stem = strcspn(list, "[,");

	if (list[stem] != '[') {
		(void)snprintf(ret, size, "%.*s", (int)stem, list);
		return;
	}
	(void)snprintf(ret, size, "%.*s%.*s", (int)stem, list, (int)strcspn(list + stem + 1, "],-"),
		       list + stem + 1);
}

/* "HOST:PORT", "[HOST]:PORT" or "HOST". */
static void set_endpoint(struct member *member, const char *endpoint)
{
	const char *colon = strrchr(endpoint, ':'), *from = endpoint;
	size_t len = strlen(endpoint);
	int port = -1;

	if (colon != NULL && (strchr(endpoint, ':') == colon || endpoint[0] == '[')) {
		port = number(colon + 1);
		len = (size_t)(colon - endpoint);
	}
	if (from[0] == '[' && len > 2 && from[len - 1] == ']') {
		from++;
		len -= 2;
	}
	(void)snprintf(member->address, sizeof(member->address), "%.*s", (int)len, from);
	if (port > 0)
		member->port = (unsigned)port;
}

static void set_address(struct member *member, const char *address, const char *port)
{
	if (address != NULL && address[0] != '\0')
		set_endpoint(member, address);
	if (number(port) > 0)
		member->port = (unsigned)number(port);
}

int member_set_hub(struct member *member, const char *hub)
{
	static const char scheme[] = "nats://";

	if (strncmp(hub, scheme, strlen(scheme)) == 0)
		hub += strlen(scheme);
	member->address[0] = '\0';
	member->port = 0;
	set_endpoint(member, hub);
	if (member->address[0] == '\0' || member->port == 0)
		return -EINVAL;
	if (member->members == 1) {
		member->members = 0;
		member->index = -1;
	}
	if (member->job[0] == '\0')
		(void)snprintf(member->job, sizeof(member->job), "%.100s-%u", member->address,
			       member->port);
	return 0;
}

/* --- launchers --- */

/* Those that start one process per rank from one process per host. */
static bool is_spawner(char *const *argv, const char **ret)
{
	static const char *const names[] = {
		"torchrun",   "torch.distributed.run",	    "torch.distributed.launch",
		"accelerate", "accelerate.commands.launch", "deepspeed"
	};

	for (size_t i = 0; argv[i] != NULL && i < 8; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
			if (strcmp(base_name(argv[i]), names[k]) != 0)
				continue;
			*ret = k < 3 ? "torchrun" : names[k < 5 ? 3 : 5];
			return true;
		}
		if (i > 0 && strstr(argv[i], ".py") != NULL)
			break;
	}
	return false;
}

static void take_spawner(char *const *argv, find_fn *find, struct member *ret)
{
	const char *members =
		first_of(option(argv, "nnodes"), option(argv, "num-machines"),
			 first_of(option(argv, "num-nodes"), find("PET_NNODES"), NULL));
	const char *index = first_of(option(argv, "node-rank"), option(argv, "machine-rank"),
				     find("PET_NODE_RANK"));
	const char *endpoint =
		first_of(option(argv, "rdzv-endpoint"), find("PET_RDZV_ENDPOINT"), NULL);
	const char *address = first_of(option(argv, "master-addr"), option(argv, "main-process-ip"),
				       find("PET_MASTER_ADDR"));
	const char *port = first_of(option(argv, "master-port"), option(argv, "main-process-port"),
				    find("PET_MASTER_PORT"));
	const char *id = first_of(option(argv, "rdzv-id"), find("PET_RDZV_ID"), NULL);

	if (number(members) > 0)
		ret->members = (unsigned)number(members);
	else if (strcmp(ret->launcher, "torchrun") == 0)
		ret->members = 1; /* its default; accelerate may have a file that says more */
	ret->index = number(index);
	if (endpoint != NULL)
		set_endpoint(ret, endpoint);
	else
		set_address(ret, address, port);
	if (id != NULL)
		(void)snprintf(ret->job, sizeof(ret->job), "%s", id);
	if (has_flag(argv, "standalone"))
		ret->members = 1;
}

/* What a scheduler or MPI sets for each process that it starts. */
static const struct scheduler {
	const char *name, *index, *members;
} schedulers[] = {
	/* A batch script has SLURM_PROCID and SLURM_NTASKS, too, and runs on one host. */
	{ "Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS" },
	{ "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
	{ "MPI", "PMI_RANK", "PMI_SIZE" },
	{ "environment", "RANK", "WORLD_SIZE" },
	{ "Kubernetes", "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS" },
};

/* One process of the scheduler is one of this job's: of a host if it starts ranks itself. */
static void take_scheduler(find_fn *find, bool spawner, struct member *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(schedulers); i++) {
		int index = number(find(schedulers[i].index));
		int members = number(find(schedulers[i].members));

		if (index < 0 || (members <= 0 && !spawner))
			continue;
		if (ret->index < 0)
			ret->index = index;
		if (ret->members == 0 && members > 0)
			ret->members = (unsigned)members;
		if (ret->launcher[0] == '\0')
			ret->launcher = schedulers[i].name;
		return;
	}
}

static void take_addresses(find_fn *find, struct member *ret)
{
	const char *list = find("SLURM_STEP_NODELIST");

	if (ret->address[0] == '\0')
		set_address(ret, find("MASTER_ADDR"), find("MASTER_PORT"));
	if (ret->address[0] == '\0' && list != NULL)
		member_first_host(list, ret->address, sizeof(ret->address));
}

/* Slurm's numbers tell jobs apart also where two of them use one port one after the other. */
static void name_job(find_fn *find, struct member *ret)
{
	const char *slurm = find("SLURM_JOB_ID"), *step = find("SLURM_STEP_ID");
	const char *set = first_of(find("JOBSET_NAME"), find("PERFTRACKER_JOB_ID"), NULL);

	if (ret->job[0] != '\0' && strcmp(ret->job, "none") != 0)
		return;
	if (slurm != NULL)
		(void)snprintf(ret->job, sizeof(ret->job), "slurm-%s.%s", slurm,
			       step != NULL ? step : "0");
	else if (set != NULL)
		(void)snprintf(ret->job, sizeof(ret->job), "%s", set);
	else
		(void)snprintf(ret->job, sizeof(ret->job), "%.100s-%u", ret->address, ret->port);
}

void member_find(char *const *argv, find_fn *find, struct member *ret)
{
	bool spawner;

	*ret = (struct member){ .index = -1, .launcher = "", .port = PORT_USUAL };
	spawner = is_spawner(argv, &ret->launcher);
	if (spawner)
		take_spawner(argv, find, ret);
	if (ret->members != 1)
		take_scheduler(find, spawner, ret);
	if (ret->members <= 1) {
		ret->members = 1;
		ret->index = 0;
		return;
	}
	take_addresses(find, ret);
	name_job(find, ret);
	ret->port =
		ret->port + PORT_APART < 65536 ? ret->port + PORT_APART : ret->port - PORT_APART;
}
