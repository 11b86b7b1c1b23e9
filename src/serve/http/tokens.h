/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may ask a server that others reach: a file with one token a line, and its role. The file is
 * the user's own, mode 0600.
 *	# ROLE TOKEN [NAME]
 *	viewer 9c1e4f0a6d6b4c0c8f0e on-call
 */
#pragma once

#include "base/err.h"

#define TOKENS_MAX 1000u
#define TOKEN_BYTES_MIN 16u
#define TOKEN_BYTES_MAX 200u
#define TOKEN_NAME_BYTES 64u

/* A role may do what those before it may. */
enum role { ROLE_NONE, ROLE_VIEWER, ROLE_OPERATOR };

struct tokens;

/* Returns 0, or -errno with a line in err: the file, the line, what was expected and found. */
_must_check_ int tokens_read(const char *path, struct tokens **ret, struct err *err);

/* The same from text; path names it in err. */
_must_check_ int tokens_parse(const char *path, const char *text, size_t len, struct tokens **ret,
			      struct err *err);
struct tokens *tokens_free(struct tokens *tokens);

/* The role of a token; ROLE_NONE: unknown. Takes the same time whichever token it is. */
enum role tokens_role(const struct tokens *tokens, const char *token);

/* The NAME of a known token, "" where its line has none. */
void tokens_name(const struct tokens *tokens, const char *token, char ret[static TOKEN_NAME_BYTES]);
