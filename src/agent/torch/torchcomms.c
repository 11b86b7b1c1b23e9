/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/torch/torchcomms.h"

#include "agent/core/nametable.h"
#include "base/compat.h"
#include "pyread/selfmem.h"

#include <errno.h>
#include <string.h>

#define COMMS_BYTES_MAX 256u
#define NAME_MAX_BYTES 128u
#define RANK_CNT_MAX (1 << 24)
#define ELEMENTS_MAX (1LL << 48)
#define CLASS_NAME_MAX 64u
#define TENSOR_PARTS 3u
#define TENSOR_CNT_MAX 20u /* tensors whose parts one call reads */

/* std::string */
struct cxx_string {
	uintptr_t text;
	uint64_t len;
	char local[16]; /* short ones are here */
};

/* A C++ class, known by its name in the type information of its objects. */
struct cxx_class {
	const char *name;	  /* mangled */
	_Atomic uintptr_t vtable; /* once one was seen */
};

static struct cxx_class comms_class = { .name = "N5torch19ParamCommsDebugInfoE" };
static struct cxx_class tensor_class = { .name = "N3c1010TensorImplE" };

static struct reader {
	const struct torch_layout *layout; /* NULL: nothing is known */
	void *(*debug_info)(uintptr_t kind);
	uintptr_t kind;
	struct selfmem mem;
} reader;

void torchcomms_open(void *libtorch, const struct torch_layout *layout)
{
	const uintptr_t *kind = dlsym(libtorch, "_ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE");

	reader.layout = NULL;
	reader.debug_info = NULL;
	if (layout == NULL || selfmem_open(&reader.mem) < 0)
		return;
	if (layout->comms_kind != 0 || kind != NULL)
		*(void **)&reader.debug_info =
			dlsym(libtorch, "_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE");
	reader.kind = layout->comms_kind;
	if (layout->comms_kind == 0 && kind != NULL)
		reader.kind = *kind;
	reader.layout = layout;
}

/* vtable: the first word of an object. */
static bool is_of_class(uintptr_t vtable, struct cxx_class *class)
{
	size_t size = strlen(class->name) + 1;
	char name[CLASS_NAME_MAX];
	uintptr_t type, text;

	if (vtable == atomic_load_explicit(&class->vtable, memory_order_relaxed))
		return true;
	if (!selfmem_read(&reader.mem, vtable - sizeof(type), &type, sizeof(type)) ||
	    !selfmem_read(&reader.mem, type + sizeof(text), &text, sizeof(text)) ||
	    !selfmem_read(&reader.mem, text, name, size) || memcmp(name, class->name, size) != 0)
		return false;
	atomic_store_explicit(&class->vtable, vtable, memory_order_relaxed);
	return true;
}

/* text[len + 1] */
static bool is_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return text[len] == '\0';
}

/* object: the copy of the std::string at addr. Returns the string's id; 0: not a name. */
static uint32_t read_name(const char *object, uintptr_t addr, size_t off)
{
	char buf[NAME_MAX_BYTES];
	const char *text = buf;
	struct cxx_string string;

	memcpy(&string, object + off, sizeof(string));
	if (string.len == 0 || string.len >= sizeof(buf))
		return 0;
	if (string.text == addr + off + offsetof(struct cxx_string, local)) {
		if (string.len >= sizeof(string.local))
			return 0;
		text = string.local;
	} else if (!selfmem_read(&reader.mem, string.text, buf, string.len + 1)) {
		return 0;
	}
	return is_name(text, string.len) ? nametable_string(text, string.len) : 0;
}

static int64_t read_number(const char *object, size_t off, size_t bytes)
{
	int64_t wide;
	int32_t narrow;

	if (bytes == sizeof(wide)) {
		memcpy(&wide, object + off, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, object + off, sizeof(narrow));
	return narrow;
}

static int64_t bytes_of(int64_t elements, uint32_t dtype)
{
	uint32_t size = torch_dtype_bytes(dtype);

	return elements < 0 || elements > ELEMENTS_MAX || size == 0 ? -1 : elements * size;
}

/* The numbers of a ParamCommsDebugInfo. Returns false when they can't be right. */
static bool read_numbers(const struct torch_layout *at, const char *object, struct torchcomms *ret)
{
	int64_t rank = read_number(object, at->comms_rank, 4), size = 0;
	int64_t in = read_number(object, at->comms_in, at->elements_bytes);
	int64_t out = read_number(object, at->comms_out, at->elements_bytes);

	if (at->comms_size != 0)
		size = read_number(object, at->comms_size, 4);
	if (rank < 0 || rank >= RANK_CNT_MAX || size < 0 || size > RANK_CNT_MAX)
		return false;
	ret->bytes = bytes_of(MAX(in, out), (uint8_t)object[at->comms_dtype]);
	if (ret->bytes < 0)
		return false;
	ret->group_size = (uint32_t)size;
	if (at->comms_seq != 0)
		ret->seq = MAX(read_number(object, at->comms_seq, 8), -1LL);
	return true;
}

/* Not every back end knows the job ranks of its group: some always report 0, 1, 2, ... */
static bool knows_ranks(const char *name)
{
	return strncmp(name, "nccl:", 5) == 0 || strncmp(name, "xccl:", 5) == 0;
}

/* A group whose ranks have no even distance has a negative stride. */
static void read_ranks(const struct torch_layout *at, const char *object, struct torchcomms *ret)
{
	int64_t first = read_number(object, at->comms_first, 4);
	int64_t stride = read_number(object, at->comms_first + 4u, 4);

	if (first < 0 || first > UINT16_MAX || stride <= 0 || stride > UINT16_MAX)
		return;
	ret->first_rank = (uint16_t)first;
	ret->rank_stride = (uint16_t)stride;
}

static bool read_comms(uintptr_t addr, struct torchcomms *ret)
{
	const struct torch_layout *at = reader.layout;
	char object[COMMS_BYTES_MAX];
	struct torchcomms found = *ret;
	uintptr_t vtable;

	if (at->comms_bytes > sizeof(object) ||
	    !selfmem_read(&reader.mem, addr, object, at->comms_bytes))
		return false;
	memcpy(&vtable, object, sizeof(vtable));
	if (!is_of_class(vtable, &comms_class) || !read_numbers(at, object, &found))
		return false;
	found.collective = read_name(object, addr, at->comms_collective);
	if (found.collective == 0)
		return false;
	if (at->comms_group != 0)
		found.group_name = read_name(object, addr, at->comms_group);
	if (at->comms_first != 0)
		read_ranks(at, object, &found);
	*ret = found;
	return true;
}

/* What is read of a tensor. */
struct tensor {
	uintptr_t vtable;
	int64_t elements;
	uint16_t dtype;
};

/* Lists what to read of a tensor. */
static void list_parts(uintptr_t addr, struct tensor *tensor,
		       struct selfmem_part parts[static TENSOR_PARTS])
{
	const struct torch_layout *at = reader.layout;

	parts[0] = (struct selfmem_part){ addr, &tensor->vtable, sizeof(tensor->vtable) };
	parts[1] = (struct selfmem_part){ addr + at->tensor_elements, &tensor->elements,
					  sizeof(tensor->elements) };
	parts[2] = (struct selfmem_part){ addr + at->tensor_dtype, &tensor->dtype,
					  sizeof(tensor->dtype) };
}

/* Bytes of the tensors that the collective was given; -1: unknown. */
static int64_t tensor_bytes(const struct torch_value *values, size_t cnt)
{
	struct selfmem_part parts[TENSOR_PARTS * TENSOR_CNT_MAX];
	struct tensor tensors[TENSOR_CNT_MAX];
	int64_t sum = 0, bytes;

	for (size_t i = 0; i < cnt; i++) {
		if (values[i].tag != TORCH_TAG_TENSOR)
			return -1;
		list_parts(values[i].payload, &tensors[i], &parts[TENSOR_PARTS * i]);
	}
	if (selfmem_read_parts(&reader.mem, parts, TENSOR_PARTS * cnt) != TENSOR_PARTS * cnt)
		return -1;
	for (size_t i = 0; i < cnt; i++) {
		bytes = bytes_of(tensors[i].elements, tensors[i].dtype);
		if (bytes < 0 || !is_of_class(tensors[i].vtable, &tensor_class))
			return -1;
		sum += bytes;
	}
	return sum;
}

static int64_t input_bytes(const void *function)
{
	uintptr_t addr = (uintptr_t)function + reader.layout->function_inputs;
	struct torch_value values[TENSOR_CNT_MAX];
	struct torch_values inputs;

	if (!selfmem_read(&reader.mem, addr, &inputs, sizeof(inputs)) || inputs.cnt == 0 ||
	    inputs.cnt > TENSOR_CNT_MAX ||
	    !selfmem_read(&reader.mem, inputs.values, values, inputs.cnt * sizeof(values[0])))
		return -1;
	return tensor_bytes(values, inputs.cnt);
}

void torchcomms_read(const void *function, const char *name, struct torchcomms *ret)
{
	const char *colon = strchr(name, ':');
	int error = errno;
	void *info;

	*ret = (struct torchcomms){ .bytes = -1, .seq = -1 };
	if (reader.layout != NULL) {
		info = reader.debug_info != NULL ? reader.debug_info(reader.kind) : NULL;
		if (info == NULL || !read_comms((uintptr_t)info, ret))
			ret->bytes = input_bytes(function);
		if (!knows_ranks(name))
			ret->first_rank = ret->rank_stride = 0;
	}
	if (ret->collective == 0 && colon != NULL)
		ret->collective = nametable_string(colon + 1, strlen(colon + 1));
	errno = error;
}
