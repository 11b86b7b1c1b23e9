/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code objects of a process that is read without its GIL: whether an address has one, and its names.
 * Addresses at which one was seen are known from then on, which saves a read for each frame of a
 * stack. That only rejects garbage: a stamp shows that another code object has taken an address.
 * What is known of a process says nothing of another one, which may have the same addresses.
 */
#pragma once

#include "pyread/pylayout.h"
#include "pyread/selfmem.h"

enum { PYCODES_BYTES = 256 }; /* of a code object that are read, at most */

/* NUL-terminated UTF-8. A long file name keeps its end, a long function name its start. */
struct pycode {
	char file[256], name[128];
	uint32_t first_line;
};

/* A process that is read. */
struct pysource {
	struct selfmem mem;
	const struct pylayout *layout;
	uintptr_t runtime;	     /* address of _PyRuntime; only the GIL needs it */
	uintptr_t interp, code_type; /* addresses of the main interpreter and of PyCode_Type */
	uint64_t salt;		     /* differs between processes; 0: this one */
	uint32_t pthread_tid;	     /* before 3.11: where struct pthread has the thread's id */
};

/*
 * The address and, in the upper 16 bits, the number of the first traceable instruction; 0 if there
 * is no code object. One system call, or none.
 */
uint64_t pycodes_find(const struct pysource *source, uintptr_t code);

/*
 * A number for each code object that changes when another one takes its address and differs between
 * processes, 0 where there is none. Returns the count of code objects. One system call for 64.
 */
size_t pycodes_stamp(const struct pysource *source, const uintptr_t *codes, size_t cnt,
		     uint64_t *stamps);

/* Copies the names of a code object. -EFAULT when that address no longer has one. */
_must_check_ int pycodes_name(const struct pysource *source, uintptr_t code, struct pycode *ret);
