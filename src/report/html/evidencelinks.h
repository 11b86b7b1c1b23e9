/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links from the numbers in a finding's evidence to what they are of on the same page: the numbers of a rank
 * (#rank-2), when others waited for it (#late-2), one iteration (#lane-2), all ranks (#workers). A line of evidence is
 * text, so its words decide: a rank that it names before a number, else the first rank of the finding; "peers" and a
 * finding about all ranks lead to all of them; waiting leads to the picture of it.
 */
#pragma once

#include "model/report.h"

/* Ranks with numbers in the table at the end of the page. */
#define EVIDENCELINKS_ROWS_MAX 200

/* Appends a line of evidence, escaped, its numbers with links. Long lines have none, and are cut. */
void evidencelinks_line(struct str *out, const struct report *report, const struct finding *finding,
			const char *line);

/* Appends links to all that the page has of the finding's first rank; nothing for a finding about all. */
void evidencelinks_places(struct str *out, const struct report *report,
			  const struct finding *finding);
