/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/native/resolve.h"

#include "stacks/native/evalparts.h"
#include "stacks/native/symboltable.h"

#include <errno.h>
#include <string.h>

/* An address, for sorting by file. */
struct place {
	uint32_t module, index;
	uintptr_t pc;
};

void resolver_done(struct resolver *resolver)
{
	vec_done(&resolver->pcs);
	vec_done(&resolver->frames);
	idmap_done(&resolver->by_pc);
}

int resolver_add(struct resolver *resolver, const uintptr_t *pcs, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (idmap_get(&resolver->by_pc, pcs[i]) != IDMAP_NONE)
			continue;
		if (vec_push(&resolver->pcs, pcs[i]) < 0 ||
		    idmap_set(&resolver->by_pc, pcs[i], (uint32_t)(resolver->pcs.cnt - 1)) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int by_module_and_address(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->pc > y->pc) - (x->pc < y->pc);
}

static const char *keep(struct resolver *resolver, const char *text)
{
	return region_text(resolver->region, text, strlen(text));
}

/* Frames without a name are told apart by where their function begins, and perhaps what it is part of. */
static void find_functions(struct resolver *resolver, const struct module *module,
			   const struct place *places, size_t cnt)
{
	const char *part = NULL;
	struct evalparts parts;
	uintptr_t begin, end, last = 0;
	bool is_part = false;

	if (places[0].module == resolver->interpreter) {
		evalparts_open(&parts, module);
		part = keep(resolver, EVALPARTS_LOOP ".cold");
	}
	for (size_t i = 0; i < cnt; i++) {
		struct stacks_frame *frame = &resolver->frames.data[places[i].index];

		if (frame->function != NULL ||
		    !module_function(module, (uintptr_t)frame->offset, &begin, &end))
			continue;
		if (begin != last)
			is_part = part != NULL && evalparts_has(&parts, begin, end);
		frame->offset = last = begin;
		if (is_part)
			frame->function = part;
	}
}

/* Frames of one file, places[cnt] sorted by address. */
static int resolve_module(struct resolver *resolver, const struct place *places, size_t cnt)
{
	struct module *module = &resolver->modules->list.data[places[0].module];
	const bool open = module_open(resolver->modules, module);
	const char *path = keep(resolver, module->path);
	_cleanup_free_ struct symbol_query *queries = calloc(cnt, sizeof(*queries));

	if (queries == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		queries[i].addr = places[i].pc - (open ? module->bias : module->start);
	if (open)
		symboltable_find(module, queries, cnt);
	for (size_t i = 0; i < cnt; i++) {
		struct stacks_frame *frame = &resolver->frames.data[places[i].index];

		frame->file = path;
		frame->interpreter = places[i].module == resolver->interpreter;
		if (queries[i].name != NULL && i > 0 && queries[i].name == queries[i - 1].name)
			frame->function = resolver->frames.data[places[i - 1].index].function;
		else if (queries[i].name != NULL)
			frame->function = keep(resolver, queries[i].name);
		frame->offset = frame->function != NULL ? queries[i].start : queries[i].addr;
	}
	if (open)
		find_functions(resolver, module, places, cnt);
	return 0;
}

int resolver_run(struct resolver *resolver)
{
	const size_t cnt = resolver->pcs.cnt;
	_cleanup_free_ struct place *places = calloc(cnt + 1, sizeof(*places));
	int error = places != NULL ? vec_reserve(&resolver->frames, cnt) : -ENOMEM;

	if (error < 0)
		return error;
	resolver->frames.cnt = cnt;
	for (size_t i = 0; i < cnt; i++) {
		const uintptr_t pc = resolver->pcs.data[i];

		places[i] = (struct place){ modules_find(resolver->modules, pc), (uint32_t)i, pc };
		resolver->frames.data[i] =
			(struct stacks_frame){ .kind = STACKS_NATIVE, .offset = pc };
	}
	qsort(places, cnt, sizeof(*places), by_module_and_address);
	for (size_t i = 0, end; i < cnt && error == 0; i = end) {
		for (end = i + 1; end < cnt && places[end].module == places[i].module; end++)
			;
		if (places[i].module != MODULE_NONE)
			error = resolve_module(resolver, &places[i], end - i);
	}
	return error;
}

const struct stacks_frame *resolver_frame(const struct resolver *resolver, uintptr_t pc)
{
	const uint32_t index = idmap_get(&resolver->by_pc, pc);

	return index != IDMAP_NONE ? &resolver->frames.data[index] : NULL;
}
