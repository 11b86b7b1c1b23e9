/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions of PyTorch whose RecordFunction hook is known, and the offsets of a collective's
 * description in their C++ objects. at::RecordFunctionCallback is the same in all of them. Strings
 * are those of the C++11 ABI, x86-64.
 * Source: offsetof in ATen/record_function.h, c10/core/TensorImpl.h and
 * torch/csrc/distributed/c10d/ParamCommsUtils.hpp of each version (tools/torch-layouts).
 */
#pragma once

#include "base/base.h"

struct torch_version {
	uint32_t major, minor;
};

/* Offsets in bytes. 0: the version has no such member, but where said otherwise. */
struct torch_layout {
	struct torch_version first, last; /* all versions between them are alike */

	/* c10::DebugInfoKind::PARAM_COMMS_INFO where it is a number; 0: it is a variable. */
	uint8_t comms_kind;

	/* torch::ParamCommsDebugInfo. elements_bytes: size of either count of elements. */
	uint16_t comms_bytes, comms_rank, comms_size, comms_group, comms_collective;
	uint16_t comms_in, comms_out, elements_bytes, comms_dtype, comms_seq;
	uint16_t comms_first; /* the group's first rank in the job; behind it their distance */

	/* at::RecordFunction: the arguments, an array of c10::IValue. */
	uint16_t function_inputs;

	/* c10::TensorImpl: how many elements, and their type. */
	uint16_t tensor_elements, tensor_dtype;
};

/* c10::ArrayRef<c10::IValue> */
struct torch_values {
	uintptr_t values;
	uint64_t cnt;
};

/* c10::IValue */
struct torch_value {
	uintptr_t payload; /* TensorImpl *, for the tag of tensors */
	uint32_t tag;
	uint32_t reserved;
};

#define TORCH_TAG_TENSOR 1u /* c10::IValue::Tag::Tensor */

/* text: torch.__version__, such as "2.13.0+cpu". Returns 0 or -EINVAL. */
_must_check_ int torch_version_parse(const char *text, struct torch_version *ret);

/* Static; NULL for a version whose layout is not known: its hook is not known either. */
const struct torch_layout *torch_layout_find(struct torch_version version);

/* Bytes of an element of a c10::ScalarType; 0 when that is not known. */
uint32_t torch_dtype_bytes(uint32_t dtype);
