/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before every file of a wheel's build: system calls and functions that glibc 2.17
 * lacks: getrandom() and explicit_bzero() came with 2.25, memfd_create() with 2.27.
 */
#pragma once

#ifndef __ASSEMBLER__
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef SYS_getrandom
#ifdef __x86_64__
#define SYS_getrandom 318
#else
#define SYS_getrandom 278
#endif
#endif
#ifndef SYS_memfd_create
#ifdef __x86_64__
#define SYS_memfd_create 319
#else
#define SYS_memfd_create 279
#endif
#endif

static inline ssize_t glibc217_getrandom(void *buffer, size_t length, unsigned int flags)
{
	return syscall(SYS_getrandom, buffer, length, flags);
}

static inline int glibc217_memfd_create(const char *name, unsigned int flags)
{
	return (int)syscall(SYS_memfd_create, name, flags);
}

/* The compiler must take the memory as read, or it leaves the memset() out. */
static inline void glibc217_explicit_bzero(void *secret, size_t size)
{
	memset(secret, 0, size);
	__asm__ volatile("" : : "r"(secret) : "memory");
}

/* base/compat.h: the C library that is linked against has no later versions of these. */
#define PT_OLD_SYMBOL(name) _Static_assert(1, #name)

#define explicit_bzero glibc217_explicit_bzero
#define getrandom glibc217_getrandom
#define memfd_create glibc217_memfd_create
#endif
