/* SPDX-License-Identifier: Apache-2.0 */
#include "pyread/pycodes.h"

#include "base/splitmix.h"
#include "pyread/pytext.h"

#include <errno.h>
#include <stdatomic.h>

enum {
	OBJECT_TYPE = 8, /* of a PyObject, in all versions */
	KNOWN_CODES = 4096,
};

/*
 * Addresses of code objects, each with its first traceable instruction in the upper 16 bits and
 * combined with the salt of its process.
 */
static _Atomic uint64_t known[KNOWN_CODES];

static _Atomic uint64_t *known_slot(const struct pysource *source, uintptr_t code)
{
	return &known[(code >> 4 ^ code >> 16 ^ source->salt) % KNOWN_CODES];
}

/* bytes: the data at that address. Returns its entry, 0 if it is not a code object. */
static uint64_t code_note(const struct pysource *source, uintptr_t code, const unsigned char *bytes)
{
	uint64_t traceable = 0, entry;

	if (pylayout_word(bytes, OBJECT_TYPE) != source->code_type)
		return 0;
	if (source->layout->code_traceable != 0)
		traceable = MIN(pylayout_int(bytes, source->layout->code_traceable),
				(uint32_t)UINT16_MAX);
	entry = code | traceable << 48;
	atomic_store_explicit(known_slot(source, code), entry ^ source->salt, memory_order_relaxed);
	return entry;
}

uint64_t pycodes_find(const struct pysource *source, uintptr_t code)
{
	unsigned char bytes[PYCODES_BYTES];
	uint64_t entry =
		atomic_load_explicit(known_slot(source, code), memory_order_relaxed) ^ source->salt;

	if (code == 0 || code >> 48 != 0)
		return 0;
	if ((entry & ((UINT64_C(1) << 48) - 1)) == code)
		return entry;
	if (!selfmem_read(&source->mem, code, bytes, source->layout->code_bytes))
		return 0;
	return code_note(source, code, bytes);
}

static uint64_t stamp_of(const struct pysource *source, uintptr_t code, const unsigned char *bytes)
{
	uint64_t stamp;

	if (code_note(source, code, bytes) == 0)
		return 0;
	stamp = splitmix_finish(source->salt + pylayout_word(bytes, source->layout->code_name));
	stamp = splitmix_finish(stamp + pylayout_word(bytes, source->layout->code_file));
	stamp = splitmix_finish(stamp + pylayout_int(bytes, source->layout->code_line));
	return stamp != 0 ? stamp : 1;
}

/* Up to SELFMEM_PARTS of them; returns how many were done: at least one. */
static size_t stamp_some(const struct pysource *source, const uintptr_t *codes, size_t cnt,
			 uint64_t *stamps)
{
	unsigned char bytes[SELFMEM_PARTS][PYCODES_BYTES];
	struct selfmem_part parts[SELFMEM_PARTS];
	size_t done;

	cnt = MIN(cnt, (size_t)SELFMEM_PARTS);
	for (size_t i = 0; i < cnt; i++)
		parts[i] = (struct selfmem_part){ codes[i], bytes[i], source->layout->code_bytes };
	done = selfmem_read_parts(&source->mem, parts, cnt);
	for (size_t i = 0; i < done; i++)
		stamps[i] = stamp_of(source, codes[i], bytes[i]);
	if (done == cnt)
		return cnt;
	stamps[done] = 0;
	return done + 1;
}

size_t pycodes_stamp(const struct pysource *source, const uintptr_t *codes, size_t cnt,
		     uint64_t *stamps)
{
	size_t found = 0;

	for (size_t i = 0; i < cnt;)
		i += stamp_some(source, codes + i, cnt - i, stamps + i);
	for (size_t i = 0; i < cnt; i++)
		found += stamps[i] != 0;
	return found;
}

static bool copy_text(const struct pysource *source, uintptr_t text, enum pytext_part part,
		      char *ret, size_t size)
{
	return pytext_copy(&source->mem, source->layout, text, part, ret, size);
}

int pycodes_name(const struct pysource *source, uintptr_t code, struct pycode *ret)
{
	unsigned char bytes[PYCODES_BYTES];
	struct pycode found;

	if (!selfmem_read(&source->mem, code, bytes, source->layout->code_bytes) ||
	    code_note(source, code, bytes) == 0 ||
	    !copy_text(source, pylayout_word(bytes, source->layout->code_file), PYTEXT_END,
		       found.file, sizeof(found.file)) ||
	    !copy_text(source, pylayout_word(bytes, source->layout->code_name), PYTEXT_START,
		       found.name, sizeof(found.name)))
		return -EFAULT;
	found.first_line = pylayout_int(bytes, source->layout->code_line);
	*ret = found;
	return 0;
}
