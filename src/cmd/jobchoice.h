/* SPDX-License-Identifier: Apache-2.0 */
/* Which running job a command is about: --job or --socket, else the user's newest. */
#pragma once

#include "base/vec.h"
#include "cmd/cmd.h"
#include "live/run/ask.h"

struct job_choice {
	const char *job, *socket;
};

/* Rows of a table whose options have a struct job_choice named choice. */
#define JOB_CHOICE_ROWS(owner)                                                                   \
	{ .name = "job",                                                                         \
	  .argument = "JOB",                                                                     \
	  OPTION_FIELD(owner, choice.job),                                                       \
	  .help = "the job: its name, the process of its `perftracker run`, or its folder",      \
	  .preset = "the user's newest job",                                                     \
	  .more = "`perftracker status` lists the jobs. A job of another user, or one that was " \
		  "started with another $XDG_RUNTIME_DIR, is named by its folder." },            \
	{                                                                                        \
		.name = "socket", .argument = "PATH", OPTION_FIELD(owner, choice.socket),        \
		.help = "the job: its socket", .preset = "that of --job",                        \
		.more = "`perftracker run` links it as `socket` in the folder of its --output."  \
	}

/* Asks the chosen job and waits for its answer, at most timeout_ms. Returns 0 with the answer's text
   in ret, or -errno with a line in err, which is the answer's text if the job refused. */
_must_check_ int job_choice_ask(const struct job_choice *choice, enum message_type type,
				uint64_t window_ns, int timeout_ms, struct message *ret,
				struct err *err);

/* Writes the socket of the chosen job. Returns 0 or -errno with a line in err. */
_must_check_ int job_choice_socket(const struct job_choice *choice, char *ret, size_t size,
				   struct err *err);

/*
 * One message of MSG_STATUS for each worker of the job, on all hosts. *ret_last: what follows them,
 * with the job's overhead in its text. Returns 0 or -errno with a line in err; the caller frees ret.
 */
typedef VEC(struct message) message_vec;
_must_check_ int job_workers(const char *socket, message_vec *ret, struct message *ret_last,
			     struct err *err);
