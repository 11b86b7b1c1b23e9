/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of the store that the page of a running job reads: beside the daemon's socket, of use while
 * that daemon lives. One that was killed leaves them; the next page on this host removes them.
 */
#pragma once

#include "base/base.h"

#define PAGESTORE_END ".page" /* behind the name of the socket */
/* A store that nothing was written to for so long, where it is written each second, has no daemon. */
#define PAGESTORE_STALE_NS (3600 * NSEC_PER_SEC)

/* Removes the file and those that SQLite has beside it. */
void pagestore_remove(const char *path);

/* Removes the stale ones of a folder. now_ns: wall clock. */
void pagestore_remove_stale(const char *folder, int64_t now_ns);
