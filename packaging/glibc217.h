/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before every file of a wheel's build: system calls that glibc 2.17 has no function
 * for (getrandom() came with 2.25, memfd_create() with 2.27).
 */
#pragma once

#ifndef __ASSEMBLER__
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef SYS_getrandom
#define SYS_getrandom 318
#endif
#ifndef SYS_memfd_create
#define SYS_memfd_create 319
#endif

static inline ssize_t glibc217_getrandom(void *buffer, size_t length, unsigned int flags)
{
	return syscall(SYS_getrandom, buffer, length, flags);
}

static inline int glibc217_memfd_create(const char *name, unsigned int flags)
{
	return (int)syscall(SYS_memfd_create, name, flags);
}

/* base/compat.h: the C library that is linked against has no later versions of these. */
#define PT_OLD_SYMBOL(name) _Static_assert(1, #name)

#define getrandom glibc217_getrandom
#define memfd_create glibc217_memfd_create
#endif
