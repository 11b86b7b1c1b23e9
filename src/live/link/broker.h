/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A nats-server for the hosts of one job, as a child of the daemon: it ends with the daemon,
 * however that ends, and takes no signal of the terminal. Two kinds of clients may connect: the
 * hub, which may say everything, and hosts, which may publish only on pt.v1.JOB.up.* and hear only
 * what a hub says.
 */
#pragma once

#include "base/brokerversion.h"
#include "base/err.h"

#include <sys/types.h>

#define BROKER_HUB "hub"
#define BROKER_HOST "host"

struct broker_setup {
	const char *dir;     /* private; for its configuration and its log */
	const char *address; /* to listen at, for instance 0.0.0.0 */
	unsigned port;
	const char *hub_password, *host_password;
	const char *certificate_file, *key_file; /* NULL: plain text */
	bool any_version;			 /* also versions before BROKER_LEAST, for tests */
};

struct broker {
	pid_t pid; /* 0: none */
	char dir[512];
};

/*
 * Starts it and waits until it answers, for 3 seconds at most. Returns 0, or -errno with a line in
 * err that says what to do: -ENOENT (no nats-server on PATH), -ENOTSUP (too old), -EADDRINUSE, ...
 */
_must_check_ int broker_start(const struct broker_setup *setup, struct broker *ret,
			      struct err *err);

/* Whether it runs. */
bool broker_lives(struct broker *broker);

/* Ends it and removes its files. Nothing happens where none was started. */
void broker_stop(struct broker *broker);

/*
 * The version of the nats-server that would be started, for instance "2.15.1", and its path.
 * Returns 0, -ENOENT, or another errno with a line in err.
 */
_must_check_ int broker_find(char version[32], char *path, size_t size, struct err *err);
