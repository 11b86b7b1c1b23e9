/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From input files to fingerprints, several at once: what `analyze` and
 * `localize` have in common. A file that cannot be used does not stop the
 * others; it is listed with its reason.
 */
#pragma once

#include "cmd/cmd.h"
#include "summarize/summarize.h"

struct load_failure {
	char *source;
	struct err why;
};

struct load_result {
	struct fingerprint **fps; /* in the order of the paths, failures left out */
	size_t cnt;
	VEC(struct load_failure) failures;
};

struct load_options {
	struct window_options window;
	unsigned int job_cnt; /* threads; at least 1 */
	bool progress;	      /* a line on stderr when it takes longer than a second */
};

/* All steps; a thread for each processor, 64 at most; progress where somebody can see it. */
struct load_options load_defaults(void);

/*
 * The values of --steps and --jobs, which getopt_long() has just left in optarg. Return -1
 * to go on, or EXIT_USAGE with a line on stderr in the name of the command.
 */
int load_parse_steps(struct load_options *options, const char *command);
int load_parse_jobs(struct load_options *options, const char *command);

/* Returns 0 or -ENOMEM; load_done() is fine after either. */
_must_check_ int load_paths(const path_list *paths, const struct load_options *options,
			    struct load_result *ret);
void load_done(struct load_result *result);

/* The kind of a regular file by its first bytes; a pipe is not touched. */
enum file_kind { FILE_OTHER, FILE_FINGERPRINT, FILE_SIDECAR, FILE_FLIGHT, FILE_SQLITE };
enum file_kind load_file_kind(const char *path);

/*
 * One file, trace, flight log or fingerprint by its first bytes. sidecar may be
 * NULL; beside a flight log PATH.sidecar is taken then, if it is there.
 */
_must_check_ int load_one(const char *path, const char *sidecar,
			  const struct summarize_options *options, struct fingerprint *ret,
			  struct err *err);

/* --- exports of Nsight Systems (load_nsys.c): "FILE#PID" is one worker of several --- */

bool load_is_nsys(const char *path);

/* "*.nsys-rep", "*.qdrep": what has to be exported first. */
bool load_is_nsys_report(const char *path);

/* As nsys_read(), of the worker that path names. */
_must_check_ int load_nsys_trace(const char *path, struct trace *ret, struct err *err);

/*
 * Adds a path for each worker when path is an export with several. Returns 1 then, 0 when
 * it is not (nothing is added), or -ENOMEM.
 */
_must_check_ int load_nsys_expand(const char *path, path_list *out);

/*
 * Exports are not compared with other traces, of the same list or of the other one (may be
 * NULL). Returns 0, or -EINVAL with a line in err.
 */
_must_check_ int load_check_kinds(const path_list *paths, const path_list *more, struct err *err);

/* --- flight logs (load_flight.c) --- */

struct flightlog;

/*
 * The trace of the window that the sidecar tells of; without one (NULL) of all that
 * was recorded in windows, or else of all. The sidecar's clocks and host replace the
 * log's. source: becomes the trace's. Returns 0 or -errno with a line in err.
 */
_must_check_ int load_flight_trace(struct flightlog *log, const struct sidecar *sidecar,
				   const char *source, struct trace *ret, struct err *err);

/*
 * From events to fingerprint: what the sidecar (may be NULL) saw counts as evidence, and who
 * shares its host where the options name no hosts.
 */
_must_check_ int load_summarize(const struct trace *trace, const struct sidecar *sidecar,
				const struct summarize_options *options, struct fingerprint *ret,
				struct err *err);

/* A recorder that is being written: follow_fd and sidecar_fd are memory files. */
struct load_follow {
	int flight_fd, sidecar_fd, control_fd;
	const char *keep; /* where the flight log is saved; NULL: nowhere */
};

/*
 * Takes what the worker records until control_fd ends, then reads the sidecar, which
 * is complete by then, and makes the fingerprint. At most 512 MB of records are kept;
 * more are dropped and counted. Returns 0 or -errno with a line in err.
 */
_must_check_ int load_follow(const struct load_follow *follow,
			     const struct summarize_options *options, struct fingerprint *ret,
			     struct err *err);
