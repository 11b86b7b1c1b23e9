/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of a fleet's hub: the jobs of its store, and of those that run what their leaders say in
 * files beside their sockets, and profiles that an operator asks for. A job of the store is found
 * at the hub by its folder, FOLDER/uUSER/JOB.
 */
#pragma once

#include "base/err.h"
#include "live/site/site.h"

struct hubui;

/* NULL: the site wants none, or there is none, which is logged. site is borrowed. */
struct hubui *hubui_open(const struct site *site);
struct hubui *hubui_close(struct hubui *ui);

/* The socket of the leader whose reports are in folder. Returns 0, or -ENOENT: no folder of a job. */
_must_check_ int hubui_socket(const struct site *site, const char *folder, char *ret, size_t size);
