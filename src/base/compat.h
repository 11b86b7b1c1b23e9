/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent library is built once and loaded into containers with an older C library. Functions
 * that moved between libraries in glibc 2.34 got a new symbol version there. Binding to their first
 * version finds them in glibc before and after 2.34. The symbols are weak: a program without
 * threads, loaded with LD_PRELOAD, lacks them and would not start otherwise.
 */
#pragma once

#include <dlfcn.h>
#include <pthread.h>

#if defined(__x86_64__)
#define PT_GLIBC_BASE "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define PT_GLIBC_BASE "GLIBC_2.17"
#endif

#ifndef PT_OLD_SYMBOL /* packaging/glibc217.h: the linker has that C library */
#define PT_OLD_SYMBOL(name) __asm__(".weak " #name "\n.symver " #name "," #name "@" PT_GLIBC_BASE)
#endif

#ifdef PT_GLIBC_BASE
PT_OLD_SYMBOL(dlopen);
PT_OLD_SYMBOL(dlsym);
PT_OLD_SYMBOL(dladdr);
PT_OLD_SYMBOL(pthread_create);
PT_OLD_SYMBOL(pthread_attr_setstacksize);
#endif
