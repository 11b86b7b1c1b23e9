/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/classify.h"

#include "model/usage/gpucall.h"

#include <string.h>
#include <strings.h>

/* Substrings of device kernels that communicate, compared without case. */
static const char *const comm_kernels[] = {
	"nccl",
	"rccl",
	"msccl",
	"nvshmem",
	"deep_ep",
	"deepep",
	"allreduce",
	"all_reduce",
	"allgather",
	"all_gather",
	"reducescatter",
	"reduce_scatter",
	"cross_device_reduce",
	"oneccl",
	"hccl",
	/* DeepEP's kernels, named as in DeepSeek's published traces. */
	"internode::",
	"intranode::",
};

/* Compute kernels whose names contain one of the words above. */
static const char *const not_comm_kernels[] = { "splitkreduce" };

/* Prefixes of the kernels with which AMD's runtime copies and fills when no copy engine does. */
static const char *const memory_kernels[] = { "__amd_rocclr_copyBuffer", "__amd_rocclr_fillBuffer",
					      "__amd_rocclr_copyImage", "__amd_rocclr_fillImage" };

/* Operators and annotations that are collectives of a CPU job: prefixes. */
static const char *const comm_ops[] = { "gloo:", "mpi:", "ucc:", "c10d::", "_c10d_functional::" };

/* How Python calls wait() of a collective that runs beside the thread, by versions of pybind11. */
static const char *const comm_waits[] = { "<built-in method wait of pybind11_builtins.",
					  "<built-in method wait of PyCapsule object" };

/* Operators that only create views of tensors: prefixes after "aten::". */
static const char *const view_ops[] = {
	"as_strided",
	"view",
	"t",
	"transpose",
	"slice",
	"select",
	"expand",
	"reshape",
	"narrow",
	"detach",
	"alias",
	"unsqueeze",
	"squeeze",
	"permute",
	"unbind",
	"split",
	"chunk",
	"split_with_sizes",
	"numpy_T",
	"size",
	"stride",
	"numel",
	"is_nonzero",
	"item",
	"_local_scalar_dense",
	"lift_fresh",
	"resolve_conj",
	"resolve_neg",
	"result_type",
	"set_",
	"flatten",
	"unflatten",
	"_unsafe_view",
	"_reshape_alias",
	"unfold",
	"diagonal",
	"expand_as",
	"view_as",
	"movedim",
	"contiguous",
	"to",
	"resize_",
	"requires_grad_",
};

/* Operators that move or fill memory: after "aten::". */
static const char *const memory_ops[] = {
	"copy_",     "clone",	   "empty",	 "empty_strided", "empty_like",
	"_to_copy",  "zero_",	   "fill_",	 "zeros",	  "zeros_like",
	"ones",	     "ones_like",  "full",	 "full_like",	  "cat",
	"stack",     "resize_as_", "_copy_from", "pin_memory",	  "is_pinned",
	"new_empty", "new_zeros",  "set_data",	 "_pin_memory",	  "new_empty_strided",
};

static bool starts_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool any_prefix(const char *name, const char *const *list, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (starts_with(name, list[i]))
			return true;
	}
	return false;
}

static bool any_equal(const char *name, const char *const *list, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (strcmp(name, list[i]) == 0)
			return true;
	}
	return false;
}

static bool any_inside(const char *name, const char *const *list, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (strcasestr(name, list[i]) != NULL)
			return true;
	}
	return false;
}

static bool kernel_is_comm(const char *name)
{
	return any_inside(name, comm_kernels, ARRAY_SIZE(comm_kernels)) &&
	       !any_inside(name, not_comm_kernels, ARRAY_SIZE(not_comm_kernels));
}

static enum event_class classify_kernel(const char *name)
{
	if (any_prefix(name, memory_kernels, ARRAY_SIZE(memory_kernels)))
		return CLASS_MEMORY;
	return kernel_is_comm(name) ? CLASS_COMM : CLASS_COMPUTE;
}

static enum event_class classify_cpu_operator(const char *name, bool leaf)
{
	if (any_prefix(name, comm_ops, ARRAY_SIZE(comm_ops)))
		return CLASS_COMM;
	if (!leaf)
		return CLASS_HOST;
	if (starts_with(name, "aten::")) {
		const char *op = name + strlen("aten::");

		if (any_equal(op, view_ops, ARRAY_SIZE(view_ops)))
			return CLASS_HOST;
		if (any_equal(op, memory_ops, ARRAY_SIZE(memory_ops)))
			return CLASS_MEMORY;
		return CLASS_COMPUTE;
	}
	/* "autograd::engine::evaluate_function: XBackward" only wraps the operators inside it. */
	if (starts_with(name, "autograd::"))
		return CLASS_HOST;
	return strstr(name, "::") != NULL ? CLASS_COMPUTE : CLASS_HOST;
}

enum event_class classify_event(enum event_kind kind, const char *name, bool leaf,
				enum classify_mode mode)
{
	if (kind == KIND_KERNEL)
		return classify_kernel(name);
	if (kind == KIND_GPU_MEMOP)
		return CLASS_MEMORY;
	if (kind == KIND_RUNTIME)
		return gpucall_is_memory(name) ? CLASS_MEMORY : CLASS_HOST;
	if (mode == CLASSIFY_CPU_ONLY && kind == KIND_OPERATOR)
		return classify_cpu_operator(name, leaf);
	/* Beside a device it returns at once. */
	if (mode == CLASSIFY_CPU_ONLY && kind == KIND_PYTHON &&
	    any_prefix(name, comm_waits, ARRAY_SIZE(comm_waits)))
		return CLASS_COMM;
	if (classify_is_collective(kind, name))
		return CLASS_COMM;
	return CLASS_HOST;
}

bool classify_is_collective(enum event_kind kind, const char *name)
{
	/* "nccl:..." annotations only cover the launch; "gloo:..." covers the work itself. */
	if (kind == KIND_ANNOTATION)
		return starts_with(name, "gloo:") || starts_with(name, "mpi:") ||
		       starts_with(name, "ucc:");
	return kind == KIND_KERNEL && kernel_is_comm(name);
}
