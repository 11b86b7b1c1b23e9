/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/python/pylisted.h"

#include "agent/core/nametable.h"

#include <string.h>

/* owner: a module, or the type that defines the method. names: separated by a space. */
static const struct {
	const char *owner, *names;
} listed[] = {
	{ "_socket.socket",
	  "recv recv_into recvfrom recvfrom_into recvmsg recvmsg_into send sendall "
	  "sendto sendmsg connect connect_ex _accept" },
	{ "_socket", "getaddrinfo gethostbyname gethostbyname_ex" },
	{ "_ssl._SSLSocket", "read write do_handshake shutdown" },
	{ "_io", "open open_code" },
	{ "io", "open open_code" }, /* before 3.12 */
	{ "_io.FileIO", "read readinto readall write" },
	{ "_io.BufferedReader", "read read1 readinto readinto1 readline peek" },
	{ "_io.BufferedWriter", "write flush" },
	{ "_io.BufferedRandom", "read readinto write flush" },
	{ "_io.TextIOWrapper", "read readline write flush" },
	{ "posix",
	  "read readv pread preadv write writev pwrite sendfile copy_file_range fsync open "
	  "stat scandir listdir waitpid wait3 wait4 waitid" },
	{ "select", "select" },
	{ "select.poll", "poll" },
	{ "select.epoll", "poll" },
	{ "_thread.lock", "acquire acquire_lock" },
	{ "_thread.RLock", "acquire" },
	{ "_multiprocessing.SemLock", "acquire" },
	{ "_queue.SimpleQueue", "get" },
	{ "_posixsubprocess", "fork_exec" },
	{ "time", "sleep" },
	{ "gc", "collect" },
	{ "marshal", "load loads" },
	{ "_pickle", "load loads dump dumps" },
	{ "_pickle.Unpickler", "load" },
	{ "_pickle.Pickler", "dump" },
	{ "_json.Scanner", "__call__" },
	{ "_json.Encoder", "__call__" },
	{ "zlib", "compress decompress" },
	{ "zlib.Compress", "compress" },
	{ "zlib.Decompress", "decompress" },
	{ "_bz2.BZ2Decompressor", "decompress" },
	{ "_lzma.LZMADecompressor", "decompress" },
	{ "torch._C", "_cuda_synchronize" },
	{ "torch._C._CudaStreamBase", "synchronize" },
	{ "torch._C._CudaEventBase", "synchronize" },
};

/* The beginnings of CPython's structures, the same in 3.8 to 3.13 (not free-threaded). */
struct pytype {
	intptr_t refs;
	const struct pytype *type;
	ptrdiff_t size;
	const char *name;
	const void *slots[28];
	const struct pytype *base;
};

struct pyobject {
	intptr_t refs;
	const struct pytype *type;
};

struct pybuiltin { /* PyCFunctionObject */
	struct pyobject object;
	const struct pymethod *def;
	const struct pyobject *self;
	struct pyobject *module; /* name of the module; NULL for methods */
};

struct pydescr { /* PyMethodDescrObject */
	struct pyobject object;
	const struct pytype *owner;
	struct pyobject *name, *qualname;
	const struct pymethod *def;
};

enum { CALLEE_SLOTS = 1024, TEXT_MAX = 256 };

/* The callee: a built-in function or method, or (def NULL) a callable object of a C type. */
struct callee {
	const struct pymethod *def;
	const struct pytype *self; /* type of the method's object; NULL: a function */
};

static struct {
	const struct pyapi *api;
	/* What was seen last with this hash. Under the interpreter lock. */
	struct callee_slot {
		struct callee callee;
		uint32_t name; /* 0: not listed */
	} slots[CALLEE_SLOTS];
} state;

static bool is_builtin(const struct pyobject *object)
{
	return object->type == state.api->PyCFunction_Type ||
	       object->type == state.api->PyCMethod_Type;
}

static bool is_descr(const struct pyobject *object)
{
	return object->type == state.api->PyMethodDescr_Type;
}

static const struct pybuiltin *as_builtin(const struct pyobject *object)
{
	return (const struct pybuiltin *)object;
}

static const struct pydescr *as_descr(const struct pyobject *object)
{
	return (const struct pydescr *)object;
}

/* Base types are looked at, since sockets are of a Python class over _socket.socket. */
static bool type_is(const struct pytype *type, const char *name)
{
	for (; type != NULL; type = type->base) {
		if (strcmp(type->name, name) == 0)
			return true;
	}
	return false;
}

static bool is_subtype(const struct pytype *type, const struct pytype *of)
{
	while (type != NULL && type != of)
		type = type->base;
	return type != NULL;
}

static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (;;) {
		if (strncmp(words, word, len) == 0 && (words[len] == ' ' || words[len] == '\0'))
			return true;
		words = strchr(words, ' ');
		if (words == NULL)
			return false;
		words++;
	}
}

static bool is_owner(const struct pyobject *callable, const struct callee *callee,
		     const char *owner)
{
	const char *module;

	if (callee->self != NULL)
		return type_is(callee->self, owner);
	if (as_builtin(callable)->module == NULL)
		return false;
	module = state.api->PyUnicode_AsUTF8(as_builtin(callable)->module);
	if (module == NULL)
		state.api->PyErr_Clear();
	return module != NULL && strcmp(module, owner) == 0;
}

static size_t append(char *text, size_t len, const char *what)
{
	size_t what_len = MIN(strlen(what), TEXT_MAX - len);

	memcpy(text + len, what, what_len); /* NOLINT(bugprone-not-null-terminated-result) */
	return len + what_len;
}

static uint32_t name_callee(const struct callee *callee, const char *name)
{
	char text[TEXT_MAX];
	size_t len;

	len = append(text, 0, callee->self != NULL ? "<built-in method " : "<built-in function ");
	len = append(text, len, name);
	if (callee->self != NULL) {
		len = append(text, len, " of ");
		len = append(text, len, callee->self->name);
		len = append(text, len, " object");
	}
	return nametable_string(text, append(text, len, ">"));
}

static uint32_t look_up(const struct pyobject *callable, const struct callee *callee)
{
	const char *name = callee->def != NULL ? callee->def->name : "__call__";

	for (size_t i = 0; i < ARRAY_SIZE(listed); i++) {
		if (has_word(listed[i].names, name) && is_owner(callable, callee, listed[i].owner))
			return name_callee(callee, name);
	}
	return 0;
}

static struct callee callee_of(const struct pyobject *callable, const struct pyobject *first)
{
	struct callee callee = { 0 };

	if (is_builtin(callable)) {
		callee.def = as_builtin(callable)->def;
		if (as_builtin(callable)->module == NULL && as_builtin(callable)->self != NULL)
			callee.self = as_builtin(callable)->self->type;
	} else if (is_descr(callable)) {
		callee.def = as_descr(callable)->def;
		callee.self = as_descr(callable)->owner;
		if (first != NULL && is_subtype(first->type, callee.self))
			callee.self = first->type;
	} else {
		callee.self = callable->type;
	}
	return callee;
}

uint32_t pylisted_name(struct pyobject *callable, struct pyobject *first)
{
	struct callee callee = callee_of(callable, first);
	uintptr_t hash =
		((uintptr_t)callee.def ^ (uintptr_t)callee.self >> 4) * 0x9e3779b97f4a7c15u;
	struct callee_slot *slot = &state.slots[hash >> 54];

	_Static_assert(CALLEE_SLOTS == 1 << (64 - 54), "bits of the hash");
	if (slot->callee.def != callee.def || slot->callee.self != callee.self)
		*slot = (struct callee_slot){ callee, look_up(callable, &callee) };
	return slot->name;
}

const void *pylisted_key(const struct pyobject *callable)
{
	if (is_builtin(callable))
		return as_builtin(callable)->def;
	return is_descr(callable) ? (const void *)as_descr(callable)->def : callable->type;
}

void pylisted_reset(void)
{
	memset(state.slots, 0, sizeof(state.slots));
}

/* bool.conjugate is int's: its owner must be the base of bool. */
static bool layout_holds(const struct pyobject *descr, const struct pyobject *boolean,
			 const struct pyobject *function)
{
	return is_descr(descr) && strcmp(as_descr(descr)->def->name, "conjugate") == 0 &&
	       strcmp(as_descr(descr)->owner->name, "int") == 0 &&
	       strcmp(boolean->type->name, "bool") == 0 &&
	       boolean->type->base == as_descr(descr)->owner && is_builtin(function) &&
	       as_builtin(function)->module != NULL &&
	       strcmp(as_builtin(function)->def->name, "len") == 0;
}

bool pylisted_open(const struct pyapi *api)
{
	struct pyobject *builtins = pyapi_module(api, "builtins");
	struct pyobject *boolean, *descr, *function, *type;
	bool holds;

	state.api = api;
	if (builtins == NULL)
		return false;
	boolean = pyapi_attr(api, builtins, "True");
	function = pyapi_attr(api, builtins, "len");
	type = pyapi_attr(api, builtins, "bool");
	descr = type != NULL ? pyapi_attr(api, type, "conjugate") : NULL;
	holds = boolean != NULL && function != NULL && descr != NULL &&
		layout_holds(descr, boolean, function);
	pyapi_release(api, descr);
	pyapi_release(api, type);
	pyapi_release(api, function);
	pyapi_release(api, boolean);
	return holds;
}
