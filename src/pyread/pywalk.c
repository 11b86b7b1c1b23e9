/* SPDX-License-Identifier: Apache-2.0 */
#include "pyread/pywalk.h"

#include "pyread/pyframes.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

enum {
	PTHREAD_BYTES = 2048,
	GLIBC_TID = 720, /* of glibc on x86-64: looked at first */
	RETRIES = 3,
	OWNED_BY_GENERATOR = 1,
};

bool pywalk_fits(const struct pylayout *layout)
{
	return layout->thread_bytes <= PYWALK_THREAD_BYTES &&
	       layout->frame_bytes <= PYFRAMES_BYTES && layout->code_bytes <= PYCODES_BYTES &&
	       MAX(layout->gil_locked, layout->gil_holder) <= PYWALK_GIL_BYTES - 8;
}

/* Threads. */

bool pywalk_thread_read(const struct pysource *source, uintptr_t tstate,
			unsigned char bytes[static PYWALK_THREAD_BYTES])
{
	return selfmem_read(&source->mem, tstate, bytes, source->layout->thread_bytes) &&
	       pylayout_word(bytes, source->layout->thread_interp) == source->interp;
}

uint32_t pywalk_tid(const struct pysource *source, const unsigned char *bytes)
{
	const struct pylayout *layout = source->layout;
	uint32_t tid = 0;

	if (layout->thread_native != 0)
		return (uint32_t)pylayout_word(bytes, layout->thread_native);
	if (!selfmem_read(&source->mem,
			  pylayout_word(bytes, layout->thread_pthread) + source->pthread_tid, &tid,
			  sizeof(tid)))
		return 0;
	return tid;
}

bool pywalk_next(const struct pysource *source, struct pywalk_threads *threads)
{
	uintptr_t next = 0;

	if (threads->error < 0 || threads->cnt >= PYWALK_THREADS_MAX)
		return false;
	errno = 0;
	if (threads->cnt > 0)
		next = pylayout_word(threads->bytes, source->layout->thread_next);
	else if (!selfmem_read(&source->mem, source->interp + source->layout->threads, &next,
			       sizeof(next)))
		threads->error = errno == ESRCH ? -ESRCH : -EFAULT;
	if (next == 0)
		return false;
	if (!pywalk_thread_read(source, next, threads->bytes)) {
		threads->error = -EFAULT;
		return false;
	}
	threads->tstate = next;
	threads->cnt++;
	return true;
}

int pywalk_find_pthread_tid(const struct selfmem *mem, uintptr_t pthread, uint32_t tid,
			    uint32_t *ret_offset)
{
	uint32_t words[PTHREAD_BYTES / 4];
	size_t size = sizeof(words);

	/* The struct of the last thread on a mapping may end early. */
	while (size > 0 && !selfmem_read(mem, pthread, words, size))
		size -= 256;
	/* Small numbers, as in a container, are elsewhere in the struct, too. */
	if (size > GLIBC_TID && words[GLIBC_TID / 4] == tid) {
		*ret_offset = GLIBC_TID;
		return 0;
	}
	for (size_t i = 0; i < size / 4; i++)
		if (words[i] == tid) {
			*ret_offset = (uint32_t)(4 * i);
			return 0;
		}
	return -ENOENT;
}

/* Frames. */

/* Has it begun? The interpreter leaves out those that have not. */
static bool frame_complete(const struct pylayout *layout, const unsigned char *frame,
			   uintptr_t code, uint64_t known)
{
	const uintptr_t first = code + layout->code_start + 2 * (known >> 48);

	return layout->code_traceable == 0 || frame[layout->frame_mark] == OWNED_BY_GENERATOR ||
	       pylayout_word(frame, layout->frame_instr) >= first;
}

/* In bytes from the start of the code; one that has not begun is before it: 0. */
static uint32_t frame_instr(const struct pylayout *layout, const unsigned char *frame,
			    uintptr_t code)
{
	const uintptr_t start = code + layout->code_start;
	uint32_t last;

	if (layout->code_start != 0) {
		uintptr_t instr = pylayout_word(frame, layout->frame_instr);

		return instr > start ? (uint32_t)(instr - start) : 0;
	}
	last = pylayout_int(frame, layout->frame_instr);
	return last == UINT32_MAX ? 0 : last * (layout->minor == 10 ? 2 : 1);
}

static bool has_mark(const struct pylayout *layout, uint32_t set, const unsigned char *frame)
{
	const unsigned char mark = frame[layout->frame_mark];

	return mark < 32 && (set >> mark & 1) != 0;
}

/* Before 3.11 each frame has a native one; 3.11 marks those; later versions put a shim below. */
static bool is_entry(const struct pylayout *layout, const unsigned char *frame)
{
	if (layout->minor == 11)
		return frame[layout->frame_entry] != 0;
	return layout->frame_shims == 0;
}

static void add_frame(struct pywalk *walk, const unsigned char *frame, uintptr_t code)
{
	const struct pylayout *layout = walk->source.layout;

	if (walk->depth == walk->cap) {
		walk->truncated = true;
		return;
	}
	if (walk->depth == 0)
		walk->leaf_instr = frame_instr(layout, frame, code);
	if (walk->places != NULL)
		walk->places[walk->depth] = (struct pywalk_place){
			.instr = frame_instr(layout, frame, code),
			.entry = is_entry(layout, frame),
		};
	walk->codes[walk->depth++] = code;
}

/* False if the frame makes no sense. */
static bool walk_frame(struct pywalk *walk, const unsigned char *frame)
{
	const struct pylayout *layout = walk->source.layout;
	/* From 3.14 on the lowest bits are flags for reference counting. */
	const uintptr_t code = pylayout_word(frame, layout->frame_code) & ~(uintptr_t)7;
	uint64_t known;

	if (has_mark(layout, layout->frame_shims, frame)) {
		if (walk->places != NULL && walk->depth > 0)
			walk->places[walk->depth - 1].entry = true;
		return true;
	}
	known = pycodes_find(&walk->source, code);
	if (known == 0)
		return false;
	if (walk->places != NULL || frame_complete(layout, frame, code, known))
		add_frame(walk, frame, code);
	return true;
}

/*
 * Once. False if somewhere on the way the stack changed in a way that shows: a frame
 * without code, or an end in a frame that has just been left.
 */
static bool walk_once(uintptr_t tstate, struct pyframes *frames, struct pywalk *walk)
{
	const struct pylayout *layout = walk->source.layout;
	unsigned char thread[PYWALK_THREAD_BYTES];
	const unsigned char *bytes;
	uintptr_t frame;
	bool root = true;

	walk->depth = 0;
	walk->truncated = false;
	walk->leaf_instr = 0;
	if (!pywalk_thread_read(&walk->source, tstate, thread) ||
	    !pyframes_begin(frames, &walk->source.mem, layout, tstate, thread))
		return false;
	frame = frames->first;
	/* Shims and frames that have not begun count for nothing, but end a loop of them. */
	for (size_t i = 0; frame != 0 && !walk->truncated && i < 4 * walk->cap + 64; i++) {
		bytes = pyframes_borrow(frames, frame);
		if (bytes == NULL || !walk_frame(walk, bytes))
			return false;
		root = has_mark(layout, layout->frame_roots, bytes);
		frame = pylayout_word(bytes, layout->frame_prev);
	}
	return walk->truncated || (frame == 0 && root);
}

bool pywalk_frames(struct pywalk *walk, uintptr_t tstate)
{
	struct pyframes frames;
	bool done = false;

	for (int i = 0; i < RETRIES && !done; i++)
		done = walk_once(tstate, &frames, walk);
	if (done)
		pyframes_remember(&frames);
	return done;
}

/* The GIL. */

static bool gil_find(const struct pysource *source, uintptr_t *ret)
{
	if (source->layout->minor < 12) {
		*ret = source->runtime + source->layout->gil;
		return true;
	}
	return selfmem_read(&source->mem, source->interp + source->layout->gil, ret, 8) &&
	       *ret != 0;
}

int pywalk_gil(const struct pysource *source, struct pywalk_gil *ret)
{
	const struct pylayout *layout = source->layout;
	unsigned char bytes[PYWALK_GIL_BYTES], thread[PYWALK_THREAD_BYTES];
	uintptr_t gil, holder;

	if (!gil_find(source, &gil) ||
	    !selfmem_read(&source->mem, gil, bytes, layout->gil_locked + 4))
		return -EAGAIN;
	*ret = (struct pywalk_gil){
		.begin = gil + layout->gil_cond,
		.end = gil + layout->gil_cond + sizeof(pthread_cond_t) + sizeof(pthread_mutex_t),
	};
	holder = pylayout_word(bytes, layout->gil_holder);
	if (pylayout_int(bytes, layout->gil_locked) == 1 &&
	    pywalk_thread_read(source, holder, thread))
		ret->holder_tid = pywalk_tid(source, thread);
	return 0;
}

bool pywalk_collects(const struct pysource *source)
{
	const struct pylayout *layout = source->layout;
	const uintptr_t base = layout->minor == 8 ? source->runtime : source->interp;
	int32_t flag = 0;

	return layout->collecting != 0 && base != 0 &&
	       selfmem_read(&source->mem, base + layout->collecting, &flag, sizeof(flag)) &&
	       flag == 1;
}
