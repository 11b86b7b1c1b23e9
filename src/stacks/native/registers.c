/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/native/registers.h"

#include "pyread/selfmem.h"

#include <errno.h>
#include <string.h>

enum { RED_ZONE = 128 }; /* below the stack pointer, used by functions that call no others */

static int extend(struct stackcopy *stack, pid_t tid, size_t len)
{
	const struct selfmem mem = { .pid = tid, .fd = -1 };
	unsigned char *data;

	len = MIN(len, (size_t)(stack->end - stack->begin));
	if (len <= stack->len)
		return 0;
	data = realloc(stack->data, len);
	if (data == NULL)
		return -ENOMEM;
	stack->data = data;
	if (!selfmem_read(&mem, stack->begin + stack->len, data + stack->len, len - stack->len))
		return -EFAULT;
	stack->len = len;
	return 0;
}

int stackcopy_take(struct stackcopy *stack, pid_t tid, uintptr_t sp, uintptr_t end, size_t len)
{
	*stack = (struct stackcopy){ .begin = sp - RED_ZONE, .end = end };
	if (end < sp || sp < RED_ZONE)
		return -EFAULT;
	stack->end = MIN(end, stack->begin + STACKCOPY_MAX);
	return extend(stack, tid, len);
}

void stackcopy_done(struct stackcopy *stack)
{
	free(stack->data);
	stack->data = NULL;
	stack->len = 0;
}

bool stackcopy_word(struct stackcopy *stack, uintptr_t addr, uint64_t *ret)
{
	size_t at;

	if (addr < stack->begin || addr > stack->end - sizeof(*ret))
		return false;
	at = addr - stack->begin;
	if (at + sizeof(*ret) > stack->len &&
	    (stack->live == 0 || extend(stack, stack->live, at + STACKCOPY_FIRST) < 0 ||
	     at + sizeof(*ret) > stack->len))
		return false;
	memcpy(ret, stack->data + at, sizeof(*ret));
	return true;
}
