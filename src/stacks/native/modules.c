/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/native/modules.h"

#include "pyread/mapping.h"
#include "pyread/selfmem.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	CHECK_BYTES = 1024, /* of a file and of memory are compared: header, segments, build id */
	VDSO_BYTES_MAX = 1 << 20,
	TABLE_BYTES_MAX = 64 << 20,
	/* How .eh_frame_hdr is encoded by all linkers: udata4; sdata4 relative to itself. */
	TABLE_HEAD = 12,
	ENCODED_COUNT = 0x03,
	ENCODED_TABLE = 0x3b,
};

/* Reading the list. */

typedef VEC(char) char_vec;

static int read_all(int fd, char_vec *text)
{
	ssize_t got = 1;

	while (got > 0) {
		if (vec_reserve(text, text->cnt + 65536 + 1) < 0)
			return -ENOMEM;
		got = read(fd, text->data + text->cnt, 65536);
		if (got > 0)
			text->cnt += (size_t)got;
	}
	if (got < 0)
		return -errno;
	return vec_push(text, '\0');
}

static int add_module(struct modules *modules, const struct mapping *mapping)
{
	struct module module = { .fd = -1, .inode = mapping->inode };
	const char *slash;

	module.path = strdup(mapping->path);
	if (module.path == NULL)
		return -ENOMEM;
	slash = strrchr(module.path, '/');
	module.name = slash != NULL ? slash + 1 : module.path;
	if (vec_push(&modules->list, module) < 0) {
		free(module.path);
		return -ENOMEM;
	}
	return 0;
}

/* Mappings of one file follow each other; a file without code has no module. */
static int take_mapping(struct modules *modules, const struct mapping *mapping)
{
	struct module_area area = { mapping->start, mapping->end, mapping->readable,
				    mapping->executable, MODULE_NONE };
	struct module *last =
		modules->list.cnt > 0 ? &modules->list.data[modules->list.cnt - 1] : NULL;
	bool file = mapping->path[0] == '/' || strcmp(mapping->path, "[vdso]") == 0;

	if (file && (last == NULL || last->inode != mapping->inode ||
		     strcmp(last->path, mapping->path) != 0 || mapping->offset == 0)) {
		if (add_module(modules, mapping) < 0)
			return -ENOMEM;
		last = &modules->list.data[modules->list.cnt - 1];
	}
	if (file) {
		area.module = (uint32_t)(modules->list.cnt - 1);
		if (mapping->offset == 0)
			last->start = mapping->start;
		if (mapping->executable && last->code == 0) {
			last->code = mapping->start;
			last->code_end = mapping->end;
			last->code_offset = mapping->offset;
		}
	}
	return vec_push(&modules->areas, area);
}

int modules_read(struct modules *modules, int proc, pid_t tid)
{
	char_vec text = { 0 };
	struct mapping mapping;
	char path[64];
	int fd, error;

	*modules = (struct modules){ .proc = proc, .pid = tid };
	(void)snprintf(path, sizeof(path), "task/%d/maps", (int)tid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	error = read_all(fd, &text);
	(void)close(fd);
	for (char *line = text.data, *end; error == 0 && line != NULL && *line != '\0';
	     line = end) {
		end = strchrnul(line, '\n');
		if (*end == '\n')
			*end++ = '\0';
		if (modules->areas.cnt == MODULES_AREAS_MAX)
			error = -E2BIG;
		else if (mapping_parse(line, &mapping))
			error = take_mapping(modules, &mapping);
	}
	vec_done(&text);
	return error;
}

void modules_done(struct modules *modules)
{
	vec_foreach(module, &modules->list) {
		if (module->cfi != NULL)
			(void)dwarf_cfi_end(module->cfi);
		if (module->view_elf != NULL)
			(void)elf_end(module->view_elf);
		if (module->view != NULL)
			(void)munmap(module->view, module->view_len);
		if (module->elf != NULL)
			(void)elf_end(module->elf);
		if (module->fd >= 0)
			(void)close(module->fd);
		free(module->image);
		free(module->path);
	}
	vec_done(&modules->list);
	vec_done(&modules->areas);
}

const struct module_area *modules_area(const struct modules *modules, uintptr_t addr)
{
	size_t low = 0, high = modules->areas.cnt;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (modules->areas.data[mid].end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < modules->areas.cnt ? &modules->areas.data[low] : NULL;
}

uint32_t modules_find(const struct modules *modules, uintptr_t addr)
{
	const struct module_area *area = modules_area(modules, addr);

	return area != NULL && area->start <= addr && area->executable ? area->module : MODULE_NONE;
}

/* Opening a file. */

/* Whether the file begins with what is in memory. */
static bool same_begin(const struct modules *modules, const struct module *module, int fd)
{
	const struct selfmem mem = { .pid = modules->pid, .fd = -1 };
	unsigned char in_memory[CHECK_BYTES], in_file[CHECK_BYTES];
	struct stat about;

	if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
		return false;
	if (module->start == 0) /* its begin is not mapped */
		return about.st_ino == module->inode;
	return selfmem_read(&mem, module->start, in_memory, sizeof(in_memory)) &&
	       pread(fd, in_file, sizeof(in_file), 0) == (ssize_t)sizeof(in_file) &&
	       memcmp(in_memory, in_file, sizeof(in_file)) == 0;
}

static int try_open(const struct modules *modules, const struct module *module, const char *path)
{
	int fd = openat(modules->proc, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && !same_begin(modules, module, fd)) {
		(void)close(fd);
		fd = -1;
	}
	return fd;
}

static int open_file(const struct modules *modules, const struct module *module)
{
	static const char DELETED[] = " (deleted)";
	char path[PATH_MAX + 32];
	size_t len;
	int fd;

	/* The thread's: that of the process is gone when its main thread has ended. */
	len = (size_t)snprintf(path, sizeof(path), "task/%d/root%s", (int)modules->pid,
			       module->path);
	if (len >= sizeof(path))
		return -1;
	fd = try_open(modules, module, path);
	if (fd < 0 && len > sizeof(DELETED) &&
	    strcmp(path + len - (sizeof(DELETED) - 1), DELETED) == 0) {
		path[len - (sizeof(DELETED) - 1)] = '\0'; /* moved away and back */
		fd = try_open(modules, module, path);
	}
	if (fd < 0) {
		(void)snprintf(path, sizeof(path), "map_files/%" PRIxPTR "-%" PRIxPTR, module->code,
			       module->code_end);
		fd = try_open(modules, module, path);
	}
	return fd;
}

/* The vdso has no file: its memory is one. */
static void open_memory(const struct modules *modules, struct module *module)
{
	const struct selfmem mem = { .pid = modules->pid, .fd = -1 };
	const size_t size = module->code_end - module->code;

	if (module->start != module->code || size > VDSO_BYTES_MAX)
		return;
	module->image = malloc(size);
	if (module->image != NULL && selfmem_read(&mem, module->code, module->image, size))
		module->elf = elf_memory(module->image, size);
}

/* From the segment that has the code; and where the table of functions is. */
static bool read_segments(struct module *module)
{
	Elf_Data *data;
	GElf_Phdr head;
	size_t cnt = 0;
	bool found = false;

	if (elf_getphdrnum(module->elf, &cnt) != 0)
		return false;
	for (size_t i = 0; i < cnt && gelf_getphdr(module->elf, (int)i, &head) != NULL; i++) {
		if (head.p_type == PT_LOAD && (head.p_flags & PF_X) != 0 && !found &&
		    module->code_offset + 4095 >= head.p_offset &&
		    module->code_offset < head.p_offset + head.p_filesz) {
			module->bias =
				module->code - module->code_offset + head.p_offset - head.p_vaddr;
			found = true;
		}
		if (head.p_type != PT_GNU_EH_FRAME || head.p_filesz > TABLE_BYTES_MAX)
			continue;
		data = elf_getdata_rawchunk(module->elf, (int64_t)head.p_offset, head.p_filesz,
					    ELF_T_BYTE);
		if (data == NULL || data->d_buf == NULL)
			continue;
		module->table = head.p_vaddr;
		module->table_bytes = data->d_buf;
		module->table_len = data->d_size;
	}
	return found;
}

/*
 * The unwind information. libdw looks at sections first, and overlooks .eh_frame_hdr where the
 * linker put it behind .eh_frame, as in libtorch: each look-up would then parse all of it, for 100
 * ms. Of a view without sections libdw takes the table from the program headers.
 */
static void open_rules(struct module *module)
{
	struct stat about;
	Elf64_Ehdr *head;
	void *view;

	if (module->fd < 0 || module->table == 0 || fstat(module->fd, &about) != 0 ||
	    gelf_getclass(module->elf) != ELFCLASS64) {
		module->cfi = dwarf_getcfi_elf(module->elf);
		return;
	}
	view = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, module->fd,
		    0);
	if (view == MAP_FAILED)
		return;
	module->view = view;
	module->view_len = (size_t)about.st_size;
	head = view;
	head->e_shoff = 0;
	head->e_shnum = head->e_shstrndx = 0;
	module->view_elf = elf_memory(module->view, module->view_len);
	if (module->view_elf != NULL)
		module->cfi = dwarf_getcfi_elf(module->view_elf);
}

bool module_open(struct modules *modules, struct module *module)
{
	if (module->opened)
		return module->elf != NULL;
	module->opened = true;
	(void)elf_version(EV_CURRENT);
	if (module->code == 0)
		return false;
	if (module->path[0] != '/') {
		open_memory(modules, module);
	} else {
		module->fd = open_file(modules, module);
		module->replaced = module->fd < 0;
		modules->replaced_cnt += module->replaced;
		if (module->fd >= 0)
			module->elf = elf_begin(module->fd, ELF_C_READ_MMAP, NULL);
	}
	if (module->elf != NULL && (elf_kind(module->elf) != ELF_K_ELF || !read_segments(module))) {
		(void)elf_end(module->elf);
		module->elf = NULL;
	}
	if (module->elf != NULL)
		open_rules(module);
	return module->elf != NULL;
}

/* Functions by the table of unwind information. */

static int32_t table_int(const unsigned char *bytes)
{
	int32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static uintptr_t table_start(const struct module *module, size_t index)
{
	return module->table +
	       (uintptr_t)(intptr_t)table_int(module->table_bytes + TABLE_HEAD + 8 * index);
}

bool module_function(const struct module *module, uintptr_t addr, uintptr_t *ret_begin,
		     uintptr_t *ret_end)
{
	const unsigned char *bytes = module->table_bytes;
	size_t low = 0, high, cnt;

	if (bytes == NULL || module->table_len < TABLE_HEAD || bytes[0] != 1 ||
	    bytes[2] != ENCODED_COUNT || bytes[3] != ENCODED_TABLE)
		return false;
	cnt = (uint32_t)table_int(bytes + 8);
	cnt = MIN(cnt, (module->table_len - TABLE_HEAD) / 8);
	high = cnt;
	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (table_start(module, mid) <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0)
		return false;
	*ret_begin = table_start(module, low - 1);
	*ret_end = low < cnt ? table_start(module, low)
			     : module->code_end - module->bias; /* the last one */
	return true;
}

const unsigned char *module_code(const struct module *module, uintptr_t addr, size_t len)
{
	const uintptr_t begin = module->code - module->bias;
	const size_t offset = addr - begin + module->code_offset;

	if (module->view == NULL || addr < begin ||
	    addr - begin > module->code_end - module->code || offset > module->view_len ||
	    len > module->view_len - offset)
		return NULL;
	return (const unsigned char *)module->view + offset;
}
