/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of file formats: one row for each, in reader.c. A file is recognized by its first
 * bytes, not by its name. A path names a file, or "FILE#WORKER": one worker of a file that
 * holds several. How to add a format: docs/readers.md.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "format/sidecar/sidecar.h"
#include "model/event.h"

/* What a file holds. A trace is made of CONTENT_TRACE and CONTENT_FLIGHT_LOG. */
enum reader_content {
	CONTENT_TRACE,
	CONTENT_FLIGHT_LOG,
	CONTENT_FINGERPRINT, /* fingerprint_read() */
	CONTENT_SIDECAR,     /* sidecar_read() */
};

typedef VEC(int64_t) reader_worker_vec;

/* The trace to read. */
struct reader_input {
	const char *file;	       /* to open */
	const char *source;	       /* the path as given: for messages and the trace's meta */
	int64_t worker;		       /* the number behind '#'; -1: none */
	const struct sidecar *sidecar; /* recorded beside the trace; NULL: none */
};

struct reader {
	const char *name; /* "Kineto trace" */
	enum reader_content content;

	/* How a file is recognized: by its first bytes or its path. Neither: by no other row. */
	const char *magic;
	size_t magic_len;
	bool (*is_path)(const char *path);

	/* Names of the files that a folder among the inputs contributes. */
	const char *suffixes[3];

	/*
	 * Makes the trace. Returns 0 or -errno with a line in err; *ret is written on success
	 * only. NULL: no trace can be made.
	 */
	int (*read)(const struct reader_input *input, struct trace *ret, struct err *err);
	bool applies_sidecar; /* read() does; else reader_read() does afterwards */

	/* Reads only the metadata before the first event. NULL: as slow as read(). */
	int (*read_head)(const char *file, struct trace *ret);

	/* Appends the workers of a file. Returns 0 or -errno. NULL: always one worker. */
	int (*list_workers)(const char *file, reader_worker_vec *ret);

	const char *family;	/* traces are only comparable within it; NULL: with all others */
	const char *ranks_from; /* where the rank of a trace comes from */
};

/* The row of the file in path. Never NULL: the JSON reader reports what is wrong with the rest. */
const struct reader *reader_of(const char *path);

/* The row whose files are named like this, "#WORKER" ignored; NULL: none. */
const struct reader *reader_of_name(const char *name);

/* Appends "*.json, *.json.gz, *.flight": the suffixes of all formats of traces or of content. */
void reader_list_suffixes(enum reader_content content, struct str *out);

/*
 * Reads the trace in path and applies sidecar (may be NULL). Returns 0 or -errno with a line
 * in err. *ret is written on success only; give it to trace_done() then.
 */
_must_check_ int reader_read(const char *path, const struct sidecar *sidecar, struct trace *ret,
			     struct err *err);

/*
 * Reads the metadata of the trace in path where that takes no pass over its events. Returns
 * 0 or -errno; -ENOTSUP: the format has no such head.
 */
_must_check_ int reader_read_head(const char *path, struct trace *ret);

/*
 * The workers of the file in path, when path names none of them. Empty for a file of one
 * worker, and for a file that cannot be read: reader_read() reports why. Returns 0 or
 * -ENOMEM; free ret with vec_done() in either case.
 */
_must_check_ int reader_list_workers(const char *path, reader_worker_vec *ret);
