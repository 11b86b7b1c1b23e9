/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mappings of a process, and the ELF files behind them. A file is opened when it is first
 * needed, by the process's own root, so that other mount namespaces are no obstacle; it must begin
 * with the bytes that the process has in memory, else it was replaced and names would be wrong.
 * Then the kernel's link to the mapped file (map_files) is tried, which needs privileges.
 */
#pragma once

#include "base/vec.h"

#include <elfutils/libdw.h>

struct module {
	char *path; /* as the process sees it; "[vdso]" */
	const char *name;
	uint64_t inode;
	uintptr_t start;	  /* where the file's begin is mapped; 0: it is not */
	uintptr_t code, code_end; /* its first executable mapping */
	uint64_t code_offset;	  /* of that one in the file */
	bool opened, replaced;	  /* replaced: there is no file with these contents */
	int fd;			  /* -1 */
	Elf *elf;		  /* NULL without one */
	char *image;		  /* an ELF file that is memory only */
	char *view;		  /* the file again, without its sections; view_len bytes */
	size_t view_len;
	Elf *view_elf;
	uintptr_t bias;	 /* address in memory less the one in the file */
	Dwarf_CFI *cfi;	 /* NULL without one */
	uintptr_t table; /* address in the file of .eh_frame_hdr; 0: none */
	const unsigned char *table_bytes;
	size_t table_len;
};

#define MODULE_NONE UINT32_MAX

struct module_area {
	uintptr_t start, end;
	bool readable, executable;
	uint32_t module; /* or MODULE_NONE */
};

struct modules {
	int proc; /* the descriptor of /proc/PID; borrowed */
	pid_t pid;
	VEC(struct module_area) areas; /* by address */
	VEC(struct module) list;
	size_t replaced_cnt;
};

/*
 * Reads the list of mappings, at most MODULES_AREAS_MAX. tid: a living thread of the process.
 * Returns 0 or -errno; modules_done in either case.
 */
enum { MODULES_AREAS_MAX = 262144 };
_must_check_ int modules_read(struct modules *modules, int proc, pid_t tid);
void modules_done(struct modules *modules);

/* The mapping with that address, or the next one behind it; NULL: there is none. */
const struct module_area *modules_area(const struct modules *modules, uintptr_t addr);

/* The index of the module whose code has that address, or MODULE_NONE. */
uint32_t modules_find(const struct modules *modules, uintptr_t addr);

/* Opens its file once. False: there is no file that can be read. */
bool module_open(struct modules *modules, struct module *module);

/*
 * Where the function with that address begins and the next one does, by the table of unwind
 * information: a part that the compiler moved away counts as a function. Addresses are those of the
 * file. False: not known.
 */
bool module_function(const struct module *module, uintptr_t addr, uintptr_t *ret_begin,
		     uintptr_t *ret_end);

/* Code of the file, `len` bytes from that address of the file on; NULL: it is not there. */
const unsigned char *module_code(const struct module *module, uintptr_t addr, size_t len);
