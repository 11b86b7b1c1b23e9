/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/timeline/timeline_bins.h"

#include <errno.h>

static struct timebins_options options_of(const struct timeline_part *part,
					  const struct timeline_subject *subject)
{
	return (struct timebins_options){
		.ranks = subject->ranks,
		.rank_cnt = subject->cnt,
		.columns = (unsigned)part->columns,
		.from_ns = (int64_t)(part->from_s * NSEC_PER_SEC),
		.to_ns = (int64_t)(part->to_s * NSEC_PER_SEC),
		.findings = part->findings,
		.finding_cnt = part->finding_cnt,
		.window_wall_ns = { part->window_wall_ns[0], part->window_wall_ns[1] },
	};
}

int timeline_bins_write(const struct timeline_part *part, const struct timeline_subject *subject,
			FILE *out)
{
	const struct timebins_options options = options_of(part, subject);
	struct str text = { 0 };
	FILE *nothing = timebins_open_null();
	struct timebins *bins;
	int ret = -ENOMEM;

	timebins_choose(subject->ranks, subject->cnt, options.findings, options.finding_cnt);
	bins = timebins_new(&options);
	if (bins != NULL && nothing != NULL)
		ret = subject->draw(subject->arg, timebins_sink(bins), nothing);
	if (ret == 0)
		ret = timebins_print(bins, subject->results, &text);
	if (ret == 0 && fwrite(str_borrow(&text), 1, text.len, out) != text.len)
		ret = -EIO;
	if (ret == 0 && fflush(out) != 0)
		ret = -errno;
	if (nothing != NULL)
		(void)fclose(nothing);
	(void)timebins_free(bins);
	str_done(&text);
	return ret;
}
