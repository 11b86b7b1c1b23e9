/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/python/pystack.h"

#include "agent/core/account.h"
#include "base/splitmix.h"
#include "pyread/image.h"
#include "pyread/pylayout.h"
#include "pyread/pytext.h"
#include "pyread/selfmem.h"

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
	*ret = (struct pysource){
		.mem = py.mem,
		.layout = &py.layout,
		.runtime = py.runtime,
		.interp = py.interp,
		.code_type = py.code_type,
		.pthread_tid = py.pthread_tid,
	};
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

int pystack_code(const struct pystack_process *process, uintptr_t code, struct pycode *ret)
{
	struct pysource source;

	return find_source(process, &source) ? pycodes_name(&source, code, ret) : -EFAULT;
}

/* Threads. */

static bool own_thread_read(uintptr_t tstate, unsigned char bytes[static PYWALK_THREAD_BYTES])
{
	struct pysource own;

	own_source(&own);
	return pywalk_thread_read(&own, tstate, bytes);
}

static uint32_t own_thread_tid(const unsigned char *bytes)
{
	struct pysource own;

	own_source(&own);
	return pywalk_tid(&own, bytes);
}

size_t pystack_threads(struct pystack_thread *ret, size_t cap, size_t *dropped)
{
	struct pywalk_threads threads = { 0 };
	struct pysource own;
	uint32_t tid;
	size_t cnt = 0;

	*dropped = 0;
	if (!usable())
		return 0;
	own_source(&own);
	while (pywalk_next(&own, &threads)) {
		tid = pywalk_tid(&own, threads.bytes);
		if (tid != 0 && cnt < cap)
			ret[cnt++] =
				(struct pystack_thread){ .tid = tid, .tstate = threads.tstate };
		else if (tid != 0)
			++*dropped;
	}
	return cnt;
}

/* Children. */

/* The address of the oldest thread of the interpreter. Returns 0, -ESRCH or -EFAULT. */
static int oldest_thread(const struct pysource *source, uintptr_t *ret)
{
	struct pywalk_threads threads = { 0 };

	while (pywalk_next(source, &threads))
		;
	if (threads.error < 0)
		return threads.error;
	if (threads.cnt == 0)
		return -EFAULT;
	*ret = threads.tstate;
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

size_t pystack_walk(const struct pystack_thread *thread, uintptr_t *codes, size_t cap,
		    bool *truncated, uint32_t *leaf_instr)
{
	struct pywalk walk = { .codes = codes, .cap = cap };
	bool done =
		find_source(&thread->process, &walk.source) && pywalk_frames(&walk, thread->tstate);

	if (truncated != NULL)
		*truncated = !done || walk.truncated;
	if (leaf_instr != NULL)
		*leaf_instr = done ? walk.leaf_instr : 0;
	return done ? walk.depth : 0;
}

/* The GIL. */

int pystack_gil(struct pywalk_gil *ret)
{
	struct pysource own;

	if (!usable())
		return -EAGAIN;
	own_source(&own);
	return pywalk_gil(&own, ret);
}

/* Opening. */

static uint32_t own_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
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
	unsigned char thread[PYWALK_THREAD_BYTES];
	struct pywalk_gil gil;
	uintptr_t main = 0;

	if (!own_thread_read((uintptr_t)PyThreadState_Get(), thread))
		return "the thread is not where it should be, or not of the main interpreter";
	if (py.layout.thread_native == 0 &&
	    pywalk_find_pthread_tid(&py.mem, (uintptr_t)pthread_self(), own_tid(),
				    &py.pthread_tid) < 0)
		return "the C library hides thread ids";
	if (own_thread_tid(thread) != own_tid())
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
	if (!pywalk_fits(&layout))
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
