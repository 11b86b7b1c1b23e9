/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS for the hosts of a job without an authority: all of them make the same key and certificate
 * from the job's secret. The broker shows the certificate, and hosts trust no other.
 */
#pragma once

#include "base/err.h"

/* The name in the certificate, which the hosts expect instead of the broker's address. */
#define JOBCERT_NAME "perftracker"
#define JOBCERT_DIGEST 32u /* bytes */

/*
 * Writes the certificate of a secret and, unless key_path is NULL, its key, as PEM. The folder is
 * private. Returns 0, or -errno with a line in err.
 */
_must_check_ int jobcert_write(const char *secret, const char *certificate_path,
			       const char *key_path, struct err *err);

/*
 * Bytes that follow from the secret, but not the secret from them; those of two purposes differ.
 * Returns 0, or -errno with a line in err.
 */
_must_check_ int jobcert_digest(const char *secret, const char *purpose,
				uint8_t ret[JOBCERT_DIGEST], struct err *err);

/*
 * A password that follows from the secret, but not the secret from it: 64 hexadecimal digits.
 * purpose: passwords of two purposes differ. Returns 0, or -errno with a line in err.
 */
_must_check_ int jobcert_password(const char *secret, const char *purpose, char ret[65],
				  struct err *err);
