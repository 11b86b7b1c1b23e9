/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/torch/torchops.h"

#include "agent/core/lane.h"
#include "agent/core/nametable.h"
#include "agent/torch/torchcomms.h"
#include "agent/torch/torchgroups.h"
#include "agent/torch/torchinputs.h"
#include "agent/torch/torchlayout.h"
#include "base/clock.h"
#include "base/compat.h"
#include "model/elements.h"
#include "pyread/selfmem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NESTING_MAX 64u
#define PENDING_CNT 256u
#define PENDING_PROBES 8u
#define PENDING_CLAIMED 1u /* no address of an object */

/* at::RecordScope */
enum scope { SCOPE_FUNCTION = 0, SCOPE_BACKWARD = 1, SCOPE_USER = 7, SCOPE_CNT = 10 };

/*
 * at::RecordFunctionCallback, passed by value. start returns a unique_ptr, which is an address that
 * the caller provides as a hidden first argument. With a context there, torch would call its
 * destructor: it stays NULL.
 */
struct callback {
	void **(*start)(void **ret_context, const void *function);
	void (*end)(const void *function, void *context);
	double probability;
	bool scopes[SCOPE_CNT];
	bool needs_inputs, needs_outputs, needs_ids;
};
_Static_assert(sizeof(struct callback) == 40, "as in torch 1.13 to 2.15");

/* An operator that runs. */
struct open_op {
	uintptr_t function; /* address of its at::RecordFunction */
	int64_t start_ns;
	uint32_t name;
	uint16_t kind;
	uint16_t elements; /* elements_encode() */
};

/* The operators that run on one thread, the innermost last. */
struct open_ops {
	uint32_t cnt;
	uint32_t round; /* of torchops.round: what is from another one is stale */
	struct open_op ops[NESTING_MAX];
};

/*
 * A collective that runs: it may end on another thread than it began on. function is
 * 0, or PENDING_CLAIMED, or stored with release after the rest.
 */
struct pending {
	_Atomic uintptr_t function;
	int64_t start_ns;
	uint32_t name;
	struct torchcomms about;
};

/* at::addGlobalCallback, at::removeCallback, at::RecordFunction::name. */
struct torch_hook {
	uint64_t (*add)(struct callback callback);
	void (*remove)(uint64_t handle);
	const char *(*name)(const void *function); /* lives as long as the callback runs */
};

/*
 * torchops_watch_*() write the first part; the hook, on all threads, reads its atomic fields and
 * writes the rest.
 */
static struct torchops {
	struct torch_hook hook; /* before the hook is set */
	bool watch_collectives;
	enum torchops_detail detail, set; /* of operators: wanted; in the hook */
	uint64_t user_handle, operator_handle, backward_handle; /* 0: not set */
	_Atomic bool operators;					/* are watched */
	_Atomic uint32_t round;					/* of watching operators */
	_Atomic uint32_t thread_cnt;
	struct open_ops threads[FLIGHT_LANE_CNT];
	struct pending pending[PENDING_CNT];
} torchops;

/* torch.empty(0), called on one thread to see whether the hook works. */
static struct check {
	const void *thread; /* address of its my_ops */
	const void *function;
	uint64_t handle;
	uint32_t start_cnt, end_cnt;
	struct selfmem mem;
	bool wrong;
} check;

/* Initial-exec: no allocation at a thread's first access; one word: there is little room. */
static __thread struct open_ops *my_ops __attribute__((tls_model("initial-exec")));

/* Fills why[size] with pieces of text, up to a NULL, cut to size. */
static int refuse(int error, char *why, size_t size, ...)
{
	size_t used = 0, len;
	const char *piece;
	va_list pieces;

	va_start(pieces, size);
	while (size > 0 && (piece = va_arg(pieces, const char *)) != NULL) {
		len = strnlen(piece, size - 1 - used);
		memcpy(why + used, piece, len);
		used += len;
	}
	va_end(pieces);
	if (size > 0)
		why[used] = '\0';
	return error;
}

/* NULL: more threads than lanes. */
static struct open_ops *own_ops(struct flight *flight)
{
	uint32_t idx;

	if (my_ops != NULL)
		return my_ops;
	idx = atomic_load_explicit(&torchops.thread_cnt, memory_order_relaxed);
	if (idx < FLIGHT_LANE_CNT)
		idx = atomic_fetch_add_explicit(&torchops.thread_cnt, 1, memory_order_relaxed);
	if (idx < FLIGHT_LANE_CNT)
		my_ops = &torchops.threads[idx];
	else
		atomic_fetch_add_explicit(&flight->drops.lanes, 1, memory_order_relaxed);
	return my_ops;
}

static void count_nested(struct flight *flight)
{
	atomic_fetch_add_explicit(&flight->drops.nested, 1, memory_order_relaxed);
}

static void push(const void *function, const char *name, enum flight_kind kind, uint16_t elements)
{
	uint32_t round = atomic_load_explicit(&torchops.round, memory_order_relaxed);
	struct flight *flight = lane_flight();
	struct open_ops *open;

	if (flight == NULL || name == NULL)
		return;
	open = own_ops(flight);
	if (open == NULL)
		return;
	if (open->round != round) {
		open->round = round;
		open->cnt = 0;
	}
	if (open->cnt == NESTING_MAX) {
		count_nested(flight);
		return;
	}
	open->ops[open->cnt++] = (struct open_op){ .function = (uintptr_t)function,
						   .name = nametable_label(name, strlen(name)),
						   .kind = (uint16_t)kind,
						   .elements = elements,
						   .start_ns = clock_mono_ns() };
}

/* Ends an operator of this thread. Those above it ended elsewhere. False: it is not there. */
static bool pop(const void *function)
{
	struct open_ops *open = my_ops;
	int64_t now = clock_mono_ns();

	for (uint32_t i = open != NULL ? open->cnt : 0; i > 0; i--) {
		const struct open_op *op = &open->ops[i - 1];

		if (op->function != (uintptr_t)function)
			continue;
		open->cnt = i - 1;
		lane_record_window(&(struct ring_record){ .kind = op->kind,
							  .detail = op->elements,
							  .time_ns = op->start_ns,
							  .value = now - op->start_ns,
							  .extra = op->name });
		return true;
	}
	return false;
}

/* The i-th place where a collective may be. */
static struct pending *pending_at(uintptr_t function, uint32_t i)
{
	uint64_t hash = (function >> 4) * 0x9e3779b97f4a7c15u;

	return &torchops.pending[((hash >> 32) + i) % PENDING_CNT];
}

static bool claim(struct pending *pending, uintptr_t expected)
{
	return atomic_compare_exchange_strong_explicit(&pending->function, &expected,
						       PENDING_CLAIMED, memory_order_acquire,
						       memory_order_relaxed);
}

static void begin_collective(struct flight *flight, const void *function, const char *name)
{
	struct pending *pending;

	for (uint32_t i = 0; i < PENDING_PROBES; i++) {
		pending = pending_at((uintptr_t)function, i);
		if (!claim(pending, 0))
			continue;
		pending->name = nametable_string(name, strlen(name));
		torchcomms_read(function, name, &pending->about);
		pending->start_ns = clock_mono_ns();
		atomic_store_explicit(&pending->function, (uintptr_t)function,
				      memory_order_release);
		return;
	}
	count_nested(flight);
}

static void write_collective(const struct pending *c, int64_t end_ns)
{
	const struct torchcomms *about = &c->about;

	lane_record(&(struct ring_record){ .kind = FLIGHT_COLLECTIVE,
					   .time_ns = c->start_ns,
					   .value = end_ns - c->start_ns,
					   .extra = c->name });
	lane_record(&(struct ring_record){ .kind = FLIGHT_COLLECTIVE_ARGS,
					   .time_ns = c->start_ns,
					   .value = about->bytes,
					   .detail = about->first_rank,
					   .extra = (uint64_t)about->seq });
	lane_record(&(struct ring_record){
		.kind = FLIGHT_COLLECTIVE_GROUP,
		.time_ns = c->start_ns,
		.value = (int64_t)((uint64_t)about->group_size << 32 | about->group_name),
		.detail = about->rank_stride,
		.extra = about->collective });
}

static void end_collective(const void *function)
{
	int64_t now = clock_mono_ns();
	struct pending *pending;

	for (uint32_t i = 0; i < PENDING_PROBES; i++) {
		pending = pending_at((uintptr_t)function, i);
		if (!claim(pending, (uintptr_t)function))
			continue;
		if (pending->about.group_name == 0)
			torchgroups_fill((uint32_t)syscall(SYS_gettid), &pending->about);
		write_collective(pending, now);
		atomic_store_explicit(&pending->function, 0, memory_order_release);
		return;
	}
}

/* Scopes in which a back end brackets a collective, or its queueing. */
static bool is_collective(const char *name)
{
	static const char *const backends[] = { "gloo:", "nccl:", "ucc:", "mpi:" };

	for (size_t i = 0; i < ARRAY_SIZE(backends); i++)
		if (strncmp(name, backends[i], strlen(backends[i])) == 0)
			return true;
	return false;
}

static void **operator_start(void **ret_context, const void *function)
{
	*ret_context = NULL;
	if (lane_window_is_open())
		push(function, torchops.hook.name(function), FLIGHT_OPERATOR,
		     elements_encode(torchinputs_elements(function)));
	return ret_context;
}

/* Also of the backward pass, whose operators inside bring the inputs. */
static void **plain_start(void **ret_context, const void *function)
{
	*ret_context = NULL;
	if (lane_window_is_open())
		push(function, torchops.hook.name(function), FLIGHT_OPERATOR, 0);
	return ret_context;
}

static void operator_end(const void *function, void *context _unused_)
{
	(void)pop(function);
}

static void **user_start(void **ret_context, const void *function)
{
	struct flight *flight = lane_flight();
	const char *name;

	*ret_context = NULL;
	if (flight == NULL)
		return ret_context;
	name = torchops.hook.name(function);
	if (name != NULL && is_collective(name))
		begin_collective(flight, function, name);
	else if (atomic_load_explicit(&torchops.operators, memory_order_relaxed) &&
		 lane_window_is_open())
		push(function, name, FLIGHT_ANNOTATION, 0);
	return ret_context;
}

static void user_end(const void *function, void *context _unused_)
{
	if (lane_flight() != NULL && !pop(function))
		end_collective(function);
}

/* Adds callback and notes its handle, or removes what is there. */
static void set_hook(uint64_t *handle, bool on, struct callback callback)
{
	if (on == (*handle != 0))
		return;
	if (on) {
		*handle = torchops.hook.add(callback);
		return;
	}
	torchops.hook.remove(*handle);
	*handle = 0;
}

static void set_user(bool on)
{
	set_hook(&torchops.user_handle, on,
		 (struct callback){ .start = user_start,
				    .end = user_end,
				    .probability = 1,
				    .scopes[SCOPE_USER] = true });
}

/*
 * Two callbacks: no inputs are wanted of backward functions, which torch would copy.
 * An operator that is open while they change ends with the callback it began with.
 */
static void set_operators(enum torchops_detail detail)
{
	bool on = detail != TORCHOPS_NONE;

	atomic_store_explicit(&torchops.operators, on, memory_order_relaxed);
	if (on && torchops.set == TORCHOPS_NONE)
		atomic_fetch_add_explicit(&torchops.round, 1, memory_order_relaxed);
	if (detail != torchops.set)
		set_hook(&torchops.operator_handle, false, (struct callback){ 0 });
	torchops.set = detail;
	set_hook(&torchops.operator_handle, on,
		 (struct callback){
			 .start = detail == TORCHOPS_ELEMENTS ? operator_start : plain_start,
			 .end = operator_end,
			 .probability = 1,
			 .scopes[SCOPE_FUNCTION] = true,
			 .needs_inputs = detail == TORCHOPS_ELEMENTS && torchinputs_known() });
	set_hook(&torchops.backward_handle, on,
		 (struct callback){ .start = plain_start,
				    .end = operator_end,
				    .probability = 1,
				    .scopes[SCOPE_BACKWARD] = true });
}

static int update(void)
{
	if (torchops.hook.add == NULL)
		return -ENOTSUP;
	set_operators(torchops.detail);
	set_user(torchops.detail != TORCHOPS_NONE || torchops.watch_collectives);
	return 0;
}

int torchops_watch_collectives(bool on)
{
	torchops.watch_collectives = on;
	return update();
}

int torchops_watch_operators(enum torchops_detail detail)
{
	torchops.detail = detail;
	return update();
}

/* Nothing is believed before it was read: with another ABI the arguments are anything. */
static void **check_start(void **ret_context, const void *function)
{
	static const char expected[] = "aten::empty";
	char name[sizeof(expected)];
	uintptr_t word;

	*ret_context = NULL;
	if (check.thread != &my_ops)
		return ret_context;
	check.start_cnt++;
	check.wrong |= check.function != NULL;
	if (!selfmem_read(&check.mem, (uintptr_t)function, &word, sizeof(word)) ||
	    !selfmem_read(&check.mem, (uintptr_t)torchops.hook.name(function), name,
			  sizeof(name)) ||
	    memcmp(name, expected, sizeof(name)) != 0)
		check.wrong = true;
	check.function = function;
	return ret_context;
}

static void check_end(const void *function, void *context)
{
	if (check.thread != &my_ops)
		return;
	check.end_cnt++;
	check.wrong |= context != NULL || function != check.function;
	check.function = NULL;
}

int torchops_check_begin(void)
{
	struct selfmem mem;
	int error;

	if (torchops.hook.add == NULL)
		return -ENOTSUP;
	if (torchops.user_handle != 0 || torchops.operator_handle != 0 || check.handle != 0)
		return -EBUSY;
	error = selfmem_open(&mem);
	if (error < 0)
		return error;
	check = (struct check){ .thread = &my_ops, .mem = mem };
	check.handle = torchops.hook.add((struct callback){ .start = check_start,
							    .end = check_end,
							    .probability = 1,
							    .scopes[SCOPE_FUNCTION] = true });
	return 0;
}

int torchops_check_end(char *why, size_t size)
{
	if (check.handle == 0)
		return refuse(-EPROTO, why, size, "the check was not begun", NULL);
	torchops.hook.remove(check.handle);
	check.handle = 0;
	check.thread = NULL;
	if (check.start_cnt == 1 && check.end_cnt == 1 && !check.wrong)
		return 0;
	return refuse(-EPROTO, why, size, "torch.empty(0) was not seen as expected", NULL);
}

#if defined(__x86_64__)

/*
 * The library that this process has loaded. Debian's name has the first two numbers of
 * the version behind it.
 */
static void *find_library(const char *version)
{
	char name[40] = "libtorch_cpu.so";
	void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
	size_t len = strlen(name);

	if (library != NULL)
		return library;
	name[len++] = '.';
	for (uint32_t dots = 0; len < sizeof(name) - 1 && *version != '\0'; version++) {
		dots += *version == '.';
		if (dots == 2)
			break;
		name[len++] = *version;
	}
	name[len] = '\0';
	return dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

static int find_symbols(void *library, struct torch_hook *ret)
{
	*(void **)&ret->add =
		dlsym(library, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
	*(void **)&ret->remove = dlsym(library, "_ZN2at14removeCallbackEm");
	*(void **)&ret->name = dlsym(library, "_ZNK2at14RecordFunction4nameEv");
	return ret->add != NULL && ret->remove != NULL && ret->name != NULL ? 0 : -ENOENT;
}

/* By one of many symbols that only this ABI has. */
static bool has_cxx11_abi(void *library)
{
	return dlsym(library, "_ZN2at11show_configB5cxx11Ev") != NULL;
}

static bool is_forced(void)
{
	const char *wanted = getenv("PERFTRACKER_OPERATORS");

	return wanted != NULL && strcmp(wanted, "force") == 0;
}

int torchops_open(const char *torch_version, char *why, size_t size)
{
	const struct torch_layout *layout = NULL;
	struct torch_version version = { 0 };
	struct torch_hook found;
	void *library;

	if (torch_version_parse(torch_version, &version) == 0)
		layout = torch_layout_find(version);
	if (layout == NULL && !is_forced())
		return refuse(-ENOTSUP, why, size, "torch ", torch_version,
			      " has not been tried; PERFTRACKER_OPERATORS=force tries it", NULL);
	library = find_library(torch_version);
	if (library == NULL)
		return refuse(-ENOENT, why, size, "libtorch_cpu.so is not loaded", NULL);
	if (find_symbols(library, &found) < 0)
		return refuse(-ENOENT, why, size, "libtorch_cpu.so lacks RecordFunction", NULL);
	if (!has_cxx11_abi(library)) /* strings have another size there */
		layout = NULL;
	torchcomms_open(library, layout);
	torchinputs_open(library, layout);
	torchops.hook = found;
	return 0;
}

#else

int torchops_open(const char *torch_version _unused_, char *why, size_t size)
{
	return refuse(-ENOTSUP, why, size, "operators were tried on x86-64 only", NULL);
}

#endif
