/* SPDX-License-Identifier: Apache-2.0 */
#include "pyread/pyframes.h"

#include <stdatomic.h>

enum {
	CHUNK_HEADER = 24, /* previous, size, top: three words */
	TRAILS = 32,
};

/*
 * Where the strays of threads were, by a hash of thread and process. Readers may mix it up
 * between them: a wrong guess costs a copy for nothing.
 */
static struct trail {
	_Atomic uintptr_t frames[PYFRAMES_STRAYS]; /* up to the first 0 */
} trails[TRAILS];

static struct trail *trail_of(const struct pyframes *frames)
{
	uintptr_t tstate = frames->tstate;

	return &trails[(tstate >> 4 ^ tstate >> 12 ^ (uintptr_t)frames->mem->pid) % TRAILS];
}

/* The part of the chunk that ends there, as far as it fits. */
static struct selfmem_part window_part(struct pyframes *frames, uintptr_t end)
{
	uintptr_t begin = frames->chunk + CHUNK_HEADER;

	if (end > begin && end - begin > PYFRAMES_WINDOW)
		begin = end - PYFRAMES_WINDOW;
	frames->begin = MIN(begin, end);
	frames->end = end;
	return (struct selfmem_part){ frames->begin, frames->window, end - frames->begin };
}

static size_t guess_parts(struct pyframes *frames, struct selfmem_part *parts)
{
	struct trail *trail = trail_of(frames);
	uintptr_t frame;
	size_t cnt = 0;

	while (cnt < PYFRAMES_STRAYS) {
		frame = atomic_load_explicit(&trail->frames[cnt], memory_order_relaxed);
		if (frame == 0)
			break;
		parts[cnt] = (struct selfmem_part){ frame, frames->strays[cnt],
						    frames->layout->frame_bytes };
		frames->guessed[cnt++] = frame;
	}
	return cnt;
}

/* The chunk's own note of how full it is lags behind while it is the newest. */
bool pyframes_begin(struct pyframes *frames, const struct selfmem *mem,
		    const struct pylayout *layout, uintptr_t tstate, const unsigned char *bytes)
{
	struct selfmem_part parts[3 + PYFRAMES_STRAYS];
	size_t cnt = 0, done;

	frames->mem = mem;
	frames->layout = layout;
	frames->tstate = tstate;
	frames->begin = frames->end = frames->chunk = frames->prev = frames->prev_end = 0;
	frames->next = frames->met_cnt = 0;
	frames->first = pylayout_word(bytes, layout->thread_frame);
	if (layout->minor == 11 || layout->minor == 12)
		parts[cnt++] = (struct selfmem_part){ frames->first + layout->cframe_frame,
						      &frames->first, 8 };
	if (layout->thread_chunk != 0 && pylayout_word(bytes, layout->thread_chunk) != 0) {
		frames->chunk = pylayout_word(bytes, layout->thread_chunk);
		parts[cnt++] = (struct selfmem_part){ frames->chunk, &frames->prev, 8 };
		parts[cnt++] = window_part(frames, pylayout_word(bytes, layout->thread_chunk + 8));
	}
	done = selfmem_read_parts(mem, parts, cnt + guess_parts(frames, parts + cnt));
	frames->guessed_cnt = done > cnt ? done - cnt : 0;
	return done >= cnt;
}

static bool window_slide(struct pyframes *frames, uintptr_t end)
{
	const struct selfmem_part part = window_part(frames, end);

	return selfmem_read_parts(frames->mem, &part, 1) == 1;
}

/* True if the frame is in the previous chunk, which becomes the current one. */
static bool step_back(struct pyframes *frames, uintptr_t frame)
{
	uintptr_t header[3];

	if (frames->prev == 0)
		return false;
	if (frames->prev_end == 0) {
		if (!selfmem_read(frames->mem, frames->prev, header, sizeof(header)))
			return false;
		frames->prev_end = frames->prev + CHUNK_HEADER + header[2] * sizeof(header[2]);
	}
	if (frame < frames->prev + CHUNK_HEADER || frame >= frames->prev_end ||
	    !selfmem_read(frames->mem, frames->prev, header, sizeof(header)))
		return false;
	frames->chunk = frames->prev;
	frames->prev = header[0];
	frames->prev_end = 0;
	return true;
}

static const unsigned char *borrow_stray(struct pyframes *frames, uintptr_t frame)
{
	if (frames->met_cnt < PYFRAMES_STRAYS)
		frames->met[frames->met_cnt++] = frame;
	for (size_t i = frames->next; i < frames->guessed_cnt; i++)
		if (frames->guessed[i] == frame) {
			frames->next = i + 1;
			return frames->strays[i];
		}
	if (!selfmem_read(frames->mem, frame, frames->stray, frames->layout->frame_bytes))
		return NULL;
	return frames->stray;
}

const unsigned char *pyframes_borrow(struct pyframes *frames, uintptr_t frame)
{
	const uintptr_t end = frame + frames->layout->frame_bytes;

	if (end < frame)
		return NULL;
	if (frame >= frames->begin && end <= frames->end)
		return frames->window + (frame - frames->begin);
	if ((frame < frames->chunk + CHUNK_HEADER || frame >= frames->begin) &&
	    !step_back(frames, frame))
		return borrow_stray(frames, frame);
	return window_slide(frames, end) ? frames->window + (frame - frames->begin) : NULL;
}

void pyframes_remember(const struct pyframes *frames)
{
	struct trail *trail = trail_of(frames);

	for (size_t i = 0; i < frames->met_cnt; i++)
		atomic_store_explicit(&trail->frames[i], frames->met[i], memory_order_relaxed);
	if (frames->met_cnt < PYFRAMES_STRAYS)
		atomic_store_explicit(&trail->frames[frames->met_cnt], 0, memory_order_relaxed);
}
