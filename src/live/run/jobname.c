/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/jobname.h"

#include <ctype.h>
#include <string.h>

#define SCRIPT ".py"

void jobname_clean(const char *text, char ret[static JOBNAME_BYTES])
{
	size_t len = 0;

	for (; *text != '\0' && len < JOBNAME_BYTES - 1; text++) {
		bool plain = isalnum((unsigned char)*text) || strchr("._-", *text) != NULL;

		/* A folder is named by it: no hidden one, and no "..". */
		if (len == 0 && *text == '.')
			plain = false;
		ret[len++] = plain ? *text : '-';
	}
	ret[len] = '\0';
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static bool is_script(const char *word)
{
	size_t len = strlen(word), suffix = strlen(SCRIPT);

	return word[0] != '-' && len > suffix && strcmp(word + len - suffix, SCRIPT) == 0;
}

/* A launcher runs another script or module, which follows. */
static bool is_launcher(const char *module)
{
	static const char *const launchers[] = { "torch.distributed.run",
						 "torch.distributed.launch", "accelerate.commands",
						 "deepspeed" };

	for (size_t i = 0; i < ARRAY_SIZE(launchers); i++) {
		if (strncmp(module, launchers[i], strlen(launchers[i])) == 0)
			return true;
	}
	return false;
}

/* The first script or module; NULL: there is none. */
static const char *find_program(char *const *argv)
{
	for (size_t i = 1; argv[i] != NULL; i++) {
		if (strcmp(argv[i], "-c") == 0)
			return NULL; /* what follows is a program's text and its arguments */
		if (is_script(argv[i]))
			return base_name(argv[i]);
		if ((strcmp(argv[i], "-m") == 0 || strcmp(argv[i], "--module") == 0) &&
		    argv[i + 1] != NULL && !is_launcher(argv[i + 1]))
			return argv[i + 1];
	}
	return NULL;
}

void jobname_of_command(char *const *argv, char ret[static JOBNAME_BYTES])
{
	const char *program = is_script(argv[0]) ? base_name(argv[0]) : find_program(argv);
	size_t len;

	jobname_clean(program != NULL ? program : base_name(argv[0]), ret);
	len = strlen(ret);
	if (is_script(ret))
		ret[len - strlen(SCRIPT)] = '\0';
}
