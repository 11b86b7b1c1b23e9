/* SPDX-License-Identifier: Apache-2.0 */
#include "model/stalls/stallverdict.h"

const struct stall_class_about *stallclass_about(enum stall_class class)
{
	static const struct stall_class_about ABOUT[STALL_CLASS_CNT] = {
#define STALL_CLASS_ROW(name, word, kind, text) \
	[STALL_##name] = { (word), (text), STALL_KIND_##kind },
		STALL_CLASS_LIST(STALL_CLASS_ROW)
#undef STALL_CLASS_ROW
	};

	return &ABOUT[class];
}

void stallverdict_done(struct stall_verdict *verdict)
{
	vec_done(&verdict->findings);
	vec_done(&verdict->parts);
	vec_done(&verdict->accounts);
}
