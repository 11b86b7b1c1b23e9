/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/native/evalparts.h"

#include "stacks/native/symboltable.h"

#include <string.h>

enum {
	LOOP_BYTES_MAX = 1 << 20,
	/* Bytes of other instructions look like a jump now and then. */
	JUMPS_MIN = 8,
	JUMP = 0xe9,	    /* jmp rel32 */
	CONDITIONAL = 0x0f, /* 0x0f 0x80 to 0x8f: jcc rel32 */
};

void evalparts_open(struct evalparts *parts, const struct module *module)
{
	static const char *const NAMES[] = { EVALPARTS_LOOP };
	uintptr_t addr;

	*parts = (struct evalparts){ .module = module };
	symboltable_lookup(module, NAMES, &addr, 1);
	if (addr != 0 && !module_function(module, addr, &parts->begin, &parts->end))
		parts->begin = 0;
}

bool evalparts_has(const struct evalparts *parts, uintptr_t begin, uintptr_t end)
{
	const size_t len = parts->end - parts->begin;
	const unsigned char *code;
	size_t jumps = 0;

	if (parts->begin == 0 || begin == parts->begin || len > LOOP_BYTES_MAX || len < 8)
		return false;
	code = module_code(parts->module, parts->begin, len);
	for (size_t i = 0; code != NULL && i + 6 <= len && jumps < JUMPS_MIN; i++) {
		const bool two = code[i] == CONDITIONAL && (code[i + 1] & 0xf0) == 0x80;
		uintptr_t target;
		int32_t distance;

		if (!two && code[i] != JUMP)
			continue;
		memcpy(&distance, code + i + 1 + two, sizeof(distance));
		target = parts->begin + i + 5 + two + (uintptr_t)(intptr_t)distance;
		jumps += target >= begin && target < end;
	}
	return jumps >= JUMPS_MIN;
}
