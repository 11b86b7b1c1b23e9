/* SPDX-License-Identifier: Apache-2.0 */
#include "pyread/selfmem.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int selfmem_open(struct selfmem *ret)
{
	struct selfmem mem = { .pid = getpid(), .fd = -1 };
	volatile char known = 1;
	char got = 0;

	if (!selfmem_read(&mem, (uintptr_t)&known, &got, 1) || got != known) {
		mem.fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
		if (mem.fd < 0)
			return -errno;
		if (!selfmem_read(&mem, (uintptr_t)&known, &got, 1) || got != known) {
			(void)close(mem.fd);
			return -EPERM;
		}
	}
	*ret = mem;
	return 0;
}

bool selfmem_usable(const struct selfmem *mem)
{
	return mem->pid != 0 && mem->pid == getpid();
}

static size_t copy_from_file(int fd, const struct selfmem_part *parts, size_t cnt)
{
	size_t done;

	for (done = 0; done < cnt; done++)
		if (pread(fd, parts[done].buf, parts[done].size, (off_t)parts[done].addr) !=
		    (ssize_t)parts[done].size)
			break;
	return done;
}

size_t selfmem_read_parts(const struct selfmem *mem, const struct selfmem_part *parts, size_t cnt)
{
	struct iovec local[SELFMEM_PARTS], remote[SELFMEM_PARTS];
	size_t done;
	ssize_t left;

	if (cnt == 0)
		return 0;
	cnt = MIN(cnt, (size_t)SELFMEM_PARTS);
	if (mem->fd >= 0)
		return copy_from_file(mem->fd, parts, cnt);
	done = 0;
	do {
		local[done] = (struct iovec){ parts[done].buf, parts[done].size };
		remote[done] = (struct iovec){ (void *)parts[done].addr, parts[done].size };
	} while (++done < cnt);
	left = process_vm_readv(mem->pid, local, cnt, remote, cnt, 0);
	for (done = 0; done < cnt && left >= (ssize_t)parts[done].size; done++)
		left -= (ssize_t)parts[done].size;
	return done;
}

bool selfmem_read(const struct selfmem *mem, uintptr_t addr, void *buf, size_t size)
{
	const struct selfmem_part part = { addr, buf, size };

	return selfmem_read_parts(mem, &part, 1) == 1;
}
