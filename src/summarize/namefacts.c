/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/namefacts.h"

#include "summarize/window.h"

#include <string.h>

#define OWN_HOOK "perftracker/_"

static bool begins(const char *name, const char *word)
{
	return strncmp(name, word, strlen(word)) == 0;
}

static bool holds(const char *name, const char *word)
{
	return strstr(name, word) != NULL;
}

/* "train.py(7): <genexpr>": a generator expression or a comprehension. */
static bool is_comprehension(const char *name)
{
	static const char *const kinds[] = { "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>" };
	const char *function = strrchr(name, ' ');

	for (size_t i = 0; function != NULL && i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(function + 1, kinds[i]) == 0)
			return true;
	}
	return false;
}

static uint16_t facts_of(const char *name)
{
	unsigned int facts = 0;

	facts |= window_step_number(name) >= 0 ? NAME_STEP : 0;
	facts |= begins(name, "Optimizer.step#") ? NAME_OPTIMIZER : 0;
	facts |= begins(name, "enumerate(DataLoader)") ? NAME_LOADER : 0;
	facts |= holds(name, ".forward") ? NAME_FORWARD : 0;
	facts |= holds(name, "autograd::engine::evaluate_function") || holds(name, "Backward")
			 ? NAME_BACKWARD
			 : 0;
	facts |= holds(name, "threading.py") && holds(name, "_bootstrap") ? NAME_BOOTSTRAP : 0;
	facts |= holds(name, "run_backward") ? NAME_RUN_BACKWARD : 0;
	facts |= begins(name, OWN_HOOK) ? NAME_OWN_HOOK : 0;
	facts |= is_comprehension(name) ? NAME_COMPREHENSION : 0;
	return (uint16_t)facts;
}

uint16_t *names_facts(const struct strtab *strings)
{
	uint16_t *facts = calloc(strings->cnt + 1, sizeof(*facts));

	for (size_t id = 0; id < strings->cnt && facts != NULL; id++)
		facts[id] = facts_of(strings->entries[id].text);
	return facts;
}
