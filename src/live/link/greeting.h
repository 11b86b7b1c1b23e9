/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a NATS broker says first to everyone who connects: its version, and whether it wants TLS.
 * libnats does not tell these, and without them a failed login has no clear reason.
 * Source: docs.nats.io, "Client Protocol", INFO.
 */
#pragma once

#include "live/link/brokerurl.h"

struct greeting {
	char version[32];
	bool tls_required, tls_available;
	int64_t max_payload; /* bytes */
};

/*
 * Asks one address, for about 2 seconds at most beyond its name's lookup. Returns 0, or -errno with
 * a line in err: -ECONNREFUSED and the like (no broker there), -EPROTO (something else answers),
 * -ETIMEDOUT (silence, as of a broker that starts with TLS at once).
 */
_must_check_ int greeting_read(const struct broker_address *address, struct greeting *ret,
			       struct err *err);

/* Parses a line, "INFO {...}". Returns 0 or -EPROTO. */
_must_check_ int greeting_parse(const char *line, struct greeting *ret);

/*
 * Whether the broker can be used: one that answers, the first of the url's, is not too old and
 * agrees about TLS and the size of messages. Returns 0 also for silence, else -errno and a line in
 * err: of greeting_read(), or -ENOTSUP.
 */
_must_check_ int greeting_check(const struct brokerurl *url, bool any_version, struct err *err);
