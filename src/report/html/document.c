/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/document.h"

#include "report/html/markup.h"
#include "report/html/style.h"

static const char head_begin[] =
	"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	"style-src 'unsafe-inline'; ";

static const char head_end[] =
	"base-uri 'none'; form-action 'none'\">\n"
	"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
	"<meta name=\"referrer\" content=\"no-referrer\">\n"
	"<meta name=\"generator\" content=\"perftracker\">\n";

void document_open(struct str *out, const struct document *document, struct str *sentence)
{
	str_append(out, head_begin);
	if (document->script_hash != NULL)
		str_printf(out, "script-src 'sha256-%s'; ", document->script_hash);
	str_append(out, head_end);
	str_printf(out, "<title>%s: ", document->word);
	markup_text(out, markup_borrow(out, sentence));
	str_append(out, "</title>\n<style>\n");
	str_append(out, report_style);
	str_printf(out,
		   "</style></head>\n<body><a class=\"skip\" href=\"#main\">Skip to the %s</a>\n"
		   "<header><div class=\"verdict %s\"><p class=\"word\">%s</p><h1>",
		   document->skip, document->tone, document->word);
	markup_take(out, sentence);
	str_append(out, "</h1></div>\n");
}

void document_close(struct str *out, const char *hint)
{
	str_printf(out, "</main>\n<footer>Made by perftracker. %s</footer>\n</body></html>\n",
		   hint);
}
