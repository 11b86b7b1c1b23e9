/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where brokers are: "nats://HOST:PORT" or, with TLS, "tls://HOST:PORT", several of one kind with
 * commas between them. An IPv6 address has brackets; without a port it is 4222.
 */
#pragma once

#include "base/err.h"

#define BROKERURL_MAX 16u /* addresses in one text */

struct broker_address {
	char host[256]; /* without brackets */
	char port[6];
};

struct brokerurl {
	bool tls;
	size_t cnt;
	struct broker_address addresses[BROKERURL_MAX];
};

/*
 * Returns 0, or -EINVAL with a line in err, also for a user or password in the text: command lines
 * and logs are seen by others.
 */
_must_check_ int brokerurl_parse(const char *text, struct brokerurl *ret, struct err *err);

/* Whether all its addresses are of this host, by their numbers or as "localhost". */
bool brokerurl_is_local(const struct brokerurl *url);
