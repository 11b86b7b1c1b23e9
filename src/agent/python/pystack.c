/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/python/pystack.h"

#include "agent/core/account.h"
#include "agent/python/image.h"
#include "agent/python/pycodes.h"
#include "agent/python/pyframes.h"
#include "agent/python/pylayout.h"
#include "agent/python/pytext.h"
#include "agent/python/selfmem.h"
#include "base/splitmix.h"

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
	THREAD_BYTES = 512,
	GIL_BYTES = 64,
	PTHREAD_BYTES = 2048,
	THREADS_MAX = 4096,
	RETRIES = 3,
	OWNED_BY_GENERATOR = 1,
};

static struct pystack {
	_Atomic bool open;
	struct selfmem mem;
	struct pylayout layout;
	uintptr_t runtime, interp, code_type;
	uint32_t pthread_tid; /* before 3.11: offset in struct pthread */
	struct image image;   /* of the interpreter; inode 0: not looked for yet */
} py;

static bool usable(void)
{
	return atomic_load_explicit(&py.open, memory_order_acquire) && selfmem_usable(&py.mem);
}

static void own_source(struct pysource *ret)
{
	*ret = (struct pysource){ py.mem, &py.layout, py.interp, py.code_type, 0 };
}

/* False: its memory can't be read. */
static bool find_source(const struct pystack_process *process, struct pysource *ret)
{
	if (!usable())
		return false;
	own_source(ret);
	if (process->pid == 0)
		return true;
	ret->interp = process->interp;
	ret->code_type = process->code_type;
	ret->salt = splitmix_finish(splitmix_finish(process->pid) + process->interp);
	return selfmem_child(&py.mem, (pid_t)process->pid, &ret->mem);
}

/* Code objects. */

size_t pystack_stamps(const struct pystack_process *process, const uintptr_t *codes, size_t cnt,
		      uint64_t *stamps)
{
	struct pysource source;

	memset(stamps, 0, cnt * sizeof(*stamps));
	return find_source(process, &source) ? pycodes_stamp(&source, codes, cnt, stamps) : 0;
}

int pystack_code(const struct pystack_process *process, uintptr_t code, struct pystack_code *ret)
{
	struct pysource source;

	return find_source(process, &source) ? pycodes_name(&source, code, ret) : -EFAULT;
}

/* Threads. */

/* False unless it is a thread of the main interpreter. */
static bool thread_read(const struct pysource *source, uintptr_t tstate,
			unsigned char bytes[static THREAD_BYTES])
{
	return selfmem_read(&source->mem, tstate, bytes, py.layout.thread_bytes) &&
	       pylayout_word(bytes, py.layout.thread_interp) == source->interp;
}

static bool own_thread_read(uintptr_t tstate, unsigned char bytes[static THREAD_BYTES])
{
	struct pysource own;

	own_source(&own);
	return thread_read(&own, tstate, bytes);
}

/* 0 for a thread that has not begun or has ended. */
static uint32_t thread_tid(const unsigned char *bytes)
{
	uint32_t tid = 0;

	if (py.layout.thread_native != 0)
		return (uint32_t)pylayout_word(bytes, py.layout.thread_native);
	if (!selfmem_read(&py.mem, pylayout_word(bytes, py.layout.thread_pthread) + py.pthread_tid,
			  &tid, sizeof(tid)))
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
		if (!own_thread_read(tstate, bytes))
			break;
		tid = thread_tid(bytes);
		if (tid != 0 && cnt < cap)
			ret[cnt++] = (struct pystack_thread){ .tid = tid, .tstate = tstate };
		else if (tid != 0)
			++*dropped;
		tstate = pylayout_word(bytes, py.layout.thread_next);
	}
	return cnt;
}

/* Children. */

/* The address of the oldest thread of the interpreter. Returns 0, -ESRCH or -EFAULT. */
static int oldest_thread(const struct pysource *source, uintptr_t *ret)
{
	unsigned char bytes[THREAD_BYTES];
	uintptr_t tstate = 0, oldest = 0;

	errno = 0;
	if (!selfmem_read(&source->mem, source->interp + py.layout.threads, &tstate,
			  sizeof(tstate)))
		return errno == ESRCH ? -ESRCH : -EFAULT;
	for (size_t i = 0; i < THREADS_MAX && tstate != 0; i++) {
		if (!thread_read(source, tstate, bytes))
			return -EFAULT;
		oldest = tstate;
		tstate = pylayout_word(bytes, py.layout.thread_next);
	}
	if (oldest == 0)
		return -EFAULT;
	*ret = oldest;
	return 0;
}

/* The image that has both variables of the interpreter. Returns 0 or -ENOENT. */
static int find_own_image(void)
{
	struct image of_runtime, of_type;
	int fd, error;

	if (py.image.inode != 0)
		return 0;
	fd = account_open_process((uint32_t)py.mem.pid, "maps");
	error = image_of(fd, py.runtime, &of_runtime);
	if (error == 0)
		error = image_of(fd, py.code_type, &of_type);
	if (fd >= 0)
		(void)close(fd);
	if (error < 0 || memcmp(&of_runtime, &of_type, sizeof(of_type)) != 0)
		return -ENOENT;
	py.image = of_runtime;
	return 0;
}

/* By how much addresses of the interpreter's file are higher in a child. Returns 0 or -errno. */
static int find_shift(uint32_t pid, uintptr_t *ret)
{
	uintptr_t start = 0;
	int fd, error = find_own_image();

	if (error < 0)
		return error;
	fd = account_open_process(pid, "maps");
	error = image_find(fd, &py.image, &start);
	if (fd >= 0)
		(void)close(fd);
	*ret = start - py.image.start;
	return error;
}

/* Finds where a child that is no fork of this process has its interpreter. Returns 0 or -EFAULT. */
static int locate(struct pystack_process *child)
{
	struct pystack_process found = { .pid = child->pid };
	struct pysource source;
	uintptr_t shift;

	if (py.layout.runtime_main == 0 || find_shift(child->pid, &shift) < 0 ||
	    !find_source(&found, &source) ||
	    !selfmem_read(&source.mem, py.runtime + shift + py.layout.runtime_main, &found.interp,
			  sizeof(found.interp)) ||
	    found.interp == 0)
		return -EFAULT;
	found.code_type = py.code_type + shift;
	*child = found;
	return 0;
}

int pystack_child(struct pystack_process *child, struct pystack_thread *ret)
{
	struct pystack_process at = *child;
	struct pysource source;
	uintptr_t tstate = 0;
	int error;

	if (at.interp == 0) { /* as in a forked child */
		at.interp = py.interp;
		at.code_type = py.code_type;
	}
	if (!find_source(&at, &source))
		return -ENOTSUP;
	error = oldest_thread(&source, &tstate);
	if (error == -EFAULT && locate(&at) == 0 && find_source(&at, &source))
		error = oldest_thread(&source, &tstate);
	if (error < 0)
		return error;
	*child = at;
	*ret = (struct pystack_thread){ .tid = at.pid, .process = at, .tstate = tstate };
	return 0;
}

/* Frames. */

/* Has it begun? The interpreter leaves out those that have not. */
static bool frame_complete(const unsigned char *frame, uintptr_t code, uint64_t known)
{
	const uintptr_t first = code + py.layout.code_start + 2 * (known >> 48);

	return py.layout.code_traceable == 0 || frame[py.layout.frame_mark] == OWNED_BY_GENERATOR ||
	       pylayout_word(frame, py.layout.frame_instr) >= first;
}

/* In bytes from the start of the code. */
static uint32_t frame_instr(const unsigned char *frame, uintptr_t code)
{
	if (py.layout.code_start != 0)
		return (uint32_t)(pylayout_word(frame, py.layout.frame_instr) - code -
				  py.layout.code_start);
	return pylayout_int(frame, py.layout.frame_instr) * (py.layout.minor == 10 ? 2 : 1);
}

static bool has_mark(uint32_t set, const unsigned char *frame)
{
	const unsigned char mark = frame[py.layout.frame_mark];

	return mark < 32 && (set >> mark & 1) != 0;
}

struct walk {
	struct pysource source;
	uintptr_t *codes;
	size_t cap, depth;
	bool truncated;
	uint32_t leaf_instr;
};

/* False if the frame makes no sense. */
static bool walk_frame(struct walk *walk, const unsigned char *frame)
{
	/* From 3.14 on the lowest bits are flags for reference counting. */
	const uintptr_t code = pylayout_word(frame, py.layout.frame_code) & ~(uintptr_t)7;
	uint64_t known;

	if (has_mark(py.layout.frame_shims, frame))
		return true;
	known = pycodes_find(&walk->source, code);
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
static bool walk_once(uintptr_t tstate, struct pyframes *frames, struct walk *walk)
{
	unsigned char thread[THREAD_BYTES];
	const unsigned char *bytes;
	uintptr_t frame;
	bool root = true;

	walk->depth = 0;
	walk->truncated = false;
	walk->leaf_instr = 0;
	if (!thread_read(&walk->source, tstate, thread) ||
	    !pyframes_begin(frames, &walk->source.mem, &py.layout, tstate, thread))
		return false;
	frame = frames->first;
	/* Shims and frames that have not begun count for nothing, but end a loop of them. */
	for (size_t i = 0; frame != 0 && !walk->truncated && i < 4 * walk->cap + 64; i++) {
		bytes = pyframes_borrow(frames, frame);
		if (bytes == NULL || !walk_frame(walk, bytes))
			return false;
		root = has_mark(py.layout.frame_roots, bytes);
		frame = pylayout_word(bytes, py.layout.frame_prev);
	}
	return walk->truncated || (frame == 0 && root);
}

size_t pystack_walk(const struct pystack_thread *thread, uintptr_t *codes, size_t cap,
		    bool *truncated, uint32_t *leaf_instr)
{
	struct walk walk = { .codes = codes, .cap = cap };
	struct pyframes frames;
	bool done = false;

	if (find_source(&thread->process, &walk.source))
		for (int i = 0; i < RETRIES && !done; i++)
			done = walk_once(thread->tstate, &frames, &walk);
	if (truncated != NULL)
		*truncated = !done || walk.truncated;
	if (leaf_instr != NULL)
		*leaf_instr = done ? walk.leaf_instr : 0;
	if (!done)
		return 0;
	pyframes_remember(&frames);
	return walk.depth;
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
	unsigned char bytes[GIL_BYTES], thread[THREAD_BYTES];
	uintptr_t gil, holder;

	if (!usable() || !gil_find(&gil) ||
	    !selfmem_read(&py.mem, gil, bytes, py.layout.gil_locked + 4))
		return -EAGAIN;
	*ret = (struct pystack_gil){
		.begin = gil + py.layout.gil_cond,
		.end = gil + py.layout.gil_cond + sizeof(pthread_cond_t) + sizeof(pthread_mutex_t),
	};
	holder = pylayout_word(bytes, py.layout.gil_holder);
	if (pylayout_int(bytes, py.layout.gil_locked) == 1 && own_thread_read(holder, thread))
		ret->holder_tid = thread_tid(thread);
	return 0;
}

/* Opening. */

static uint32_t own_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/*
 * Where in struct pthread the C library keeps the thread's id: found by searching for the calling
 * thread's.
 */
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

static bool lists_own_thread(void)
{
	struct pystack_thread threads[64];
	size_t dropped, cnt = pystack_threads(threads, ARRAY_SIZE(threads), &dropped);

	for (size_t i = 0; i < cnt; i++)
		if (threads[i].tid == own_tid())
			return true;
	return dropped > 0;
}

static bool reads_strings(void)
{
	static const char TEXT[] = "perftracker";
	char text[sizeof(TEXT)] = "";
	void *string = PyUnicode_FromString(TEXT);
	bool done = string != NULL && pytext_copy(&py.mem, &py.layout, (uintptr_t)string,
						  PYTEXT_START, text, sizeof(text));

	if (string != NULL)
		Py_DecRef(string);
	return done && strcmp(text, TEXT) == 0;
}

/* Everything that can be tried on the calling thread. Returns what is wrong, or NULL. */
static const char *try_layout(void)
{
	unsigned char thread[THREAD_BYTES];
	struct pystack_gil gil;
	uintptr_t main = 0;

	if (!own_thread_read((uintptr_t)PyThreadState_Get(), thread))
		return "the thread is not where it should be, or not of the main interpreter";
	if (py.layout.thread_native == 0 && !find_pthread_tid())
		return "the C library hides thread ids";
	if (thread_tid(thread) != own_tid())
		return "the thread's id is not where it should be";
	if (!lists_own_thread())
		return "the list of threads is not where it should be";
	if (pystack_gil(&gil) < 0 || gil.holder_tid != own_tid())
		return "the GIL is not where it should be";
	if (!selfmem_read(&py.mem, py.runtime + py.layout.runtime_main, &main, sizeof(main)) ||
	    main != py.interp)
		py.layout.runtime_main = 0; /* only forked children can be read */
	return reads_strings() ? NULL : "strings are not as they should be";
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
	if (layout.thread_bytes > THREAD_BYTES || layout.frame_bytes > PYFRAMES_BYTES ||
	    layout.code_bytes > PYCODES_BYTES ||
	    MAX(layout.gil_locked, layout.gil_holder) > GIL_BYTES - 8)
		return refuse(why, size, "offsets that make no sense", -ENOTSUP);
	py.layout = layout;
	py.runtime = (uintptr_t)_PyRuntime;
	py.interp = (uintptr_t)PyInterpreterState_Main();
	py.code_type = (uintptr_t)PyCode_Type;
	py.image = (struct image){ 0 };
	atomic_store_explicit(&py.open, true, memory_order_release);
	wrong = try_layout();
	return wrong == NULL ? 0 : refuse(why, size, wrong, -ENOTSUP);
}

int pystack_check(const uintptr_t *expected, size_t cnt)
{
	uintptr_t codes[PYSTACK_DEPTH];
	struct pystack_thread own = { .tid = own_tid() };
	size_t depth;
	bool truncated;

	if (!usable())
		return -EBADMSG;
	own.tstate = (uintptr_t)PyThreadState_Get();
	depth = pystack_walk(&own, codes, ARRAY_SIZE(codes), &truncated, NULL);
	if (depth != MIN(cnt, (size_t)PYSTACK_DEPTH) || truncated != (cnt > PYSTACK_DEPTH) ||
	    memcmp(codes, expected, depth * sizeof(*codes)) != 0)
		return -EBADMSG;
	return 0;
}
