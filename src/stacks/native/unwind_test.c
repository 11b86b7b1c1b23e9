/* SPDX-License-Identifier: Apache-2.0 */
/* The test's own process is unwound, from registers and a copy of its stack. */
#include "stacks/native/unwind.h"

#include "base/test_alloc.h"
#include "stacks/native/expression.h"
#include "stacks/native/resolve.h"

#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

struct own {
	int proc;
	struct modules modules;
	struct unwinder unwinder;
	uintptr_t pcs[64];
	size_t cnt;
	enum unwind_end end;
	long allowed; /* allocations of the walk that succeed; -1: all */
};

static void own_open(struct own *own)
{
	*own = (struct own){
		.proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.allowed = -1,
	};
	assert_true(own->proc >= 0);
	assert_int_equal(modules_read(&own->modules, own->proc, getpid()), 0);
	unwinder_init(&own->unwinder, &own->modules);
}

static void own_close(struct own *own)
{
	unwinder_done(&own->unwinder);
	modules_done(&own->modules);
	(void)close(own->proc);
}

#ifdef __x86_64__
/* known: a set of registers that the unwinder gets. */
static __attribute__((noinline)) void walk_from_here(struct own *own, uint32_t known, size_t cap)
{
	struct registers registers = { .known = 0 };
	const struct module_area *area;
	struct stackcopy stack;
	uint64_t sp, bp, bx, pc;

	__asm__ volatile("mov %%rsp, %0\n\tmov %%rbp, %1\n\tmov %%rbx, %2\n\tlea (%%rip), %3"
			 : "=r"(sp), "=r"(bp), "=r"(bx), "=r"(pc));
	registers_set(&registers, REGISTER_SP, sp);
	registers_set(&registers, REGISTER_BP, bp);
	registers_set(&registers, REGISTER_BX, bx);
	registers_set(&registers, REGISTER_PC, pc);
	registers.known &= known;
	area = modules_area(&own->modules, (uintptr_t)sp);
	assert_non_null(area);
	assert_int_equal(stackcopy_take(&stack, getpid(), (uintptr_t)sp, area->end, STACKCOPY_MAX),
			 0);
	allocations_left = own->allowed;
	own->cnt = unwinder_walk(&own->unwinder, &registers, &stack, own->pcs, cap, &own->end);
	allocations_left = -1;
	stackcopy_done(&stack);
}

static __attribute__((noinline)) void walk_deeper(struct own *own, size_t depth)
{
	if (depth > 0)
		walk_deeper(own, depth - 1);
	else
		walk_from_here(own, UINT32_MAX, ARRAY_SIZE(own->pcs));
	__asm__ volatile("" : : "r"(own) : "memory"); /* no tail call */
}

static void a_stack_is_followed_to_the_start_of_the_program(void **state)
{
	struct resolver resolver = { .interpreter = MODULE_NONE };
	const struct stacks_frame *frame;
	size_t deeper = 0;
	struct own own;

	(void)state;
	own_open(&own);
	walk_deeper(&own, 3);
	assert_int_equal(own.end, UNWIND_COMPLETE);
	resolver.modules = &own.modules;
	resolver.region = region_new(1 << 20);
	assert_non_null(resolver.region);
	assert_int_equal(resolver_add(&resolver, own.pcs, own.cnt), 0);
	assert_int_equal(resolver_run(&resolver), 0);
	for (size_t i = 0; i < own.cnt; i++) {
		frame = resolver_frame(&resolver, own.pcs[i]);
		assert_non_null(frame);
		deeper +=
			frame->function != NULL && strncmp(frame->function, "walk_deeper", 11) == 0;
	}
	/* The compiler may have made a clone: "walk_from_here.constprop.0". */
	assert_memory_equal(resolver_frame(&resolver, own.pcs[0])->function, "walk_from_here", 14);
	assert_string_equal(resolver_frame(&resolver, own.pcs[own.cnt - 1])->function, "_start");
	assert_int_equal(deeper, 4);
	assert_null(resolver_frame(&resolver, 1));
	resolver_done(&resolver);
	(void)region_free(resolver.region);
	own_close(&own);
}

static void a_small_array_gets_the_innermost_frames(void **state)
{
	struct own own;

	(void)state;
	own_open(&own);
	walk_from_here(&own, UINT32_MAX, 3);
	assert_int_equal(own.cnt, 3);
	assert_int_equal(own.end, UNWIND_CUT);
	own_close(&own);
}

static void an_address_outside_all_code_ends_the_stack(void **state)
{
	struct registers registers = { .known = 0 };
	struct stackcopy stack = { .begin = 4096, .end = 8192 };
	struct own own;

	(void)state;
	own_open(&own);
	registers_set(&registers, REGISTER_PC, 12);
	registers_set(&registers, REGISTER_SP, 4096);
	own.cnt = unwinder_walk(&own.unwinder, &registers, &stack, own.pcs, 8, &own.end);
	assert_int_equal(own.cnt, 1);
	assert_int_equal(own.end, UNWIND_NO_CODE);
	assert_true(unwind_wants_stop(own.end));
	own_close(&own);
}

static void without_memory_the_walk_ends_early(void **state)
{
	struct own own;
	int error;

	(void)state;
	own_open(&own);
	for (long n = 0; own.end != UNWIND_COMPLETE || n == 0; n++) {
		unwinder_done(&own.unwinder);
		unwinder_init(&own.unwinder, &own.modules);
		own.allowed = n;
		walk_deeper(&own, 1);
		assert_true(n < 100 && own.cnt > 0);
	}
	modules_done(&own.modules);
	allocations_left = 2;
	error = modules_read(&own.modules, own.proc, getpid());
	allocations_left = -1;
	assert_int_equal(error, -ENOMEM);
	own_close(&own);
}
#endif

static void modules_know_functions_by_their_table(void **state)
{
	uintptr_t begin, end, addr = (uintptr_t)&own_open;
	struct module *module;
	struct own own;
	uint32_t index;

	(void)state;
	own_open(&own);
	index = modules_find(&own.modules, addr);
	assert_int_not_equal(index, MODULE_NONE);
	module = &own.modules.list.data[index];
	assert_true(module_open(&own.modules, module));
	assert_true(module_function(module, addr - module->bias + 1, &begin, &end));
	assert_int_equal(begin, addr - module->bias);
	assert_true(end > begin);
	assert_false(module_function(module, 0, &begin, &end));
	assert_memory_equal(module_code(module, addr - module->bias, 4), (void *)addr, 4);
	assert_null(module_code(module, 0, 4));
	assert_int_equal(modules_find(&own.modules, 1), MODULE_NONE);
	own_close(&own);
}

static bool evaluate(const Dwarf_Op *ops, size_t cnt, uint64_t *ret, bool *ret_is_value)
{
	static unsigned char memory[16] = { 42 };
	struct stackcopy stack = { .begin = 1000, .end = 1016, .len = 16, .data = memory };
	struct registers frame = { .known = 0 };

	registers_set(&frame, REGISTER_SP, 1000);
	registers_set(&frame, REGISTER_PC, 0x100b);
	return expression_evaluate(ops, cnt, &frame, &stack, 77, ret, ret_is_value);
}

/* The expression of all procedure linkage tables: sp + 8, and 8 more behind the push. */
static void the_expression_of_a_linkage_table(void **state)
{
	const Dwarf_Op ops[] = {
		{ .atom = DW_OP_breg7, .number = 8 },
		{ .atom = DW_OP_breg16 },
		{ .atom = DW_OP_lit15 },
		{ .atom = DW_OP_and },
		{ .atom = DW_OP_lit11 },
		{ .atom = DW_OP_ge },
		{ .atom = DW_OP_lit3 },
		{ .atom = DW_OP_shl },
		{ .atom = DW_OP_plus },
	};
	uint64_t value;
	bool is_value;

	(void)state;
	assert_true(evaluate(ops, ARRAY_SIZE(ops), &value, &is_value));
	assert_int_equal(value, 1016);
	assert_false(is_value);
}

static void expressions_read_memory_and_refuse_what_they_do_not_know(void **state)
{
	const Dwarf_Op deref[] = { { .atom = DW_OP_breg7 }, { .atom = DW_OP_deref } };
	const Dwarf_Op cfa[] = { { .atom = DW_OP_call_frame_cfa }, { .atom = DW_OP_stack_value } };
	const Dwarf_Op outside[] = { { .atom = DW_OP_lit1 }, { .atom = DW_OP_deref } };
	const Dwarf_Op unknown[] = { { .atom = DW_OP_lit1 }, { .atom = DW_OP_xderef } };
	const Dwarf_Op empty[] = { { .atom = DW_OP_plus } };
	const Dwarf_Op missing[] = { { .atom = DW_OP_breg6 } };
	uint64_t value;
	bool is_value;

	(void)state;
	assert_true(evaluate(deref, 2, &value, &is_value));
	assert_int_equal(value, 42);
	assert_true(evaluate(cfa, 2, &value, &is_value));
	assert_int_equal(value, 77);
	assert_true(is_value);
	assert_false(evaluate(outside, 2, &value, &is_value));
	assert_false(evaluate(unknown, 2, &value, &is_value));
	assert_false(evaluate(empty, 1, &value, &is_value));
	assert_false(evaluate(missing, 1, &value, &is_value));
	assert_false(evaluate(empty, 0, &value, &is_value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(a_stack_is_followed_to_the_start_of_the_program),
		cmocka_unit_test(a_small_array_gets_the_innermost_frames),
		cmocka_unit_test(an_address_outside_all_code_ends_the_stack),
		cmocka_unit_test(without_memory_the_walk_ends_early),
#endif
		cmocka_unit_test(modules_know_functions_by_their_table),
		cmocka_unit_test(the_expression_of_a_linkage_table),
		cmocka_unit_test(expressions_read_memory_and_refuse_what_they_do_not_know),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
