/* SPDX-License-Identifier: Apache-2.0 */
/* Line tables of all versions: the first bytes choose version and instruction. */
#include "pyread/pylines.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	if (size < 3)
		return 0;
	(void)pylines_find(8 + data[0] % 7u, 1, data + 3, size - 3,
			   (uint32_t)data[1] << 8 | data[2]);
	return 0;
}
