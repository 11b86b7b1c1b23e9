/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a leader says carries its signature (Ed25519, RFC 8032) as the last field of the message, so a broker,
 * or a host that may publish more than it should, cannot order a window. The signature covers the
 * subject, too: what was said to one host or job is not valid for another. That a message is new is for
 * the receiver to see (cluster/follower.c).
 *
 * Keys: of a job, made from its secret, which all of its hosts have; or of a site (docs/fleet.md): the
 * hub has the seed, hosts the public key, both in the format of NATS' NKeys.
 */
#pragma once

#include "base/err.h"

#define SEAL_FIELD 20u /* of cluster.proto's Down */
#define SEAL_BYTES 67u /* the field's head and the signature */

struct seal;

/* Signs and checks. Returns 0, or -errno with a line in err; so do the next two. */
_must_check_ int seal_of_secret(const char *secret, struct seal **ret, struct err *err);

/* Signs and checks; the file's first line is an NKey's seed ("SU..."). */
_must_check_ int seal_of_seed_file(const char *path, struct seal **ret, struct err *err);

/* Checks only; text: an NKey ("U..."). */
_must_check_ int seal_of_public_key(const char *text, struct seal **ret, struct err *err);

struct seal *seal_close(struct seal *seal);

/* message[len] has room for SEAL_BYTES more. Returns 0 or -EIO (no memory, or a key that cannot sign). */
_must_check_ int seal_add(const struct seal *seal, const char *subject, uint8_t *message,
			  size_t len);

/* Whether message[len] ends with a valid signature. */
bool seal_is_valid(const struct seal *seal, const char *subject, const uint8_t *message,
		   size_t len);
