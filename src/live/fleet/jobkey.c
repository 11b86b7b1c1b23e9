/* SPDX-License-Identifier: Apache-2.0 */
#include "live/fleet/jobkey.h"

#include "base/str.h"
#include "live/run/jobname.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#define KEPT_MAX (JOBKEY_JOB_MAX - 18u) /* characters in front of a hash */

static bool is_plain_char(char c)
{
	return isalnum((unsigned char)c) || (c != '\0' && strchr("._+:@#-", c) != NULL);
}

/* What was changed or is long gets a hash, so that two jobs never become one. */
static void clean(const char *text, char ret[static JOBKEY_JOB_MAX])
{
	size_t len = strlen(text), at = 0;
	bool changed = len == 0 || len > KEPT_MAX || text[0] == '.' || text[0] == '-';

	for (; at < MIN(len, (size_t)KEPT_MAX); at++) {
		bool plain = is_plain_char(text[at]) && !(at == 0 && changed);

		ret[at] = plain ? text[at] : '_';
		changed |= !plain;
	}
	ret[at] = '\0';
	if (changed)
		(void)snprintf(ret + at, 18, "-%016" PRIx64, (uint64_t)XXH3_64bits(text, len));
}

/* Slurm's job and step; a batch script without srun has no step. */
static void append_slurm(const struct attachment *a, struct str *out)
{
	const char *job = attachment_find(a, "SLURM_JOB_ID");
	const char *step = attachment_find(a, "SLURM_STEP_ID");

	if (job != NULL)
		str_printf(out, "slurm-%s%s%s", job, step != NULL ? "." : "",
			   step != NULL ? step : "");
}

static void append_other_scheduler(const struct attachment *a, struct str *out)
{
	static const char *const names[] = { "JOBSET_NAME", "PMIX_NAMESPACE", "PMI_JOBID",
					     "RAY_JOB_ID" };

	for (size_t i = 0; i < ARRAY_SIZE(names) && out->len == 0; i++) {
		const char *text = attachment_find(a, names[i]);

		if (text != NULL)
			str_append(out, text);
	}
}

/* torchrun's run id is "none" unless the user names one: then the rendezvous tells jobs apart. */
static void append_rendezvous(const struct attachment *a, struct str *out)
{
	const char *id = attachment_find(a, "TORCHELASTIC_RUN_ID");
	const char *address = attachment_find(a, "MASTER_ADDR");
	const char *port = attachment_find(a, "MASTER_PORT");
	const char *plus = out->len > 0 ? "+" : "";

	if (id == NULL)
		id = attachment_find(a, "PET_RDZV_ID");
	if (id != NULL && strcmp(id, "none") != 0)
		str_printf(out, "%s%s", plus, id);
	else if (address != NULL && attachment_number(a, "RANK") >= 0)
		str_printf(out, "%s%s:%s", plus, address, port != NULL ? port : "");
}

void jobkey_divide(char *command, char *ret[static JOBKEY_WORDS_MAX])
{
	char *save = NULL;
	size_t cnt = 0;

	for (char *word = strtok_r(command, " ", &save); word != NULL && cnt < JOBKEY_WORDS_MAX - 1;
	     word = strtok_r(NULL, " ", &save))
		ret[cnt++] = word;
	ret[cnt] = NULL;
}

/* The name of a script and the process: that of another run of it differs. */
static void append_origin(const struct joborigin *origin, struct str *out)
{
	char words[sizeof(origin->command)], name[JOBNAME_BYTES], *argv[JOBKEY_WORDS_MAX];

	(void)snprintf(words, sizeof(words), "%s", origin->command);
	jobkey_divide(words, argv);
	if (argv[0] == NULL)
		(void)snprintf(name, sizeof(name), "process");
	else
		jobname_of_command(argv, name);
	str_printf(out, "%.40s-%u-%" PRIu64, name, origin->pid, origin->start);
}

/* How often the scheduler has started the whole job again: the same on all of its hosts. */
static void append_epoch(const struct attachment *a, struct str *out)
{
	static const char *const names[] = { "SLURM_RESTART_COUNT", "JOBSET_RESTART_ATTEMPT" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int epoch = attachment_number(a, names[i]);

		if (epoch > 0) {
			str_printf(out, "#%d", epoch);
			return;
		}
	}
}

int jobkey_make(const char *cluster, uid_t uid, const struct attachment *attachment,
		const struct joborigin *origin, struct jobkey *ret)
{
	const char *named = attachment_find(attachment, "PERFTRACKER_JOB");
	struct str job = { 0 };

	int error;

	*ret = (struct jobkey){ .is_plain = false };
	if (named != NULL) {
		str_append(&job, named);
	} else {
		append_slurm(attachment, &job);
		append_other_scheduler(attachment, &job);
		append_rendezvous(attachment, &job);
	}
	ret->is_plain = job.len == 0;
	if (ret->is_plain)
		append_origin(origin, &job);
	else
		append_epoch(attachment, &job);
	clean(str_borrow(&job), ret->job);
	(void)snprintf(ret->text, sizeof(ret->text), "%.24s/u%u/%s", cluster, (unsigned)uid,
		       ret->job);
	error = str_error(&job);
	str_done(&job);
	return error;
}

bool jobkey_split(const char *text, const char *cluster, unsigned *ret_uid, const char **ret_job)
{
	size_t len = strlen(cluster);
	unsigned long uid;
	char *end;

	if (strlen(text) >= JOBKEY_MAX || strncmp(text, cluster, len) != 0 ||
	    strncmp(text + len, "/u", 2) != 0 || !isdigit((unsigned char)text[len + 2]))
		return false;
	uid = strtoul(text + len + 2, &end, 10);
	if (*end != '/' || uid > UINT32_MAX || end[1] == '.' || end[1] == '-' || end[1] == '\0' ||
	    strlen(end + 1) >= JOBKEY_JOB_MAX)
		return false;
	for (const char *c = end + 1; *c != '\0'; c++) {
		if (!is_plain_char(*c))
			return false;
	}
	*ret_uid = (unsigned)uid;
	*ret_job = end + 1;
	return true;
}

void jobkey_digest(const char *text, char ret[static 17])
{
	(void)snprintf(ret, 17, "%016" PRIx64, (uint64_t)XXH3_64bits(text, strlen(text)));
}
