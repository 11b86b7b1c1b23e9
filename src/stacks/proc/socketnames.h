/* SPDX-License-Identifier: Apache-2.0 */
/* What a socket of another process is connected to, from /proc/PID/net. Source: proc_net(5). */
#pragma once

#include "base/base.h"

/*
 * text: lines of "tcp" or "tcp6". Writes "tcp LOCAL:PORT to REMOTE:PORT" of the socket with that
 * inode, or "tcp listening at ...". False: no line has it.
 */
_must_check_ bool socketnames_parse_tcp(const char *text, unsigned long inode, char *ret,
					size_t size);

/* text: lines of "unix". Writes "unix socket PATH". False: no line has it, or it has no path. */
_must_check_ bool socketnames_parse_unix(const char *text, unsigned long inode, char *ret,
					 size_t size);

/* proc: the descriptor of /proc/PID. Leaves ret as it is if the socket is not found. */
void socketnames_describe(int proc, unsigned long inode, char *ret, size_t size);
