/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's end of the road to the daemon: the shared block and the socket.
 * Every call returns at once; a datagram that has no room is refused.
 */
#pragma once

#include "agent/core/ownfd.h"
#include "base/base.h"
#include "format/shared/message.h"
#include "format/shared/recorder.h"

/*
 * Creates and maps the flight recorder, zeroed, of fixed size (sealed, so that
 * the reader can't be killed by truncation). Pages come with their first use. The
 * caller owns *ret_flight (munmap of sizeof(struct flight)) and *ret_fd. Returns 0
 * or -errno.
 */
_must_check_ int link_create_flight(struct flight **ret_flight, struct own_fd *ret_fd);

/* Connects without waiting. The caller owns *ret_fd. Returns 0 or -errno; -EAGAIN: backlog full. */
_must_check_ int link_connect(const char *socket_path, struct own_fd *ret_fd);

/*
 * Sends one datagram, with a descriptor when pass_fd >= 0. Returns 0 or -errno; -EBADF: the
 * number is another's by now.
 */
_must_check_ int link_send(const struct own_fd *own, const struct message *message, int pass_fd);
