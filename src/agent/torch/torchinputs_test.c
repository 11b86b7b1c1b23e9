/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This program plays torch: it has the symbols that are looked up, and objects laid
 * out as C++ does it in torch 2.13.
 */
#include "agent/torch/torchinputs.h"

#include "base/compat.h"
#include "model/elements.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define PROOFS 32 /* as many as torchinputs.c wants, or more */
#define TRIALS 5000

extern const void *const _ZTVN3c1010TensorImplE[3];
extern uint64_t _ZN3c1019UndefinedTensorImpl10_singletonE[24];
const void *const _ZTVN3c1010TensorImplE[3];
uint64_t _ZN3c1019UndefinedTensorImpl10_singletonE[24];
static const void *const other_vtable[3];

/* One call of an operator: 8 arguments at most. */
struct call {
	uint64_t function[40];
	struct torch_value values[8];
	uint64_t tensors[8][24];
	size_t cnt;
};

static uint64_t word_of(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static void add_value(struct call *call, uint32_t tag, uint64_t payload)
{
	call->values[call->cnt++] = (struct torch_value){ .payload = payload, .tag = tag };
	call->function[26] = word_of(call->values);
	call->function[27] = call->cnt;
}

static uint64_t *add_tensor(struct call *call, int64_t elements)
{
	uint64_t *tensor = call->tensors[call->cnt];

	tensor[0] = word_of(&_ZTVN3c1010TensorImplE[2]);
	tensor[19] = (uint64_t)elements;
	add_value(call, TORCH_TAG_TENSOR, word_of(tensor));
	return tensor;
}

static int64_t elements_of(const struct call *call)
{
	return torchinputs_elements(call->function);
}

static const struct torch_layout *layout(void)
{
	return torch_layout_find((struct torch_version){ 2, 13 });
}

static int setup(void **state _unused_)
{
	torchinputs_open(dlopen(NULL, RTLD_LAZY), layout());
	return torchinputs_known() ? 0 : -1;
}

static void prove(void)
{
	struct call call = { .cnt = 0 };

	(void)add_tensor(&call, 3);
	for (size_t i = 0; i < PROOFS; i++)
		assert_int_equal(elements_of(&call), 3);
}

static void check_sums(void)
{
	struct call call = { .cnt = 0 };

	assert_int_equal(elements_of(&call), -1);
	add_value(&call, 0, 0); /* None */
	add_value(&call, 4, 4711);
	assert_int_equal(elements_of(&call), -1);
	(void)add_tensor(&call, 0);
	assert_int_equal(elements_of(&call), 0);
	(void)add_tensor(&call, 1000);
	add_value(&call, 2, 0x1000000);
	(void)add_tensor(&call, 11);
	add_value(&call, TORCH_TAG_TENSOR, word_of(_ZN3c1019UndefinedTensorImpl10_singletonE));
	assert_int_equal(elements_of(&call), 1011);
}

static void tensors_among_the_arguments_are_summed(void **state _unused_)
{
	check_sums();
	prove();
	check_sums();
}

static void check_strange(void)
{
	struct call other = { .cnt = 0 }, negative = { .cnt = 0 }, huge = { .cnt = 0 };
	struct call many = { .cnt = 0 }, whole = { .cnt = 0 };

	(void)add_tensor(&other, 5);
	add_tensor(&other, 6)[0] = word_of(&other_vtable[2]);
	assert_int_equal(elements_of(&other), -1);
	(void)add_tensor(&negative, -1);
	assert_int_equal(elements_of(&negative), -1);
	(void)add_tensor(&huge, ELEMENTS_MAX + 1);
	assert_int_equal(elements_of(&huge), -1);
	(void)add_tensor(&many, 1);
	many.function[27] = 1025;
	assert_int_equal(elements_of(&many), -1);
	for (size_t i = 0; i < 8; i++)
		(void)add_tensor(&whole, ELEMENTS_MAX);
	assert_int_equal(elements_of(&whole), ELEMENTS_MAX);
}

static void tensors_of_other_kinds_have_unknown_sizes(void **state _unused_)
{
	check_strange();
	prove();
	check_strange();
	assert_true(torchinputs_known());
}

/* Each address that is read, where nothing is: no signal, but no second try either. */
static void unmapped_memory_ends_the_reading_of_inputs(void **state _unused_)
{
	char *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct call arguments = { .cnt = 0 }, tensor = { .cnt = 0 };

	assert_ptr_not_equal(hole, MAP_FAILED);
	(void)add_tensor(&arguments, 1);
	arguments.function[26] = word_of(hole);
	add_value(&tensor, TORCH_TAG_TENSOR, word_of(hole));
	errno = E2BIG;
	assert_int_equal(torchinputs_elements(hole), -1);
	assert_int_equal(errno, E2BIG);
	assert_false(torchinputs_known());
	assert_int_equal(setup(NULL), 0);
	assert_int_equal(elements_of(&arguments), -1);
	assert_false(torchinputs_known());
	assert_int_equal(setup(NULL), 0);
	assert_int_equal(elements_of(&tensor), -1);
	assert_false(torchinputs_known());
	assert_int_equal(elements_of(&tensor), -1);
	(void)munmap(hole, 4096);
}

static void inputs_are_given_up_without_a_proof(void **state _unused_)
{
	struct call call = { .cnt = 0 };

	add_tensor(&call, 6)[0] = word_of(&other_vtable[2]);
	for (size_t i = 0; i < TRIALS; i++)
		assert_int_equal(elements_of(&call), -1);
	assert_false(torchinputs_known());
}

static void an_unknown_layout_leaves_all_unknown(void **state _unused_)
{
	struct call call = { .cnt = 0 };

	(void)add_tensor(&call, 1);
	torchinputs_open(dlopen(NULL, RTLD_LAZY), NULL);
	assert_false(torchinputs_known());
	assert_int_equal(elements_of(&call), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(tensors_among_the_arguments_are_summed, setup),
		cmocka_unit_test_setup(tensors_of_other_kinds_have_unknown_sizes, setup),
		cmocka_unit_test_setup(unmapped_memory_ends_the_reading_of_inputs, setup),
		cmocka_unit_test_setup(inputs_are_given_up_without_a_proof, setup),
		cmocka_unit_test_setup(an_unknown_layout_leaves_all_unknown, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
