/* SPDX-License-Identifier: Apache-2.0 */
#include "pyread/pylayout.h"

#include "pyread/pyoffsets.h"

#include <errno.h>
#include <string.h>

/*
 * _Py_DebugOffsets as an array of 64-bit numbers: the index of the first of each group.
 * Each group begins with the size of the structure it describes; the numbers after it
 * have kept their order, 3.14 added some to the ends and threads_main.
 */
struct debug_groups {
	size_t interp, thread, frame, code, object, str, gc;
	size_t interp_added; /* numbers between threads_head and gc */
};

enum { DEBUG_VERSION = 1, DEBUG_FREE_THREADED = 2 };

static const struct debug_groups DEBUG_3_13 = {
	.interp = 6,
	.thread = 19,
	.frame = 28,
	.code = 34,
	.object = 44,
	.str = 67,
	.gc = 71,
};
/* Read from outside on Debian's 3.14.10; never tried inside a process. */
static const struct debug_groups DEBUG_3_14 = {
	.interp = 6,
	.thread = 22,
	.frame = 31,
	.code = 39,
	.object = 50,
	.str = 77,
	.gc = 81,
	.interp_added = 1,
};

/*
 * Owners of frames (enum _frameowner) that mark C code: FRAME_OWNED_BY_CSTACK, in 3.14 also
 * FRAME_OWNED_BY_INTERPRETER.
 */
enum { SHIMS_3_13 = 1 << 3, SHIMS_3_14 = 1 << 3 | 1 << 4 };

/* Where the interpreter says that it collects garbage; 0: the numbers are not what they should be. */
static uint32_t find_collecting(const uint64_t *published, const struct debug_groups *at)
{
	const uint64_t gc = published[at->interp + at->interp_added + 4];
	const uint64_t size = published[at->gc], flag = published[at->gc + 1];

	if (gc > 1 << 20 || size > 4096 || flag == 0 || flag + 4 > size || flag % 4 != 0)
		return 0;
	return (uint32_t)(gc + flag);
}

static int from_debug_offsets(uint32_t minor, const uint64_t *published, struct pylayout *ret)
{
	const struct debug_groups *at = minor == 13 ? &DEBUG_3_13 : &DEBUG_3_14;
	const uint64_t *interp = published + at->interp, *gil = interp + at->interp_added + 8;
	const uint64_t *thread = published + at->thread, *frame = published + at->frame;
	const uint64_t *code = published + at->code, *str = published + at->str;

	if (memcmp(published, "xdebugpy", 8) != 0 ||
	    published[DEBUG_VERSION] >> 16 != (0x300 | minor))
		return -ENOENT;
	if (published[DEBUG_FREE_THREADED] != 0)
		return -ENOTSUP;
	/* The groups after the one of code objects are where they should be. */
	if (published[at->object] != 16 || published[at->object + 1] != 8 || str[1] != 32 ||
	    str[2] != 16)
		return -ENOENT;
	*ret = (struct pylayout){
		.minor = minor,
		/* It follows the newest interpreter. */
		.runtime_main = (uint32_t)published[at->interp - 1] + 8,
		.gil = (uint32_t)gil[0],
		.gil_locked = (uint32_t)(gil[3] - gil[1]),
		.gil_holder = (uint32_t)(gil[4] - gil[1]),
		.gil_cond = (uint32_t)(gil[3] - gil[1]) + 16,
		.collecting = find_collecting(published, at),
		.threads = (uint32_t)interp[3],
		.thread_next = (uint32_t)thread[2],
		.thread_interp = (uint32_t)thread[3],
		.thread_frame = (uint32_t)thread[4],
		.thread_pthread = (uint32_t)thread[5],
		.thread_native = (uint32_t)thread[6],
		.thread_chunk = (uint32_t)thread[7],
		.frame_prev = (uint32_t)frame[1],
		.frame_code = (uint32_t)frame[2],
		.frame_instr = (uint32_t)frame[3],
		.frame_mark = (uint32_t)frame[5],
		.frame_roots = minor == 13 ? SHIMS_3_13 : SHIMS_3_14,
		.frame_shims = minor == 13 ? SHIMS_3_13 : SHIMS_3_14,
		.code_file = (uint32_t)code[1],
		.code_name = (uint32_t)code[2],
		.code_table = (uint32_t)code[4],
		.code_line = (uint32_t)code[5],
		/* An int, co_extra, then the instructions. */
		.code_traceable = (uint32_t)code[9] - 16,
		.code_start = (uint32_t)code[9],
		.str_ascii = (uint32_t)str[3],
		.str_compact = (uint32_t)str[3] + 16,
	};
	return 0;
}

/* The end of the last of these words. */
static uint32_t words_end(const uint32_t *offs, size_t cnt)
{
	uint32_t end = 0;

	for (size_t i = 0; i < cnt; i++)
		end = MAX(end, offs[i] + 8);
	return end;
}

/* How much of each structure has to be read to see all of its fields. */
static void plan_reads(struct pylayout *layout)
{
	const uint32_t thread[] = { layout->thread_frame, layout->thread_pthread,
				    layout->thread_native, layout->thread_chunk + 8 };
	const uint32_t frame[] = { layout->frame_prev, layout->frame_code, layout->frame_instr,
				   layout->frame_mark };
	const uint32_t code[] = { layout->code_name, layout->code_file, layout->code_table,
				  layout->code_traceable };

	layout->thread_bytes = words_end(thread, ARRAY_SIZE(thread));
	layout->frame_bytes = words_end(frame, ARRAY_SIZE(frame));
	layout->code_bytes = words_end(code, ARRAY_SIZE(code));
}

/* Of "3.12.1 ..."; 0 for anything else than 3.x. */
static uint32_t parse_minor(const char *version)
{
	uint32_t minor = 0;

	if (strncmp(version, "3.", 2) != 0)
		return 0;
	for (version += 2; *version >= '0' && *version <= '9' && minor < 1000; version++)
		minor = minor * 10 + (uint32_t)(*version - '0');
	return minor;
}

int pylayout_find(const char *version, const void *runtime, struct pylayout *ret)
{
	uint32_t minor = parse_minor(version);
	struct pylayout layout = { 0 };
	int err = -ENOENT;

	if (minor == 13 || minor == 14)
		err = from_debug_offsets(minor, runtime, &layout);
	for (size_t i = 0; i < ARRAY_SIZE(PYOFFSETS); i++)
		if (PYOFFSETS[i].minor == minor) {
			layout = PYOFFSETS[i];
			err = 0;
		}
	if (err < 0)
		return err;
	plan_reads(&layout);
	*ret = layout;
	return 0;
}
