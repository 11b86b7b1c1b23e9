/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of the HTML pages: one file that contains its style and loads nothing, which its
 * content security policy also forbids. Pages are opened from mails and tickets, and the names in
 * them come from user code: a page has no script but one constant, which the policy allows by its
 * hash (report/flame/flamescript.h).
 * Source: HTML Living Standard, CSP level 3.
 */
#pragma once

#include "base/str.h"

struct document {
	const char *word;	 /* the verdict in one word */
	const char *tone;	 /* its class in the style sheet */
	const char *skip;	 /* what the link past the verdict leads to */
	const char *script_hash; /* base64 of a script's SHA-256; NULL: no script runs */
};

/*
 * Opens a page up to the facts below its verdict. document holds constants; sentence, the
 * verdict in full, is escaped and freed, and its error is copied to out.
 */
void document_open(struct str *out, const struct document *document, struct str *sentence);

/* Ends the main part and the page; hint: a constant with HTML for the footer. */
void document_close(struct str *out, const char *hint);
