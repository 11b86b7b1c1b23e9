/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machines of elfutils that the wheel leaves out: PerfTracker reads processes of its own machine,
 * and the disassemblers would be half of the library. ebl_openbackend() takes NULL for "no back
 * end" and uses its defaults.
 */
#include <stddef.h>

#define NO_BACKEND(name)                                                \
	void *name##_init(void *elf, unsigned short machine, void *ebl) \
	{                                                               \
		(void)elf, (void)machine, (void)ebl;                    \
		return NULL;                                            \
	}

NO_BACKEND(i386)
NO_BACKEND(sh)
NO_BACKEND(ia64)
NO_BACKEND(alpha)
NO_BACKEND(arm)
NO_BACKEND(sparc)
NO_BACKEND(ppc)
NO_BACKEND(ppc64)
NO_BACKEND(s390)
NO_BACKEND(m68k)
NO_BACKEND(bpf)
NO_BACKEND(riscv)
NO_BACKEND(csky)

#ifdef __x86_64__
NO_BACKEND(aarch64)

/* The table of x86_64_init() names it; nothing here disassembles. */
int x86_64_disasm(void)
{
	return -1;
}
#else
NO_BACKEND(x86_64)
#endif
