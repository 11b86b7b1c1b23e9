/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the server's pages. Each page is complete as HTML; the script only filters and refreshes.
 * Pages begin with the answer: the verdict's sentence, what a repair gains, what to do.
 */
#pragma once

#include "base/str.h"
#include "serve/routes.h"

#include <jansson.h>

/* title: from outside. Opens the page up to the inside of <main>. */
void pageparts_open(struct str *out, const char *title);
/* script: the path of one more script, a constant; NULL: none. */
void pageparts_open_with(struct str *out, const char *title, const char *script);
void pageparts_close(struct str *out);

/* A whole page that says what went wrong. */
void pageparts_failure(struct str *out, const char *why);

/* The class of a verdict or of a job's state in the style sheet, a constant: "abnormal". */
const char *pageparts_tone(const char *verdict);

/* Words for a verdict: "SLOW, CAUSE NOT FOUND"; the verdict itself where it is not known. */
const char *pageparts_words(const char *verdict);

/*
 * The card with the answer of a report (a JSON document): its verdict, sentence, gain and advice.
 * name: what it is about, from outside; link (NULL: none): to the report.
 */
void pageparts_answer(struct str *out, const json_t *report, const char *name, const char *link);

/* The report that the path names, as JSON, for json_decref(). Returns 0 or -errno with a line in err. */
_must_check_ int pageparts_read_report(struct call *call, json_t **ret);

/*
 * Links between the pages of a report: id is that of the path, here ("report", "flame", "timeline") the page
 * that has them.
 */
void pageparts_report_nav(struct str *out, const char *id, const json_t *report, const char *here);

/* The same for a job without a report. */
void pageparts_card(struct str *out, const char *tone, const char *word, const char *sentence);

/* The findings of a report with evidence and advice; id: of the report, for links to its timeline; NULL: none. */
void pageparts_findings(struct str *out, const json_t *report, const char *id);

/* Messages of a child, the first eight lines, each without the name of the program. */
void pageparts_lines(struct str *out, const struct str *why);

/* "<div><dt>name</dt><dd>value</dd></div>"; name: a constant; nothing for an empty value. */
void pageparts_fact(struct str *out, const char *name, const char *value);

/* Percent-encodes a value of a query, or a part of a path. */
void pageparts_url(struct str *out, const char *text);

/* Content-Security-Policy of a page that comes from a file or another program. */
extern const char pageparts_document_policy[];

/* A page that was made elsewhere, with nav, which is safe HTML, in front of its own content. */
void pageparts_document(struct str *out, const struct str *page, const struct str *nav);
