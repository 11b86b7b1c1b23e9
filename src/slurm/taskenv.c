/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/taskenv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define HOOK "/usr/lib/perftracker/python"
#define HOSTD "/run/perftracker/hostd.sock"

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

const char *taskenv_parse_words(int cnt, const char *const *words, struct taskenv_settings *ret)
{
	const char *unknown = NULL;

	*ret = (struct taskenv_settings){ .hook = HOOK, .hostd = HOSTD };
	for (int i = 0; i < cnt; i++) {
		const char *word = words[i];

		if (strcmp(word, "all") == 0)
			ret->all = true;
		else if (begins(word, "hook=/"))
			ret->hook = word + strlen("hook=");
		else if (begins(word, "hostd=/"))
			ret->hostd = word + strlen("hostd=");
		else if (unknown == NULL)
			unknown = word;
	}
	return unknown;
}

int taskenv_parse_choice(const char *text, enum taskenv_choice *ret)
{
	static const struct {
		const char *word;
		enum taskenv_choice choice;
	} known[] = {
		{ "yes", TASKENV_YES },	 { "on", TASKENV_YES },	  { "1", TASKENV_YES },
		{ "true", TASKENV_YES }, { "no", TASKENV_NO },	  { "off", TASKENV_NO },
		{ "0", TASKENV_NO },	 { "false", TASKENV_NO },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (text == NULL || strcasecmp(text, known[i].word) == 0) {
			*ret = known[i].choice;
			return 0;
		}
	}
	return -EINVAL;
}

static void add(struct taskenv_changes *changes, const char *name, const char *value)
{
	struct taskenv_change *change = &changes->list[changes->cnt];
	int len = snprintf(change->value, sizeof(change->value), "%s", value);

	change->name = name;
	if (len >= 0 && (size_t)len < sizeof(change->value))
		changes->cnt++;
}

/* Whether one of the folders between the colons is this one. */
static bool has_folder(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	for (const char *at = path; at != NULL; at = strchr(at, ':')) {
		at += *at == ':';
		if (strncmp(at, folder, len) == 0 && (at[len] == ':' || at[len] == '\0'))
			return true;
	}
	return false;
}

static void add_hook(struct taskenv_changes *changes, const char *hook, const char *path)
{
	char value[TASKENV_VALUE_MAX];
	bool empty = path == NULL || path[0] == '\0';
	int len =
		snprintf(value, sizeof(value), "%s%s%s", hook, empty ? "" : ":", empty ? "" : path);

	if (len < 0 || (size_t)len >= sizeof(value) || (!empty && has_folder(path, hook)))
		return;
	add(changes, "PYTHONPATH", value);
}

void taskenv_decide(const struct taskenv_settings *settings, enum taskenv_choice choice,
		    const char *own, const char *path, const char *hostd,
		    struct taskenv_changes *ret)
{
	enum taskenv_choice said = choice;

	ret->cnt = 0;
	/* A word of the command line counts more than the environment, and that more than the site. */
	if (said == TASKENV_UNSAID && own != NULL && taskenv_parse_choice(own, &said) < 0)
		said = TASKENV_NO; /* hostd takes what it does not know for a no */
	if (said == TASKENV_NO || (said == TASKENV_UNSAID && !settings->all)) {
		if (choice == TASKENV_NO)
			add(ret, "PERFTRACKER", "0");
		return;
	}
	if (choice == TASKENV_YES || own == NULL)
		add(ret, "PERFTRACKER", "1");
	add_hook(ret, settings->hook, path);
	if (hostd == NULL && strcmp(settings->hostd, HOSTD) != 0)
		add(ret, "PERFTRACKER_HOSTD", settings->hostd);
}
