/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are an answer of the kernel or an error: nothing outside them is read. */
#include "host/network/sockdiag.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sockdiag_sockets out = { 0 };
	int ret = sockdiag_parse(data, len, 0, &out);

	if (ret > 1 || out.cnt > len / 16) {
		fprintf(stderr, "sockdiag_fuzz: %d, %zu sockets of %zu bytes\n", ret, out.cnt, len);
		abort();
	}
	vec_done(&out);
	return 0;
}
