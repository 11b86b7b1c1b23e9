/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of dumps.h: one function per format, and what they share. */
#pragma once

#include "read/dumps/dumps.h"

#include <jansson.h>

/* A file in memory. */
struct dumptext {
	const char *path;
	const char *data;
	size_t len;
};

/* A record without anything known but its source. */
struct hang_record dump_record(const char *source);

/* The text of a member, in the arena; "" without one. NULL: out of memory. */
const char *dumpjson_text(struct arena *arena, const json_t *object, const char *key);
int64_t dumpjson_number(const json_t *object, const char *key, int64_t fallback);
bool dumpjson_flag(const json_t *object, const char *key);

/* Parses the text. Returns NULL with a line in err. */
json_t *dumpjson_load(const struct dumptext *text, struct err *err);

/* An array of processes as in perftracker.stacks.v1. Returns 0 or -ENOMEM. */
_must_check_ int stacksdump_processes(const json_t *array, struct arena *arena,
				      struct stacks_process **ret, size_t *ret_cnt);
/* Processes with a rank become records, others are the children of their parents. */
_must_check_ int stacksdump_read(const struct dumptext *text, struct dumps *dumps, struct err *err);
_must_check_ int recorddump_read(const struct dumptext *text, struct dumps *dumps, struct err *err);
/* root: as torch writes it, pickled or JSON. */
_must_check_ int nccldump_take(const json_t *root, const struct dumptext *text, struct dumps *dumps,
			       struct err *err);
_must_check_ int pyspydump_read(const struct dumptext *text, struct dumps *dumps, struct err *err);
_must_check_ int pyspydump_take(const json_t *root, const struct dumptext *text,
				struct dumps *dumps, struct err *err);
_must_check_ int gdbdump_read(const struct dumptext *text, struct dumps *dumps, struct err *err);

/* The last number of the file's name, of that behind "rank" if there is one; -1: none. */
int dumpname_rank(const char *path);
