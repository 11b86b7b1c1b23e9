/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/collectives/groupshape.h"

#include "format/fingerprint/funckey.h"

#include <errno.h>
#include <stdlib.h>

#define MIXED (IDMAP_NONE - 1)
#define MOST 0x7fff /* ranks and distances that fit in one number */

bool groupshape_parse(const char *ranks, int size, struct groupshape *ret)
{
	long last = -1, stride = 0;
	int cnt = 0;
	bool even = true;

	for (const char *at = ranks; *at != '\0'; at++) {
		char *end;
		long rank;

		if (*at == '.')
			even = false;
		if (*at < '0' || *at > '9')
			continue;
		rank = strtol(at, &end, 10);
		stride = cnt == 1 ? rank - last : stride;
		even &= cnt < 2 || rank - last == stride;
		last = rank;
		cnt++;
		at = end - 1;
	}
	if (cnt < 2 || cnt > MOST)
		return false;
	if (size > cnt)
		cnt = MIN(size, MOST);
	*ret = (struct groupshape){ cnt, even && stride > 0 && stride <= MOST ? (int)stride : 0 };
	return true;
}

/* IDMAP_NONE: the ranks are not known. */
static uint32_t code_of(const struct groupshapes *shapes, const struct event_args *args)
{
	return args != NULL && args->group_ranks != 0 ? idmap_get(&shapes->known, args->group_ranks)
						      : IDMAP_NONE;
}

static int learn_group(struct groupshapes *shapes, const struct trace *trace,
		       const struct event_args *args)
{
	struct groupshape shape;

	if (args->group_ranks == 0 || idmap_get(&shapes->known, args->group_ranks) != IDMAP_NONE ||
	    !groupshape_parse(strtab_text(&trace->strings, args->group_ranks), args->group_size,
			      &shape))
		return 0;
	return idmap_set(&shapes->known, args->group_ranks,
			 (uint32_t)shape.size << 15 | (uint32_t)shape.stride);
}

int groupshapes_find(const struct trace *trace, struct groupshapes *ret)
{
	for (size_t i = 0; i < trace->event_cnt; i++) {
		const struct event *e = &trace->events[i];
		const struct event_args *args = event_args_borrow(trace, e);
		uint32_t code, before;

		if (e->kind != KIND_KERNEL || args == NULL || args->collective == 0)
			continue;
		if (learn_group(ret, trace, args) < 0)
			return -ENOMEM;
		code = code_of(ret, args);
		before = idmap_get(&ret->of_name, e->name);
		if (code == IDMAP_NONE || before == MIXED || before == code)
			continue;
		if (idmap_set(&ret->of_name, e->name, before == IDMAP_NONE ? code : MIXED) < 0)
			return -ENOMEM;
	}
	return 0;
}

void groupshapes_done(struct groupshapes *shapes)
{
	idmap_done(&shapes->of_name);
	idmap_done(&shapes->known);
}

int groupshapes_name(const struct groupshapes *shapes, const struct trace *trace,
		     const struct event *event, struct str *out)
{
	uint32_t code = code_of(shapes, event_args_borrow(trace, event));

	if (code == IDMAP_NONE || idmap_get(&shapes->of_name, event->name) != MIXED)
		return 0;
	funckey_canonical((enum event_kind)event->kind, event_name(trace, event), out);
	str_printf(out, " of %u ranks", code >> 15);
	if ((code & MOST) > 1)
		str_printf(out, ", %u apart", code & MOST);
	return 1;
}
