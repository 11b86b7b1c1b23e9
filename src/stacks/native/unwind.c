/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/native/unwind.h"

#include "stacks/native/expression.h"

#include <dwarf.h>
#include <errno.h>

/* The registers that a function keeps for its caller: rbx, rbp, r12 to r15. */
static const unsigned char SAVED[] = { REGISTER_BX, REGISTER_BP, 12, 13, 14, 15 };

enum { SAVED_CNT = ARRAY_SIZE(SAVED), ROWS_MAX = 65536 };

enum rule_kind {
	RULE_UNDEFINED,
	RULE_SAME,
	RULE_AT_CFA,   /* in memory at the frame's address plus offset */
	RULE_IS_CFA,   /* that sum itself */
	RULE_REGISTER, /* of a register plus offset; of the frame's address only */
	RULE_EXPRESSION,
};

struct rule {
	enum rule_kind kind;
	unsigned int number;
	int64_t offset;
	const Dwarf_Op *ops; /* RULE_EXPRESSION */
	size_t cnt;
};

/* How to find the caller of an instruction. */
struct unwind_row {
	bool found, signal;
	struct rule cfa, pc, saved[SAVED_CNT];
	Dwarf_Frame *frame; /* owns the expression of cfa */
};

void unwinder_init(struct unwinder *unwinder, struct modules *modules)
{
	*unwinder = (struct unwinder){ .modules = modules };
}

void unwinder_done(struct unwinder *unwinder)
{
	vec_foreach(row, &unwinder->rows)
		free(row->frame);
	vec_done(&unwinder->rows);
	idmap_done(&unwinder->by_pc);
}

/* What libdw says, as a rule. */
static struct rule rule_of(const Dwarf_Op *ops, size_t cnt)
{
	struct rule rule = { .kind = RULE_EXPRESSION, .ops = ops, .cnt = cnt };
	bool plus = cnt >= 2 && ops[1].atom == DW_OP_plus_uconst;

	if (ops[0].atom == DW_OP_call_frame_cfa && (cnt == 1 || plus)) {
		rule.offset = plus ? (int64_t)ops[1].number : 0;
		if (cnt == 1u + plus)
			rule.kind = RULE_AT_CFA;
		else if (cnt == 2u + plus && ops[cnt - 1].atom == DW_OP_stack_value)
			rule.kind = RULE_IS_CFA;
	} else if (cnt == 1 && ops[0].atom == DW_OP_bregx) {
		rule.kind = RULE_REGISTER;
		rule.number = (unsigned int)ops[0].number;
		rule.offset = (int64_t)ops[0].number2;
	} else if (cnt == 1 && ops[0].atom == DW_OP_regx) {
		rule.kind = RULE_REGISTER;
		rule.number = (unsigned int)ops[0].number;
	}
	return rule;
}

static struct rule rule_of_register(Dwarf_Frame *frame, int number)
{
	Dwarf_Op memory[3], *ops;
	struct rule rule = { .kind = RULE_UNDEFINED };
	size_t cnt;

	if (dwarf_frame_register(frame, number, memory, &ops, &cnt) != 0)
		return rule;
	if (cnt > 0)
		rule = rule_of(ops, cnt);
	else if (ops == NULL)
		rule.kind = RULE_SAME;
	/* Short expressions may be in `memory`, which ends here. */
	if (rule.kind == RULE_EXPRESSION && ops == memory)
		rule.kind = RULE_UNDEFINED;
	return rule;
}

/* False: there are no rules for that address. */
static bool row_make(struct modules *modules, uintptr_t pc, struct unwind_row *ret)
{
	const uint32_t index = modules_find(modules, pc);
	struct module *module;
	Dwarf_Op *ops;
	size_t cnt;
	int column;

	if (index == MODULE_NONE)
		return false;
	module = &modules->list.data[index];
	if (!module_open(modules, module) || module->cfi == NULL ||
	    dwarf_cfi_addrframe(module->cfi, pc - module->bias, &ret->frame) != 0)
		return false;
	column = dwarf_frame_info(ret->frame, NULL, NULL, &ret->signal);
	if (column < 0 || dwarf_frame_cfa(ret->frame, &ops, &cnt) != 0 || cnt == 0)
		return false;
	ret->cfa = rule_of(ops, cnt);
	ret->pc = rule_of_register(ret->frame, column);
	for (size_t i = 0; i < SAVED_CNT; i++)
		ret->saved[i] = rule_of_register(ret->frame, SAVED[i]);
	ret->found = true;
	return true;
}

/* Valid until the next call. NULL: out of memory. */
static const struct unwind_row *row_at(struct unwinder *unwinder, uintptr_t pc)
{
	uint32_t index = idmap_get(&unwinder->by_pc, pc);
	struct unwind_row row = { .found = false };

	if (index != IDMAP_NONE)
		return &unwinder->rows.data[index];
	if (unwinder->rows.cnt == ROWS_MAX)
		return NULL;
	(void)row_make(unwinder->modules, pc, &row);
	index = (uint32_t)unwinder->rows.cnt;
	if (vec_push(&unwinder->rows, row) < 0) {
		free(row.frame);
		return NULL;
	}
	if (idmap_set(&unwinder->by_pc, pc, index) < 0)
		return NULL;
	return &unwinder->rows.data[index];
}

static enum unwind_end find_cfa(const struct rule *rule, const struct registers *frame,
				struct stackcopy *stack, uint64_t *ret)
{
	bool is_value;

	if (rule->kind == RULE_REGISTER) {
		if (!registers_know(frame, rule->number))
			return UNWIND_NO_REGISTER;
		*ret = frame->value[rule->number] + (uint64_t)rule->offset;
		return UNWIND_COMPLETE;
	}
	if (rule->kind == RULE_EXPRESSION &&
	    expression_evaluate(rule->ops, rule->cnt, frame, stack, 0, ret, &is_value))
		return UNWIND_COMPLETE;
	return UNWIND_NO_REGISTER;
}

/*
 * vfork() pops its return address into a register, which a thread in uninterruptible sleep does not
 * tell. The place in memory still has it, or that of a later call by the same function: parent and
 * child use one stack.
 */
static bool popped_address(uint64_t cfa, struct stackcopy *stack, uint64_t *ret)
{
	return stackcopy_word(stack, (uintptr_t)cfa - sizeof(*ret), ret);
}

/* The caller's value of a register; *ret remains without it if it can't be known. */
static enum unwind_end apply(const struct rule *rule, unsigned int number, uint64_t cfa,
			     const struct registers *frame, struct stackcopy *stack,
			     struct registers *ret)
{
	uint64_t value;
	bool is_value;

	switch (rule->kind) {
	case RULE_SAME:
		if (registers_know(frame, number))
			registers_set(ret, number, frame->value[number]);
		return UNWIND_COMPLETE;
	case RULE_AT_CFA:
		if (!stackcopy_word(stack, (uintptr_t)(cfa + (uint64_t)rule->offset), &value))
			return UNWIND_NO_MEMORY;
		break;
	case RULE_IS_CFA:
		value = cfa + (uint64_t)rule->offset;
		break;
	case RULE_REGISTER:
		if (registers_know(frame, rule->number))
			value = frame->value[rule->number];
		else if (number != REGISTER_PC || !popped_address(cfa, stack, &value))
			return UNWIND_NO_REGISTER;
		break;
	case RULE_EXPRESSION:
		if (!expression_evaluate(rule->ops, rule->cnt, frame, stack, cfa, &value,
					 &is_value))
			return UNWIND_NO_REGISTER;
		if (!is_value && !stackcopy_word(stack, (uintptr_t)value, &value))
			return UNWIND_NO_MEMORY;
		break;
	case RULE_UNDEFINED:
	default:
		return UNWIND_COMPLETE;
	}
	registers_set(ret, number, value);
	return UNWIND_COMPLETE;
}

/* From a frame to its caller. Returns UNWIND_COMPLETE, and pc 0 in *ret if there is no caller. */
static enum unwind_end step(const struct unwind_row *row, const struct registers *frame,
			    struct stackcopy *stack, struct registers *ret)
{
	struct registers caller = { .known = 0 };
	enum unwind_end end;
	uint64_t cfa;

	if (row->pc.kind == RULE_UNDEFINED) {
		*ret = caller;
		return UNWIND_COMPLETE;
	}
	end = find_cfa(&row->cfa, frame, stack, &cfa);
	if (end != UNWIND_COMPLETE)
		return end;
	/* A frame whose return address was popped has no room left. */
	if (cfa < frame->value[REGISTER_SP] + (row->pc.kind != RULE_REGISTER) && !row->signal)
		return UNWIND_LOOP;
	end = apply(&row->pc, REGISTER_PC, cfa, frame, stack, &caller);
	if (end != UNWIND_COMPLETE)
		return end;
	for (size_t i = 0; i < SAVED_CNT; i++)
		(void)apply(&row->saved[i], SAVED[i], cfa, frame, stack, &caller);
	registers_set(&caller, REGISTER_SP, cfa);
	*ret = caller;
	return UNWIND_COMPLETE;
}

size_t unwinder_walk(struct unwinder *unwinder, const struct registers *start,
		     struct stackcopy *stack, uintptr_t *ret_pcs, size_t cap,
		     enum unwind_end *ret_end)
{
	struct registers frame = *start;
	enum unwind_end end = UNWIND_CUT;
	bool exact = true; /* the pc is that of the instruction itself, not behind a call */
	size_t cnt = 0;

	while (cnt < cap) {
		const struct unwind_row *row;
		const uintptr_t pc = (uintptr_t)frame.value[REGISTER_PC];

		if (pc == 0 && cnt > 0) {
			end = UNWIND_COMPLETE;
			break;
		}
		ret_pcs[cnt++] = exact ? pc : pc - 1;
		row = row_at(unwinder, ret_pcs[cnt - 1]);
		if (row == NULL || !row->found) {
			end = modules_find(unwinder->modules, pc) == MODULE_NONE ? UNWIND_NO_CODE
										 : UNWIND_NO_RULES;
			break;
		}
		exact = row->signal;
		end = step(row, &frame, stack, &frame);
		if (end != UNWIND_COMPLETE)
			break;
		end = UNWIND_CUT;
	}
	*ret_end = end;
	return cnt;
}
