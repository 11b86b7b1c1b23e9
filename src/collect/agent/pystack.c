/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agent/pystack.h"

#include "collect/agent/pylayout.h"
#include "collect/agent/selfmem.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Weak: the dynamic linker fills them in where this library is loaded into Python.
 * dlsym would do the same, but since glibc 2.34 it ties the library to that version.
 */
#define WEAK __attribute__((weak))
extern WEAK char _PyRuntime[], PyCode_Type[];
extern WEAK const char *Py_GetVersion(void);
extern WEAK void *PyThreadState_Get(void);
extern WEAK void *PyInterpreterState_Main(void);
extern WEAK void *PyUnicode_FromString(const char *text);
extern WEAK void Py_DecRef(void *object);

enum {
	/* Of all versions. */
	OBJECT_TYPE = 8,
	STR_LENGTH = 16,
	STR_STATE = 32,
	CHUNK_HEADER = 24, /* previous, size, top: three words */

	WINDOW_BYTES = 16 << 10, /* a chunk of the stack of frames, as long as frames are small */
	THREAD_BYTES = 512,
	FRAME_BYTES = 128,
	CODE_BYTES = 256,
	PTHREAD_BYTES = 2048,
	THREADS_MAX = 4096,
	RETRIES = 3,
	KNOWN_CODES = 4096,
	OWNED_BY_GENERATOR = 1,
};

static struct pystack {
	_Atomic bool open;
	struct selfmem mem;
	struct pylayout layout;
	uintptr_t runtime, interp, code_type;
	uint32_t thread_bytes, frame_bytes, code_bytes; /* how much of each is read */
	uint32_t pthread_tid;				/* before 3.11: offset in struct pthread */
	/*
	 * Addresses at which a code object was seen, and its first traceable instruction in
	 * the upper 16 bits: spares a read for each frame. An entry may be out of date;
	 * it is a guard against garbage, who it is tells pystack_stamps.
	 */
	_Atomic uint64_t known[KNOWN_CODES];
} py;

static uintptr_t word_at(const unsigned char *bytes, uint32_t off)
{
	uintptr_t word;

	memcpy(&word, bytes + off, sizeof(word));
	return word;
}

static uint32_t int_at(const unsigned char *bytes, uint32_t off)
{
	uint32_t value;

	memcpy(&value, bytes + off, sizeof(value));
	return value;
}

static bool usable(void)
{
	return atomic_load_explicit(&py.open, memory_order_acquire) && selfmem_usable(&py.mem);
}

/* Code objects. */

static _Atomic uint64_t *known_slot(uintptr_t code)
{
	return &py.known[(code >> 4 ^ code >> 16) % KNOWN_CODES];
}

/* bytes: what is at that address. Returns its entry, 0 if it is no code object. */
static uint64_t code_note(uintptr_t code, const unsigned char *bytes)
{
	uint64_t traceable = 0, entry;

	if (word_at(bytes, OBJECT_TYPE) != py.code_type)
		return 0;
	if (py.layout.code_traceable != 0)
		traceable = MIN(int_at(bytes, py.layout.code_traceable), (uint32_t)UINT16_MAX);
	entry = code | traceable << 48;
	atomic_store_explicit(known_slot(code), entry, memory_order_relaxed);
	return entry;
}

static uint64_t code_lookup(uintptr_t code)
{
	unsigned char bytes[CODE_BYTES];
	uint64_t entry = atomic_load_explicit(known_slot(code), memory_order_relaxed);

	if (code == 0 || code >> 48 != 0)
		return 0;
	if ((entry & ((UINT64_C(1) << 48) - 1)) == code)
		return entry;
	return selfmem_read(&py.mem, code, bytes, py.code_bytes) ? code_note(code, bytes) : 0;
}

/* splitmix64's finish: each bit of the input moves each of the output. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t stamp_of(uintptr_t code, const unsigned char *bytes)
{
	uint64_t stamp;

	if (code_note(code, bytes) == 0)
		return 0;
	stamp = mix(word_at(bytes, py.layout.code_name));
	stamp = mix(stamp + word_at(bytes, py.layout.code_file));
	stamp = mix(stamp + int_at(bytes, py.layout.code_line));
	return stamp != 0 ? stamp : 1;
}

/* Up to SELFMEM_PARTS of them; returns how many were done: at least one. */
static size_t stamp_some(const uintptr_t *codes, size_t cnt, uint64_t *stamps)
{
	unsigned char bytes[SELFMEM_PARTS][CODE_BYTES];
	struct selfmem_part parts[SELFMEM_PARTS];
	size_t done;

	cnt = MIN(cnt, (size_t)SELFMEM_PARTS);
	for (size_t i = 0; i < cnt; i++)
		parts[i] = (struct selfmem_part){ codes[i], bytes[i], py.code_bytes };
	done = selfmem_read_parts(&py.mem, parts, cnt);
	for (size_t i = 0; i < done; i++)
		stamps[i] = stamp_of(codes[i], bytes[i]);
	if (done == cnt)
		return cnt;
	stamps[done] = 0;
	return done + 1;
}

size_t pystack_stamps(const uintptr_t *codes, size_t cnt, uint64_t *stamps)
{
	size_t found = 0;

	memset(stamps, 0, cnt * sizeof(*stamps));
	if (!usable())
		return 0;
	for (size_t i = 0; i < cnt;)
		i += stamp_some(codes + i, cnt - i, stamps + i);
	for (size_t i = 0; i < cnt; i++)
		found += stamps[i] != 0;
	return found;
}

/* Strings. */

struct str {
	uintptr_t data;
	size_t length; /* in characters of `kind` bytes */
	size_t kind;
};

static bool str_find(uintptr_t object, struct str *ret)
{
	unsigned char bytes[STR_STATE + 8];
	uint32_t state;
	bool ascii;

	if (!selfmem_read(&py.mem, object, bytes, sizeof(bytes)))
		return false;
	/* Bit fields: 2 interned, 3 kind, 1 compact, 1 ascii. */
	state = int_at(bytes, STR_STATE) >> 2;
	ascii = (state >> 4 & 1) != 0;
	*ret = (struct str){
		.data = object + (ascii ? py.layout.str_ascii : py.layout.str_compact),
		.length = word_at(bytes, STR_LENGTH),
		.kind = state & 7,
	};
	return (state >> 3 & 1) != 0 && (ret->kind == 1 || ret->kind == 2 || ret->kind == 4);
}

static uint32_t char_at(const unsigned char *bytes, size_t kind)
{
	uint16_t half;

	if (kind == 1)
		return bytes[0];
	if (kind == 4)
		return int_at(bytes, 0);
	memcpy(&half, bytes, sizeof(half));
	return half;
}

/* Returns the number of bytes, 1 to 4. What Unicode has not (a lone surrogate) becomes '?'. */
static size_t put_utf8(uint32_t c, char ret[static 4])
{
	size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	static const unsigned char LEAD[] = { 0, 0xc0, 0xe0, 0xf0 };

	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
		ret[0] = '?';
		return 1;
	}
	ret[0] = (char)(LEAD[more] | c >> (6 * more));
	for (size_t i = 1; i <= more; i++)
		ret[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
	return more + 1;
}

/* How many of bytes[size] to skip so that the rest is at most `most` and begins a character. */
static size_t utf8_skip(const char *bytes, size_t size, size_t most)
{
	size_t skip = size > most ? size - most : 0;

	while (skip > 0 && skip < size && ((unsigned char)bytes[skip] & 0xc0) == 0x80)
		skip++;
	return skip;
}

/* ret[size]: the start of the string or its end, at most 256 characters of it. */
static bool str_copy(uintptr_t object, bool keep_end, char *ret, size_t size)
{
	enum { CHARS = 256 };
	unsigned char bytes[4 * CHARS];
	char utf8[4 * CHARS];
	struct str str;
	size_t cnt, used = 0, skip, part;

	if (!str_find(object, &str))
		return false;
	cnt = MIN(str.length, (size_t)CHARS);
	if (keep_end)
		str.data += (str.length - cnt) * str.kind;
	if (!selfmem_read(&py.mem, str.data, bytes, cnt * str.kind))
		return false;
	skip = 0;
	for (size_t i = 0; i < cnt; i++) {
		part = put_utf8(char_at(bytes + i * str.kind, str.kind), utf8 + used);
		if (!keep_end && used + part >= size)
			break;
		used += part;
	}
	if (keep_end)
		skip = utf8_skip(utf8, used, size - 1);
	memcpy(ret, utf8 + skip, used - skip);
	ret[used - skip] = '\0';
	return true;
}

int pystack_code(uintptr_t code, struct pystack_code *ret)
{
	unsigned char bytes[CODE_BYTES];
	struct pystack_code found;

	if (!usable() || !selfmem_read(&py.mem, code, bytes, py.code_bytes) ||
	    code_note(code, bytes) == 0 ||
	    !str_copy(word_at(bytes, py.layout.code_file), true, found.file, sizeof(found.file)) ||
	    !str_copy(word_at(bytes, py.layout.code_name), false, found.name, sizeof(found.name)))
		return -EFAULT;
	found.first_line = int_at(bytes, py.layout.code_line);
	*ret = found;
	return 0;
}

/* Threads. */

/* False unless it is a thread of our interpreter. */
static bool thread_read(uintptr_t tstate, unsigned char bytes[static THREAD_BYTES])
{
	return selfmem_read(&py.mem, tstate, bytes, py.thread_bytes) &&
	       word_at(bytes, py.layout.thread_interp) == py.interp;
}

/* 0 for a thread that has not begun or has ended. */
static uint32_t thread_tid(const unsigned char *bytes)
{
	uint32_t tid = 0;

	if (py.layout.thread_native != 0)
		return (uint32_t)word_at(bytes, py.layout.thread_native);
	if (!selfmem_read(&py.mem, word_at(bytes, py.layout.thread_pthread) + py.pthread_tid, &tid,
			  sizeof(tid)))
		return 0;
	return tid;
}

size_t pystack_threads(struct pystack_thread *ret, size_t cap, size_t *dropped)
{
	unsigned char bytes[THREAD_BYTES];
	uintptr_t tstate = 0;
	uint32_t tid;
	size_t cnt = 0;

	*dropped = 0;
	if (!usable() || !selfmem_read(&py.mem, py.interp + py.layout.threads, &tstate, 8))
		return 0;
	for (size_t i = 0; i < THREADS_MAX && tstate != 0; i++) {
		if (!thread_read(tstate, bytes))
			break;
		tid = thread_tid(bytes);
		if (tid != 0 && cnt < cap)
			ret[cnt++] = (struct pystack_thread){ tid, tstate };
		else if (tid != 0)
			++*dropped;
		tstate = word_at(bytes, py.layout.thread_next);
	}
	return cnt;
}

/* Frames. */

/*
 * A copy of the newest part of a thread's stack of frames, which comes in chunks of
 * usually 16 KiB. It moves towards older frames only, as a walk does.
 */
struct window {
	uintptr_t begin, end;	  /* what `bytes` holds */
	uintptr_t chunk;	  /* the chunk that holds this; 0 without one */
	uintptr_t prev, prev_end; /* the chunk before; its end is 0 until somebody asked */
	unsigned char bytes[WINDOW_BYTES];
	unsigned char stray[FRAME_BYTES]; /* a frame that lies elsewhere */
};

/* The part that ends there. */
static struct selfmem_part window_part(struct window *window, uintptr_t end)
{
	uintptr_t begin = window->chunk + CHUNK_HEADER;

	if (end > begin && end - begin > WINDOW_BYTES)
		begin = end - WINDOW_BYTES;
	window->begin = MIN(begin, end);
	window->end = end;
	return (struct selfmem_part){ window->begin, window->bytes, end - window->begin };
}

static bool window_slide(struct window *window, uintptr_t end)
{
	const struct selfmem_part part = window_part(window, end);

	return selfmem_read_parts(&py.mem, &part, 1) == 1;
}

/* True if the frame lies in the chunk before this one, which becomes the current one. */
static bool window_step_back(struct window *window, uintptr_t frame)
{
	uintptr_t header[3];

	if (window->prev == 0)
		return false;
	if (window->prev_end == 0) {
		if (!selfmem_read(&py.mem, window->prev, header, sizeof(header)))
			return false;
		window->prev_end = window->prev + CHUNK_HEADER + header[2] * sizeof(uintptr_t);
	}
	if (frame < window->prev || frame >= window->prev_end ||
	    !selfmem_read(&py.mem, window->prev, header, sizeof(header)))
		return false;
	window->chunk = window->prev;
	window->prev = header[0];
	window->prev_end = 0;
	return true;
}

/* The bytes of a frame, valid until the next call. NULL if they can't be read. */
static const unsigned char *frame_borrow(struct window *window, uintptr_t frame)
{
	const uintptr_t end = frame + py.frame_bytes;

	if (frame < window->begin || end > window->end || end < frame) {
		if ((frame < window->chunk || frame >= window->begin) &&
		    !window_step_back(window, frame))
			return selfmem_read(&py.mem, frame, window->stray, py.frame_bytes)
				       ? window->stray
				       : NULL;
		if (!window_slide(window, end))
			return NULL;
	}
	return window->bytes + (frame - window->begin);
}

/*
 * The frame that runs and the newest chunk, in one system call. tstate: its bytes.
 * The chunk's own note of how full it is lags behind, so the thread's is taken.
 */
static bool walk_begin(const unsigned char *tstate, struct window *window, uintptr_t *ret_frame)
{
	const uint32_t chunk_off = py.layout.thread_chunk;
	uintptr_t frame = word_at(tstate, py.layout.thread_frame), end;
	struct selfmem_part parts[3];
	size_t cnt = 0;

	window->begin = window->end = window->chunk = window->prev = window->prev_end = 0;
	if (py.layout.minor == 11 || py.layout.minor == 12)
		parts[cnt++] = (struct selfmem_part){ frame + py.layout.cframe_frame, &frame, 8 };
	if (chunk_off != 0 && word_at(tstate, chunk_off) != 0) {
		window->chunk = word_at(tstate, chunk_off);
		end = word_at(tstate, chunk_off + 8);
		parts[cnt++] = (struct selfmem_part){ window->chunk, &window->prev, 8 };
		parts[cnt++] = window_part(window, end);
	}
	if (cnt != 0 && selfmem_read_parts(&py.mem, parts, cnt) != cnt)
		return false;
	*ret_frame = frame;
	return true;
}

/* Has it begun? The interpreter leaves out those that have not. */
static bool frame_complete(const unsigned char *frame, uintptr_t code, uint64_t known)
{
	const uintptr_t first = code + py.layout.code_bytes + 2 * (known >> 48);

	return py.layout.code_traceable == 0 || frame[py.layout.frame_mark] == OWNED_BY_GENERATOR ||
	       word_at(frame, py.layout.frame_instr) >= first;
}

/* In bytes from the start of the code. */
static uint32_t frame_instr(const unsigned char *frame, uintptr_t code)
{
	if (py.layout.code_bytes != 0)
		return (uint32_t)(word_at(frame, py.layout.frame_instr) - code -
				  py.layout.code_bytes);
	return int_at(frame, py.layout.frame_instr) * (py.layout.minor == 10 ? 2 : 1);
}

static bool has_mark(uint32_t set, const unsigned char *frame)
{
	const unsigned char mark = frame[py.layout.frame_mark];

	return mark < 32 && (set >> mark & 1) != 0;
}

struct walk {
	uintptr_t *codes;
	size_t cap, depth;
	bool truncated;
	uint32_t leaf_instr;
};

/* False if the frame makes no sense. */
static bool walk_frame(struct walk *walk, const unsigned char *frame)
{
	/* From 3.14 on the lowest bits say who counts the reference. */
	const uintptr_t code = word_at(frame, py.layout.frame_code) & ~(uintptr_t)7;
	uint64_t known;

	if (has_mark(py.layout.frame_shims, frame))
		return true;
	known = code_lookup(code);
	if (known == 0)
		return false;
	if (!frame_complete(frame, code, known))
		return true;
	if (walk->depth == walk->cap) {
		walk->truncated = true;
		return true;
	}
	if (walk->depth == 0)
		walk->leaf_instr = frame_instr(frame, code);
	walk->codes[walk->depth++] = code;
	return true;
}

/*
 * Once. False if somewhere on the way the stack changed in a way that shows: a frame
 * without code, or an end in a frame that has just been left.
 */
static bool walk_once(uintptr_t tstate, struct walk *walk)
{
	unsigned char thread[THREAD_BYTES];
	struct window window;
	const unsigned char *bytes;
	uintptr_t frame;
	bool root = true;

	walk->depth = 0;
	walk->truncated = false;
	walk->leaf_instr = 0;
	if (!thread_read(tstate, thread) || !walk_begin(thread, &window, &frame))
		return false;
	/* Shims and frames that have not begun count for nothing, but end a loop of them. */
	for (size_t i = 0; frame != 0 && !walk->truncated && i < 4 * walk->cap + 64; i++) {
		bytes = frame_borrow(&window, frame);
		if (bytes == NULL || !walk_frame(walk, bytes))
			return false;
		root = has_mark(py.layout.frame_roots, bytes);
		frame = word_at(bytes, py.layout.frame_prev);
	}
	return walk->truncated || (frame == 0 && root);
}

size_t pystack_walk(const struct pystack_thread *thread, uintptr_t *codes, size_t cap,
		    bool *truncated, uint32_t *leaf_instr)
{
	struct walk walk = { .codes = codes, .cap = cap };
	bool done = false;

	if (usable())
		for (int i = 0; i < RETRIES && !done; i++)
			done = walk_once(thread->tstate, &walk);
	*truncated = done && walk.truncated;
	*leaf_instr = done ? walk.leaf_instr : 0;
	return done ? walk.depth : 0;
}

/* The GIL. */

static bool gil_find(uintptr_t *ret)
{
	if (py.layout.minor < 12) {
		*ret = py.runtime + py.layout.gil;
		return true;
	}
	return selfmem_read(&py.mem, py.interp + py.layout.gil, ret, 8) && *ret != 0;
}

int pystack_gil(struct pystack_gil *ret)
{
	unsigned char bytes[64], thread[THREAD_BYTES];
	uintptr_t gil, holder;

	if (!usable() || !gil_find(&gil) ||
	    !selfmem_read(&py.mem, gil, bytes, py.layout.gil_locked + 4))
		return -EAGAIN;
	*ret = (struct pystack_gil){
		.begin = gil + py.layout.gil_cond,
		.end = gil + py.layout.gil_cond + sizeof(pthread_cond_t) + sizeof(pthread_mutex_t),
	};
	holder = word_at(bytes, py.layout.gil_holder);
	if (int_at(bytes, py.layout.gil_locked) == 1 && thread_read(holder, thread))
		ret->holder_tid = thread_tid(thread);
	return 0;
}

/* Opening. */

static uint32_t own_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* Where in struct pthread the C library keeps the thread's id: found by looking for ours. */
static bool find_pthread_tid(void)
{
	uint32_t words[PTHREAD_BYTES / 4], tid = own_tid();
	size_t size = sizeof(words);

	/* The struct of the last thread on a mapping may end early. */
	while (size > 0 && !selfmem_read(&py.mem, (uintptr_t)pthread_self(), words, size))
		size -= 256;
	for (size_t i = 0; i < size / 4; i++)
		if (words[i] == tid) {
			py.pthread_tid = (uint32_t)(4 * i);
			return true;
		}
	return false;
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
static void plan_reads(const struct pylayout *layout)
{
	const uint32_t thread[] = { layout->thread_frame, layout->thread_pthread,
				    layout->thread_native, layout->thread_chunk + 8 };
	const uint32_t frame[] = { layout->frame_prev, layout->frame_code, layout->frame_instr,
				   layout->frame_mark };
	const uint32_t code[] = { layout->code_name, layout->code_file, layout->code_traceable };

	py.layout = *layout;
	py.thread_bytes = words_end(thread, ARRAY_SIZE(thread));
	py.frame_bytes = words_end(frame, ARRAY_SIZE(frame));
	py.code_bytes = words_end(code, ARRAY_SIZE(code));
}

/* Everything that can be tried on the calling thread. Returns what is wrong, or NULL. */
static const char *try_layout(void)
{
	static const char TEXT[] = "perftracker";
	struct pystack_thread threads[64], *own = NULL;
	unsigned char thread[THREAD_BYTES];
	struct pystack_gil gil;
	char text[sizeof(TEXT)] = "";
	void *string;
	size_t cnt, dropped;

	if (!thread_read((uintptr_t)PyThreadState_Get(), thread))
		return "the thread is not where it should be, or not of the main interpreter";
	if (py.layout.thread_native == 0 && !find_pthread_tid())
		return "the C library hides thread ids";
	if (thread_tid(thread) != own_tid())
		return "the thread's id is not where it should be";
	cnt = pystack_threads(threads, ARRAY_SIZE(threads), &dropped);
	for (size_t i = 0; i < cnt; i++)
		if (threads[i].tid == own_tid())
			own = &threads[i];
	if (own == NULL && dropped == 0)
		return "the list of threads is not where it should be";
	if (pystack_gil(&gil) < 0 || gil.holder_tid != own_tid())
		return "the GIL is not where it should be";
	string = PyUnicode_FromString(TEXT);
	if (string == NULL || !str_copy((uintptr_t)string, false, text, sizeof(text)) ||
	    strcmp(text, TEXT) != 0)
		return "strings are not as they should be";
	Py_DecRef(string);
	return NULL;
}

/* Joins the texts into ret[size], cut to fit. */
static void say(char *ret, size_t size, const char *first, const char *second)
{
	size_t a = MIN(strlen(first), size - 1), b = MIN(strlen(second), size - 1 - a);

	memcpy(ret, first, a);
	memcpy(ret + a, second, b);
	ret[a + b] = '\0';
}

static int refuse(char *why, size_t size, const char *text, int err)
{
	atomic_store_explicit(&py.open, false, memory_order_release);
	if (size > 0)
		say(why, size, text, "");
	return err;
}

/* "3.15.1 (main, ..." is cut at the space. */
static int refuse_version(char *why, size_t size, const char *version, int err)
{
	char name[32];
	size_t length = MIN(strcspn(version, " "), sizeof(name) - 1);

	memcpy(name, version, length);
	name[length] = '\0';
	if (size > 0)
		say(why, size, err == -ENOTSUP ? "free-threaded CPython " : "unknown CPython ",
		    name);
	return err;
}

int pystack_open(char *why, size_t size)
{
	struct pylayout layout;
	const char *wrong;
	int err;

	atomic_store_explicit(&py.open, false, memory_order_release);
	if (_PyRuntime == NULL || PyCode_Type == NULL || Py_GetVersion == NULL ||
	    PyThreadState_Get == NULL || PyInterpreterState_Main == NULL ||
	    PyUnicode_FromString == NULL || Py_DecRef == NULL)
		return refuse(why, size, "no CPython in this process", -ENOENT);
	if (sizeof(void *) != 8)
		return refuse(why, size, "not a process of 64 bits", -ENOTSUP);
	err = pylayout_find(Py_GetVersion(), _PyRuntime, &layout);
	if (err < 0)
		return refuse_version(why, size, Py_GetVersion(), err);
	err = selfmem_open(&py.mem);
	if (err < 0)
		return refuse(why, size, "the process may not read its own memory", err);
	plan_reads(&layout);
	if (py.thread_bytes > THREAD_BYTES || py.frame_bytes > FRAME_BYTES ||
	    py.code_bytes > CODE_BYTES)
		return refuse(why, size, "offsets that make no sense", -ENOTSUP);
	py.runtime = (uintptr_t)_PyRuntime;
	py.interp = (uintptr_t)PyInterpreterState_Main();
	py.code_type = (uintptr_t)PyCode_Type;
	atomic_store_explicit(&py.open, true, memory_order_release);
	wrong = try_layout();
	return wrong == NULL ? 0 : refuse(why, size, wrong, -ENOTSUP);
}

int pystack_check(const uintptr_t *expected, size_t cnt)
{
	uintptr_t codes[PYSTACK_DEPTH];
	struct pystack_thread own = { own_tid(), 0 };
	size_t depth;
	bool truncated;
	uint32_t instr;

	if (!usable())
		return -EBADMSG;
	own.tstate = (uintptr_t)PyThreadState_Get();
	depth = pystack_walk(&own, codes, ARRAY_SIZE(codes), &truncated, &instr);
	if (depth != MIN(cnt, (size_t)PYSTACK_DEPTH) || truncated != (cnt > PYSTACK_DEPTH) ||
	    memcmp(codes, expected, depth * sizeof(*codes)) != 0)
		return -EBADMSG;
	return 0;
}
