/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/native/expression.h"

#include <dwarf.h>

enum { DEPTH_MAX = 32, STEPS_MAX = 256 };

struct machine {
	const struct registers *frame;
	struct stackcopy *stack;
	uint64_t cfa;
	uint64_t values[DEPTH_MAX];
	size_t depth;
	bool is_value;
};

static bool push(struct machine *machine, uint64_t value)
{
	if (machine->depth == DEPTH_MAX)
		return false;
	machine->values[machine->depth++] = value;
	return true;
}

static bool push_register(struct machine *machine, uint64_t number, uint64_t offset)
{
	return number < REGISTER_CNT && registers_know(machine->frame, (unsigned int)number) &&
	       push(machine, machine->frame->value[number] + offset);
}

/* Of the two topmost values, the result replaces both. False: no such operation. */
static bool binary(struct machine *machine, uint8_t atom)
{
	uint64_t *a, b;

	if (machine->depth < 2)
		return false;
	b = machine->values[--machine->depth];
	a = &machine->values[machine->depth - 1];
	switch (atom) {
	case DW_OP_plus:
		*a += b;
		return true;
	case DW_OP_minus:
		*a -= b;
		return true;
	case DW_OP_and:
		*a &= b;
		return true;
	case DW_OP_or:
		*a |= b;
		return true;
	case DW_OP_mul:
		*a *= b;
		return true;
	case DW_OP_shl:
		*a = b < 64 ? *a << b : 0;
		return true;
	case DW_OP_shr:
		*a = b < 64 ? *a >> b : 0;
		return true;
	case DW_OP_ge:
		*a = (int64_t)*a >= (int64_t)b;
		return true;
	case DW_OP_lt:
		*a = (int64_t)*a < (int64_t)b;
		return true;
	case DW_OP_eq:
		*a = *a == b;
		return true;
	default:
		return false;
	}
}

/* Of the topmost value. False: no such operation, or it fails. */
static bool unary(struct machine *machine, const Dwarf_Op *op)
{
	uint64_t *top;

	if (machine->depth == 0)
		return false;
	top = &machine->values[machine->depth - 1];
	switch (op->atom) {
	case DW_OP_deref:
		return stackcopy_word(machine->stack, (uintptr_t)*top, top);
	case DW_OP_dup:
		return push(machine, *top);
	case DW_OP_drop:
		machine->depth--;
		return true;
	case DW_OP_plus_uconst:
		*top += op->number;
		return true;
	case DW_OP_stack_value:
		machine->is_value = true;
		return true;
	default:
		return binary(machine, op->atom);
	}
}

static bool step(struct machine *machine, const Dwarf_Op *op)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return push(machine, op->atom - DW_OP_lit0);
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		return push_register(machine, op->atom - DW_OP_breg0, op->number);
	if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
		machine->is_value = true;
		return push_register(machine, op->atom - DW_OP_reg0, 0);
	}
	switch (op->atom) {
	case DW_OP_bregx:
		return push_register(machine, op->number, op->number2);
	case DW_OP_regx:
		machine->is_value = true;
		return push_register(machine, op->number, 0);
	case DW_OP_call_frame_cfa:
		return push(machine, machine->cfa);
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		return push(machine, op->number);
	case DW_OP_nop:
		return true;
	default:
		return unary(machine, op);
	}
}

bool expression_evaluate(const Dwarf_Op *ops, size_t cnt, const struct registers *frame,
			 struct stackcopy *stack, uint64_t cfa, uint64_t *ret, bool *ret_is_value)
{
	struct machine machine = { .frame = frame, .stack = stack, .cfa = cfa };

	if (cnt == 0 || cnt > STEPS_MAX)
		return false;
	for (size_t i = 0; i < cnt; i++)
		if (!step(&machine, &ops[i]))
			return false;
	if (machine.depth == 0)
		return false;
	*ret = machine.values[machine.depth - 1];
	*ret_is_value = machine.is_value;
	return true;
}
