/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/torch/torchinputs.h"

#include "base/compat.h"
#include "model/elements.h"
#include "pyread/selfmem.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#define ARGUMENT_CNT_MAX 1024u
#define PROOF_CNT 32u	      /* tensors that were right before plain loads are used */
#define TRIAL_CNT 4096u	      /* operators that may pass until then */
#define VTABLE_HEAD_BYTES 16u /* an object points behind the offset and the type */

/* Whether the layout is what it should be. */
enum trust { TRUST_NONE, TRUST_TRIED, TRUST_PROVEN };

static struct inputs {
	const struct torch_layout *layout;
	uintptr_t tensor_vtable;    /* c10::TensorImpl: what a dense tensor is */
	uintptr_t undefined_tensor; /* the singleton of undefined tensors */
	struct selfmem mem;
	_Atomic uint32_t trust; /* enum trust; NONE is final */
	_Atomic uint32_t trials, proofs;
} inputs;

void torchinputs_open(void *libtorch, const struct torch_layout *layout)
{
	uintptr_t vtable = (uintptr_t)dlsym(libtorch, "_ZTVN3c1010TensorImplE");

	atomic_store_explicit(&inputs.trust, TRUST_NONE, memory_order_relaxed);
	atomic_store_explicit(&inputs.trials, 0, memory_order_relaxed);
	atomic_store_explicit(&inputs.proofs, 0, memory_order_relaxed);
	if (layout == NULL || vtable == 0 || selfmem_open(&inputs.mem) < 0)
		return;
	inputs.layout = layout;
	inputs.tensor_vtable = vtable + VTABLE_HEAD_BYTES;
	inputs.undefined_tensor =
		(uintptr_t)dlsym(libtorch, "_ZN3c1019UndefinedTensorImpl10_singletonE");
	atomic_store_explicit(&inputs.trust, TRUST_TRIED, memory_order_release);
}

bool torchinputs_known(void)
{
	return atomic_load_explicit(&inputs.trust, memory_order_acquire) != TRUST_NONE;
}

static void give_up(void)
{
	atomic_store_explicit(&inputs.trust, TRUST_NONE, memory_order_relaxed);
}

/* Before the proof, false and no trust any more when the memory is not there. */
static bool fetch(enum trust trust, uintptr_t addr, void *ret, size_t size)
{
	if (trust == TRUST_PROVEN) {
		memcpy(ret, (const void *)addr, size);
		return true;
	}
	if (selfmem_read(&inputs.mem, addr, ret, size))
		return true;
	give_up();
	return false;
}

static void count_proof(void)
{
	uint32_t expected = TRUST_TRIED;

	if (atomic_fetch_add_explicit(&inputs.proofs, 1, memory_order_relaxed) + 1 == PROOF_CNT)
		(void)atomic_compare_exchange_strong_explicit(&inputs.trust, &expected,
							      TRUST_PROVEN, memory_order_relaxed,
							      memory_order_relaxed);
}

/* Of one tensor; -1: unknown. */
static int64_t tensor_elements(enum trust trust, uintptr_t tensor)
{
	uintptr_t vtable;
	int64_t elements;

	if (tensor == inputs.undefined_tensor)
		return 0;
	if (!fetch(trust, tensor, &vtable, sizeof(vtable)) || vtable != inputs.tensor_vtable ||
	    !fetch(trust, tensor + inputs.layout->tensor_elements, &elements, sizeof(elements)))
		return -1;
	if (elements < 0 || elements > ELEMENTS_MAX)
		return -1;
	if (trust == TRUST_TRIED)
		count_proof();
	return elements;
}

static int64_t sum_elements(enum trust trust, const struct torch_values *arguments)
{
	int64_t sum = -1;

	for (size_t i = 0; i < arguments->cnt; i++) {
		uintptr_t addr = arguments->values + i * sizeof(struct torch_value);
		struct torch_value value;
		int64_t elements;

		if (!fetch(trust, addr, &value, sizeof(value)))
			return -1;
		if (value.tag != TORCH_TAG_TENSOR)
			continue;
		elements = tensor_elements(trust, value.payload);
		if (elements < 0)
			return -1;
		sum = MIN(MAX(sum, 0) + elements, ELEMENTS_MAX);
	}
	return sum;
}

int64_t torchinputs_elements(const void *function)
{
	enum trust trust = atomic_load_explicit(&inputs.trust, memory_order_acquire);
	struct torch_values arguments;
	int error = errno;
	int64_t sum = -1;

	if (trust == TRUST_NONE)
		return -1;
	if (trust == TRUST_TRIED &&
	    atomic_fetch_add_explicit(&inputs.trials, 1, memory_order_relaxed) >= TRIAL_CNT)
		give_up();
	if (fetch(trust, (uintptr_t)function + inputs.layout->function_inputs, &arguments,
		  sizeof(arguments)) &&
	    arguments.cnt <= ARGUMENT_CNT_MAX)
		sum = sum_elements(trust, &arguments);
	errno = error;
	return sum;
}
