/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the HTML pages share: one file with its style in it, no script, nothing loaded
 * from elsewhere, which the page's own content security policy also forbids. It is opened
 * from mails and tickets, and its names come from user code.
 * Source: HTML Living Standard, CSP level 3.
 */
#pragma once

#include "base/str.h"

struct document {
	const char *word; /* the verdict in one word */
	const char *tone; /* its class in the style sheet */
	const char *skip; /* what the link past the verdict leads to */
};

/*
 * Opens a page up to the facts below its verdict. All but sentence are words of ours;
 * sentence, the verdict in full, is freed, and an error of it sticks to out.
 */
void document_open(struct str *out, const struct document *document, struct str *sentence);

/* Ends the main part and the page; hint: what its reader should know, HTML of ours. */
void document_close(struct str *out, const char *hint);
