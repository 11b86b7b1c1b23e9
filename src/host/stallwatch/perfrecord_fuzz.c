/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a record of the kernel, or an error: what is found lies inside them. */
#include "host/stallwatch/perfrecord.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	_cleanup_free_ unsigned char *bytes = malloc(len + 1); /* aligned */
	struct perfrecord record;
	int64_t number;

	if (bytes == NULL)
		return 0;
	memcpy(bytes, data, len);
	for (int regs = 0; regs < 2; regs++) {
		if (perfrecord_parse(bytes, len, regs != 0, &record) < 0)
			continue;
		if (record.raw_len > 0 &&
		    (record.raw < bytes || record.raw + record.raw_len > bytes + len))
			abort();
		if (record.chain_cnt > 0 &&
		    ((const unsigned char *)record.chain < bytes ||
		     (const unsigned char *)(record.chain + record.chain_cnt) > bytes + len))
			abort();
		(void)perfrecord_number(&record, 24, 4, &number);
		(void)perfrecord_number(&record, UINT32_MAX, 8, &number);
	}
	return 0;
}
