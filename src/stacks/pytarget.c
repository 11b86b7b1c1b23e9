/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/pytarget.h"

#include "base/pythonrange.h"
#include "stacks/native/symboltable.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	RUNTIME_BYTES = 1024, /* all of _Py_DebugOffsets that pylayout.c looks at */
	TABLE_BYTES_MAX = 64 << 10,
	BYTES_SIZE = 16, /* offsets in PyBytesObject, in all versions */
	BYTES_DATA = 32,
};

enum { SYMBOL_RUNTIME, SYMBOL_CODE_TYPE, SYMBOL_VERSION, SYMBOL_CNT };

/* Where the variables are, in memory. */
struct found {
	uintptr_t addrs[SYMBOL_CNT];
};

/* The program, which is mapped first as a rule, "python3.9" or "libpython3.9.so". */
static bool is_candidate(const struct modules *modules, size_t index)
{
	const struct module *module = &modules->list.data[index];

	return module->code != 0 && (index == 0 || strncmp(module->name, "python", 6) == 0 ||
				     strncmp(module->name, "libpython", 9) == 0);
}

static bool find_interpreter(struct modules *modules, uint32_t *ret_module, struct found *ret)
{
	static const char *const NAMES[SYMBOL_CNT] = { "_PyRuntime", "PyCode_Type", "Py_Version" };

	for (size_t i = 0; i < modules->list.cnt; i++) {
		struct module *module = &modules->list.data[i];

		if (!is_candidate(modules, i) || !module_open(modules, module))
			continue;
		symboltable_lookup(module, NAMES, ret->addrs, SYMBOL_CNT);
		if (ret->addrs[SYMBOL_RUNTIME] == 0 || ret->addrs[SYMBOL_CODE_TYPE] == 0)
			continue;
		for (size_t j = 0; j < SYMBOL_CNT; j++)
			if (ret->addrs[j] != 0)
				ret->addrs[j] += module->bias;
		*ret_module = (uint32_t)i;
		return true;
	}
	return false;
}

/* "python3.10", "libpython3.8.so.1.0"; 0: no version in the name. */
static uint32_t minor_in_name(const char *name)
{
	const char *at = strstr(name, "python3.");

	return at != NULL ? (uint32_t)strtoul(at + strlen("python3."), NULL, 10) : 0;
}

/* From 3.11 on a variable has the version. */
static uint32_t find_minor(const struct selfmem *mem, const struct module *module,
			   const struct found *found)
{
	unsigned long version = 0;
	const char *slash;
	uint32_t minor;

	if (found->addrs[SYMBOL_VERSION] != 0 &&
	    selfmem_read(mem, found->addrs[SYMBOL_VERSION], &version, sizeof(version)) &&
	    version >> 24 == 3)
		return version >> 16 & 0xff;
	minor = minor_in_name(module->name);
	slash = strstr(module->path, "/python3."); /* a folder such as lib/python3.9 */
	return minor == 0 && slash != NULL ? minor_in_name(slash) : minor;
}

static int find_layout(const struct selfmem *mem, uint32_t minor, const struct found *found,
		       struct pylayout *ret)
{
	_Alignas(8) unsigned char runtime[RUNTIME_BYTES];
	char version[16];

	(void)snprintf(version, sizeof(version), "3.%u", minor);
	if (!selfmem_read(mem, found->addrs[SYMBOL_RUNTIME], runtime, sizeof(runtime)))
		return -EFAULT;
	return pylayout_find(version, runtime, ret);
}

/* The oldest thread is the main one, whose id is the process's. */
static bool find_tids(struct pysource *source, uint32_t own_pid)
{
	struct pywalk_threads threads = { 0 };

	if (source->layout->thread_native != 0)
		return true;
	while (pywalk_next(source, &threads))
		;
	return threads.error == 0 && threads.cnt > 0 &&
	       pywalk_find_pthread_tid(&source->mem,
				       pylayout_word(threads.bytes, source->layout->thread_pthread),
				       own_pid, &source->pthread_tid) == 0;
}

static int list_threads(struct pytarget *target)
{
	struct pywalk_threads threads = { 0 };

	target->threads.cnt = 0;
	while (pywalk_next(&target->source, &threads)) {
		const struct pytarget_thread thread = {
			.own_tid = pywalk_tid(&target->source, threads.bytes),
			.tstate = threads.tstate,
		};

		if (thread.own_tid != 0 && vec_push(&target->threads, thread) < 0)
			return -ENOMEM;
	}
	if (threads.cnt == PYWALK_THREADS_MAX)
		target->dropped = 1;
	return threads.error == 0 && threads.cnt > 0 ? 0 : -EFAULT;
}

/* With its layout known. Returns why it can't be read, NULL: it can. */
static const char *try_layout(struct pytarget *target, const struct found *found, uint32_t own_pid)
{
	struct pysource *source = &target->source;
	uintptr_t interp = 0;
	int error = -EFAULT;

	if (!pywalk_fits(&target->layout))
		return "its offsets make no sense";
	source->layout = &target->layout;
	source->runtime = found->addrs[SYMBOL_RUNTIME];
	source->code_type = found->addrs[SYMBOL_CODE_TYPE];
	if (!selfmem_read(&source->mem, source->runtime + target->layout.runtime_main, &interp,
			  sizeof(interp)) ||
	    interp == 0)
		return "it has not started, or has ended";
	source->interp = interp;
	if (!find_tids(source, own_pid))
		return "its threads have no ids that can be read";
	/* The list may change while it is read. */
	for (int i = 0; i < 3 && error == -EFAULT; i++)
		error = list_threads(target);
	if (error == -ENOMEM)
		return "out of memory";
	return error == 0 ? NULL : "its list of threads can't be read";
}

int pytarget_open(struct pytarget *target, struct modules *modules, uint32_t own_pid)
{
	struct found found = { { 0 } };
	const char *wrong;
	int error;

	*target = (struct pytarget){ .module = MODULE_NONE };
	if (!find_interpreter(modules, &target->module, &found))
		return 0;
	target->source.mem = (struct selfmem){ .pid = modules->pid, .fd = -1 };
	target->minor =
		find_minor(&target->source.mem, &modules->list.data[target->module], &found);
	error = find_layout(&target->source.mem, target->minor, &found, &target->layout);
	if (error == -ENOTSUP) {
		(void)snprintf(target->why, sizeof(target->why),
			       "it is a free-threaded build of 3.%u", target->minor);
		return 0;
	}
	if (error < 0) {
		(void)snprintf(target->why, sizeof(target->why),
			       "its version is not one of " PYTHON_RANGE);
		return 0;
	}
	wrong = try_layout(target, &found, own_pid);
	if (wrong != NULL)
		(void)snprintf(target->why, sizeof(target->why), "%s", wrong);
	target->present = wrong == NULL;
	return 0;
}

void pytarget_done(struct pytarget *target)
{
	vec_done(&target->threads);
	vec_done(&target->codes);
	idmap_done(&target->by_code);
}

uintptr_t pytarget_find(const struct pytarget *target, uint32_t own_tid)
{
	vec_foreach(thread, &target->threads) {
		if (thread->own_tid == own_tid)
			return thread->tstate;
	}
	return 0;
}

/* The contents of a bytes object. */
static void read_table(const struct pytarget *target, struct region *region, uintptr_t code,
		       struct pytarget_code *ret)
{
	const struct selfmem *mem = &target->source.mem;
	uintptr_t object, size;
	unsigned char *table;

	if (!selfmem_read(mem, code + target->layout.code_table, &object, sizeof(object)) ||
	    !selfmem_read(mem, object + BYTES_SIZE, &size, sizeof(size)) || size == 0 ||
	    size > TABLE_BYTES_MAX)
		return;
	table = region_alloc(region, size);
	if (table == NULL || !selfmem_read(mem, object + BYTES_DATA, table, size))
		return;
	ret->table = table;
	ret->table_len = size;
}

const struct pytarget_code *pytarget_code(struct pytarget *target, struct region *region,
					  uintptr_t code)
{
	uint32_t index = idmap_get(&target->by_code, code);
	struct pytarget_code found = { 0 };
	struct pycode names;

	if (index != IDMAP_NONE)
		return &target->codes.data[index];
	if (pycodes_name(&target->source, code, &names) < 0)
		return NULL;
	found.function = region_text(region, names.name, strlen(names.name));
	found.file = region_text(region, names.file, strlen(names.file));
	found.first_line = names.first_line;
	if (found.function == NULL || found.file == NULL)
		return NULL;
	read_table(target, region, code, &found);
	index = (uint32_t)target->codes.cnt;
	if (vec_push(&target->codes, found) < 0 || idmap_set(&target->by_code, code, index) < 0)
		return NULL;
	return &target->codes.data[index];
}
