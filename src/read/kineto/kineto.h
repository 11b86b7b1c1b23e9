/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader of Kineto and other Chrome traces: torch 1.8 to 2.13, CUDA, ROCm,
 * Triton, CPU only; .json or .json.gz (recognized by content); an object with
 * "traceEvents" or a bare array of events. One pass, through a window: memory
 * grows with events and distinct names, not with the text.
 * Source: pytorch/kineto output_json.cpp; facts measured on real files.
 *
 * Fatal, with one line "<file>:<byte offset in the text>: expected X, found Y":
 * text that is not JSON (grammar, escapes, NaN, trailing bytes, more than 512
 * levels), a truncated or damaged file, a name over 1 MiB, a document, event
 * list or event of the wrong type, a second event list, none, or a limit below.
 *
 * Repaired or dropped, and counted in trace.drops: a value of the wrong type or
 * out of range inside an event or the metadata (bad_value; the value is taken as
 * absent); an event without a usable time or name (bad_event); invalid UTF-8 and
 * lone surrogates (bad_utf8, become U+FFFD); and what trace_drops names. Of
 * duplicate keys the last one counts. A zero byte in a name becomes U+FFFD.
 * Metadata events ("M") are read for thread names and otherwise not counted.
 *
 * Times: decimal microseconds, rounded to the nearest ns, halves away from zero;
 * baseTimeNanoseconds, anywhere in the file, is added to all of them.
 * Payload of a collective: the larger of its input and output elements times the
 * element size, as nccl-tests count it.
 */
#pragma once

#include "base/err.h"
#include "model/event.h"
#include "read/reader.h"

/* Zeroed: defaults. */
struct kineto_options {
	uint64_t max_text_bytes;   /* decompressed text; default 256 GiB */
	uint64_t max_memory_bytes; /* of the trace made; default 8 GiB */
	size_t window_bytes;	   /* default 256 KiB, at least 64 */
	bool head_only;		   /* stop at the first event: only meta is filled */
};

/*
 * Reads the trace in path. opt and err may be NULL. Returns 0 or -errno: that of
 * open(), -EISDIR, -EINVAL (not a regular file, not a trace), -EBADMSG
 * (malformed), -EMSGSIZE, -EFBIG, -ENOMEM. *ret is written on success only; give
 * it to trace_done() then.
 */
_must_check_ int kineto_read(const char *path, const struct kineto_options *opt, struct trace *ret,
			     struct err *err);

/* The same from data[len], plain or gzip; source_name replaces the path in messages. */
_must_check_ int kineto_read_memory(const void *data, size_t len, const char *source_name,
				    const struct kineto_options *opt, struct trace *ret,
				    struct err *err);

/* For the row in reader.c: kineto_read() with defaults, and the same up to the first event. */
_must_check_ int kineto_read_input(const struct reader_input *input, struct trace *ret,
				   struct err *err);
_must_check_ int kineto_read_head(const char *file, struct trace *ret);
