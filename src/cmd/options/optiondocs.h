/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what the tables of optiontable.h say: --help, the OPTIONS section of a man page,
 * completions. tools/generate writes the files that are checked in from
 * "perftracker __docs"; the test cli-options fails when one of them is stale.
 */
#pragma once

#include "base/str.h"
#include "cmd/options/optiontable.h"

/* The text of "perftracker COMMAND --help", on standard output. */
void optiondocs_help(const struct command *command);
void optiondocs_append_help(const struct command *command, struct str *out);

/* The options as mdoc, without the heading. */
void optiondocs_man(const struct command *command, struct str *out);

/* A completion script for all commands. */
void optiondocs_bash(const struct command *const *commands, size_t cnt, struct str *out);
void optiondocs_zsh(const struct command *const *commands, size_t cnt, struct str *out);
void optiondocs_fish(const struct command *const *commands, size_t cnt, struct str *out);

/*
 * "perftracker __docs man COMMAND|bash|zsh|fish": words are what follows __docs. Returns an
 * exit status.
 */
int optiondocs_main(const struct command *const *commands, size_t cnt, int word_cnt, char **words);
