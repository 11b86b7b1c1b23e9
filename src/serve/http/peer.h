/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which user is at the other end of a connection from this machine: of a Unix socket by
 * SO_PEERCRED, of the loopback by asking the kernel for the socket at the other end.
 * Source: unix(7), sock_diag(7).
 */
#pragma once

#include "base/base.h"

#include <sys/types.h>

/* Returns 0, or -errno when it cannot be known: -ENOTCONN, -ENOENT, or no sock_diag. */
_must_check_ int peer_user(int fd, uid_t *ret);
