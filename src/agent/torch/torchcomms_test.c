/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This program plays torch: it has the symbols that are looked up, and objects laid
 * out as C++ does it in torch 2.13.
 */
#include "agent/torch/torchcomms.h"

#include "agent/core/nametable.h"
#include "base/compat.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define COMMS_WORDS 30u
#define FUNCTION_WORDS 40u

void *_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE(uintptr_t kind);
const uintptr_t _ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE = 4711;

/* Type information: its own vtable, the name. A vtable: offset, type, then functions. */
static const void *const comms_type[] = { NULL, "N5torch19ParamCommsDebugInfoE" };
static const void *const tensor_type[] = { NULL, "N3c1010TensorImplE" };
static const void *const other_type[] = { NULL, "N3c1011StorageImplE" };
static const void *const comms_vtable[] = { NULL, comms_type, NULL };
static const void *const tensor_vtable[] = { NULL, tensor_type, NULL };
static const void *const other_vtable[] = { NULL, other_type, NULL };

static struct flight *flight;
static uint64_t *current; /* the thread's ParamCommsDebugInfo */

void *_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE(uintptr_t kind)
{
	assert_int_equal(kind, _ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE);
	return current;
}

static uint64_t word_of(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

/* A std::string in three or four words of an object. */
static void put_string(uint64_t *words, const char *text)
{
	words[1] = strlen(text);
	words[0] = word_of(text);
	if (words[1] < 16) {
		memcpy(&words[2], text, words[1] + 1);
		words[0] = word_of(&words[2]);
	}
}

/*
 * "allreduce" of 1000 halves in group "a group with a long name" of 8, rank 3; number 42. Its
 * ranks are 16, 18, ...
 */
static void make_comms(uint64_t comms[static COMMS_WORDS])
{
	memset(comms, 0, COMMS_WORDS * sizeof(*comms));
	comms[0] = word_of(&comms_vtable[2]);
	put_string(&comms[1], "what it is for");
	put_string(&comms[5], "a group with a long name");
	comms[9] = 8ull << 32 | 3;
	put_string(&comms[10], "allreduce");
	comms[14] = 500;
	comms[15] = 1000;
	comms[16] = 5;
	comms[23] = 2ull << 32 | 16;
	comms[28] = 42;
}

/* A dense tensor of 7 floats; elements at 152, type at 160. */
static void make_tensor(uint64_t tensor[static 24])
{
	memset(tensor, 0, 24 * sizeof(*tensor));
	tensor[0] = word_of(&tensor_vtable[2]);
	tensor[19] = 7;
	tensor[20] = 6;
}

static const struct torch_layout *layout(void)
{
	return torch_layout_find((struct torch_version){ 2, 13 });
}

static void assert_string(uint32_t id, const char *expected)
{
	assert_int_equal(flight->strings[id].len, strlen(expected));
	assert_memory_equal(&flight->text[flight->strings[id].off], expected, strlen(expected));
}

static int setup(void **state _unused_)
{
	if (flight == NULL) {
		flight = mmap(NULL, sizeof(*flight), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (flight == MAP_FAILED || nametable_open(flight) < 0)
			return -1;
	}
	current = NULL;
	torchcomms_open(dlopen(NULL, RTLD_LAZY), layout());
	return 0;
}

static void a_description_is_read(void **state _unused_)
{
	uint64_t comms[COMMS_WORDS], function[FUNCTION_WORDS] = { 0 };
	struct torchcomms found;

	make_comms(comms);
	current = comms;
	torchcomms_read(function, "nccl:all_reduce", &found);
	assert_int_equal(found.bytes, 2000);
	assert_int_equal(found.seq, 42);
	assert_int_equal(found.group_size, 8);
	assert_string(found.group_name, "a group with a long name");
	assert_string(found.collective, "allreduce");
	assert_int_equal(found.first_rank, 16);
	assert_int_equal(found.rank_stride, 2);
}

static void ranks_are_known_where_they_are_even_and_the_back_end_knows_them(void **state _unused_)
{
	static const struct {
		const char *name;
		int32_t first, stride;
		uint16_t found_first, found_stride;
	} cases[] = {
		{ "nccl:all_reduce", 0, 1, 0, 1 },
		{ "xccl:all_reduce", 65535, 65535, 65535, 65535 },
		{ "nccl:all_reduce", 4, -1, 0, 0 },
		{ "nccl:all_reduce", -1, 1, 0, 0 },
		{ "nccl:all_reduce", 65536, 1, 0, 0 },
		{ "nccl:all_reduce", 1, 65536, 0, 0 },
		{ "ucc:all_reduce", 0, 1, 0, 0 },
	};
	static uint64_t comms[COMMS_WORDS], function[FUNCTION_WORDS];
	struct torchcomms found;

	make_comms(comms);
	current = comms;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		comms[23] = (uint64_t)cases[i].stride << 32 | (uint32_t)cases[i].first;
		torchcomms_read(function, cases[i].name, &found);
		assert_int_equal(found.group_size, 8);
		assert_int_equal(found.first_rank, cases[i].found_first);
		assert_int_equal(found.rank_stride, cases[i].found_stride);
	}
}

static void without_a_description_the_tensors_count(void **state _unused_)
{
	uint64_t tensor[24], values[4], function[FUNCTION_WORDS] = { 0 };
	struct torchcomms found;

	make_tensor(tensor);
	values[0] = values[2] = word_of(tensor);
	values[1] = values[3] = 1;
	function[26] = word_of(values);
	function[27] = 2;
	errno = EXDEV;
	torchcomms_read(function, "gloo:all_reduce", &found);
	assert_int_equal(found.bytes, 2 * 7 * 4);
	assert_int_equal(found.seq, -1);
	assert_int_equal(found.group_size, 0);
	assert_int_equal(found.group_name, 0);
	assert_string(found.collective, "all_reduce");
	values[3] = 2; /* not a tensor */
	torchcomms_read(function, "gloo:all_reduce", &found);
	assert_int_equal(found.bytes, -1);
	assert_int_equal(errno, EXDEV);
}

static void an_object_of_another_class_is_unknown(void **state _unused_)
{
	uint64_t comms[COMMS_WORDS], function[FUNCTION_WORDS] = { 0 };
	struct torchcomms found;

	make_comms(comms);
	comms[0] = word_of(&other_vtable[2]);
	current = comms;
	torchcomms_read(function, "nccl:all_reduce", &found);
	assert_int_equal(found.bytes, -1);
	assert_int_equal(found.group_size, 0);
}

static void nothing_is_known_of_another_version(void **state _unused_)
{
	uint64_t comms[COMMS_WORDS], function[FUNCTION_WORDS] = { 0 };
	struct torchcomms found;

	make_comms(comms);
	current = comms;
	torchcomms_open(dlopen(NULL, RTLD_LAZY), NULL);
	torchcomms_read(function, "nccl:all_reduce", &found);
	assert_int_equal(found.bytes, -1);
	assert_string(found.collective, "all_reduce");
}

static uint64_t random_word(uint64_t *state)
{
	static const uint64_t likely[] = { 0, 1, 8, 0x10, 0xdeadbeef000, UINT64_MAX, 1ull << 47 };
	uint64_t draw;

	*state = *state * 6364136223846793005u + 1442695040888963407u;
	draw = *state >> 33;
	return draw % 3 == 0 ? *state : likely[draw % ARRAY_SIZE(likely)];
}

/* Reads stay in bounds for any contents of the objects. */
static void objects_may_hold_anything(void **state _unused_)
{
	uint64_t comms[COMMS_WORDS], tensor[24], values[4], function[FUNCTION_WORDS] = { 0 };
	uint64_t seed = 1;
	struct torchcomms found;

	for (uint32_t i = 0; i < 20000; i++) {
		make_comms(comms);
		make_tensor(tensor);
		values[0] = values[2] = word_of(tensor);
		values[1] = values[3] = 1;
		function[26] = word_of(values);
		function[27] = 2;
		comms[random_word(&seed) % COMMS_WORDS] = random_word(&seed);
		tensor[random_word(&seed) % 24] = random_word(&seed);
		values[random_word(&seed) % 4] = random_word(&seed);
		function[26 + random_word(&seed) % 2] += random_word(&seed) % 64;
		current = i % 2 == 0 ? comms : NULL;
		torchcomms_read(function, "nccl:x", &found);
		assert_in_range(found.bytes + 1, 0, 1ull << 60);
		assert_in_range(found.group_size, 0, 1 << 24);
		assert_true(found.seq >= -1);
	}
}

static void versions_are_parsed(void **state _unused_)
{
	static const char *const wrong[] = { "", "2", "2.", ".13", "a.b", "99999999999.1", "2.x" };
	struct torch_version version = { 0 };

	assert_int_equal(torch_version_parse("1.13.0a0+git", &version), 0);
	assert_int_equal(version.major, 1);
	assert_int_equal(version.minor, 13);
	assert_non_null(torch_layout_find(version));
	assert_null(torch_layout_find((struct torch_version){ 13, 1 }));
	assert_null(torch_layout_find((struct torch_version){ 1, 12 }));
	assert_null(torch_layout_find((struct torch_version){ 2, 16 }));
	for (uint32_t minor = 0; minor <= 15; minor++)
		assert_non_null(torch_layout_find((struct torch_version){ 2, minor }));
	assert_int_equal(torch_layout_find((struct torch_version){ 2, 4 })->comms_out, 116);
	assert_int_equal(torch_layout_find((struct torch_version){ 2, 11 })->comms_bytes, 216);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(torch_version_parse(wrong[i], &version), -EINVAL);
	assert_int_equal(torch_dtype_bytes(6), 4);
	assert_int_equal(torch_dtype_bytes(15), 2);
	assert_int_equal(torch_dtype_bytes(255), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_description_is_read, setup),
		cmocka_unit_test_setup(
			ranks_are_known_where_they_are_even_and_the_back_end_knows_them, setup),
		cmocka_unit_test_setup(without_a_description_the_tensors_count, setup),
		cmocka_unit_test_setup(an_object_of_another_class_is_unknown, setup),
		cmocka_unit_test_setup(nothing_is_known_of_another_version, setup),
		cmocka_unit_test_setup(objects_may_hold_anything, setup),
		cmocka_unit_test(versions_are_parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
