/* SPDX-License-Identifier: Apache-2.0 */
/* The client of hostd's socket, for `perftracker profile` and `status`. */
#pragma once

#include "base/err.h"
#include "format/shared/message.h"

/*
 * Connects to socket_path, or to the newest job's socket when it is NULL, and
 * sends a message of this type. Returns the descriptor or -errno with a line in err.
 */
_must_check_ int ask_open(const char *socket_path, enum message_type type, uint64_t window_ns,
			  struct err *err);

/* The same with a text; more than MESSAGE_TEXT - 1 bytes are cut off. */
_must_check_ int ask_open_text(const char *socket_path, enum message_type type, uint64_t window_ns,
			       const char *text, struct err *err);

/* Waits for one answer. Returns 0, -ETIMEDOUT, -ECONNRESET (the job ended) or -errno. */
_must_check_ int ask_next(int fd, int timeout_ms, struct message *ret, struct err *err);
