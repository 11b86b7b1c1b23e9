/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optional plugin for Slurm: `srun --perftracker`, `sbatch --perftracker`. It runs in srun and
 * sbatch, where the option is checked, and in slurmstepd as the user of the job, just before the
 * command: there it changes variables of the task and nothing else. A failure never fails a job.
 * Source: slurm.schedmd.com/spank.html. A plugin is for the release of Slurm that it was built with.
 */
#include "slurm/taskenv.h"

#include <slurm/spank.h>
#include <stdlib.h>
#include <unistd.h>

SPANK_PLUGIN(perftracker, 1)

static int option_given(int value, const char *text, int remote)
{
	enum taskenv_choice choice;

	(void)value;
	if (remote || taskenv_parse_choice(text, &choice) == 0)
		return 0;
	slurm_error("perftracker: --perftracker=%s: expected yes or no", text);
	return -1;
}

/* Slurm takes texts that are not constant. */
static struct spank_option make_option(void)
{
	static char name[] = "perftracker", argument[] = "yes|no";
	static char usage[] = "let PerfTracker watch this job, or not, where the site has it";

	return (struct spank_option){ .name = name,
				      .arginfo = argument,
				      .usage = usage,
				      .has_arg = 2, /* may have one */
				      .cb = option_given };
}

int slurm_spank_init(spank_t spank, int cnt, char *words[])
{
	struct spank_option option = make_option();
	struct taskenv_settings settings;
	const char *unknown = taskenv_parse_words(cnt, (const char *const *)words, &settings);

	if (unknown != NULL && spank_context() == S_CTX_LOCAL)
		slurm_error("perftracker: plugstack.conf: %s: expected all, hook=/FOLDER or "
			    "hostd=/SOCKET",
			    unknown);
	if (spank_context() != S_CTX_SLURMD && spank_context() != S_CTX_JOB_SCRIPT &&
	    spank_option_register(spank, &option) != ESPANK_SUCCESS)
		slurm_error("perftracker: the option --perftracker was not registered");
	return ESPANK_SUCCESS;
}

static enum taskenv_choice choice_of(spank_t spank)
{
	struct spank_option option = make_option();
	enum taskenv_choice choice = TASKENV_UNSAID;
	char *text = NULL;

	if (spank_option_getopt(spank, &option, &text) != ESPANK_SUCCESS)
		return TASKENV_UNSAID;
	if (text != NULL && text[0] == '\0')
		text = NULL; /* slurmstepd gets an option without a value so */
	return taskenv_parse_choice(text, &choice) < 0 ? TASKENV_UNSAID : choice;
}

/* buffer, NULL where the variable is not set. *ok: false where it is too long for the buffer. */
static const char *value_of(spank_t spank, const char *name, char *buffer, bool *ok)
{
	int ret = (int)spank_getenv(spank, name, buffer, (int)TASKENV_VALUE_MAX);

	*ok = ret == ESPANK_SUCCESS || ret == ESPANK_ENV_NOEXIST;
	return ret == ESPANK_SUCCESS ? buffer : NULL;
}

struct values {
	char own[TASKENV_VALUE_MAX], path[TASKENV_VALUE_MAX], hostd[TASKENV_VALUE_MAX];
	struct taskenv_changes changes;
};

static void change_task(spank_t spank, const struct taskenv_settings *settings,
			struct values *values)
{
	bool ok[3];
	const char *own = value_of(spank, "PERFTRACKER", values->own, &ok[0]);
	const char *path = value_of(spank, "PYTHONPATH", values->path, &ok[1]);
	const char *hostd = value_of(spank, "PERFTRACKER_HOSTD", values->hostd, &ok[2]);

	if (!ok[0] || !ok[1] || !ok[2] || access(hostd != NULL ? hostd : settings->hostd, F_OK) < 0)
		return;
	taskenv_decide(settings, choice_of(spank), own, path, hostd, &values->changes);
	for (size_t i = 0; i < values->changes.cnt; i++)
		(void)spank_setenv(spank, values->changes.list[i].name,
				   values->changes.list[i].value, 1);
}

int slurm_spank_task_init(spank_t spank, int cnt, char *words[])
{
	struct values *values = calloc(1, sizeof(*values));
	struct taskenv_settings settings;

	(void)taskenv_parse_words(cnt, (const char *const *)words, &settings);
	if (values != NULL)
		change_task(spank, &settings, values);
	free(values);
	return ESPANK_SUCCESS;
}
