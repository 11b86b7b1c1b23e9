/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the stream between hostd and the daemon of a job: frames lie within the bytes. */
#include "live/fleet/relayframe.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct relayframe frame;
	int64_t len;

	for (; (len = relayframe_parse(data, size, &frame)) > 0; data += len, size -= (size_t)len) {
		assert((size_t)len <= size && strlen(frame.subject) < sizeof(frame.subject));
		assert((const uint8_t *)frame.data + frame.len == data + len);
	}
	return 0;
}
