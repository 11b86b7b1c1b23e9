/* SPDX-License-Identifier: Apache-2.0 */
#include "read/kineto/kident.h"

#include "read/kineto/scan_plain.h"

#include <errno.h>
#include <string.h>

#define DIGITS_MAX 18 /* always fit int64_t */

/* "25738", "stream 7" */
static bool text_number(struct scan_text text, int64_t *ret)
{
	static const char prefix[] = "stream ";
	bool negative;
	int64_t value = 0;

	if (text.len >= sizeof(prefix) && memcmp(text.text, prefix, sizeof(prefix) - 1) == 0) {
		text.text += sizeof(prefix) - 1;
		text.len -= sizeof(prefix) - 1;
	}
	negative = text.len > 1 && text.text[0] == '-';
	if (text.len == (size_t)negative || text.len > DIGITS_MAX)
		return false;
	for (size_t i = negative; i < text.len; i++) {
		if (text.text[i] < '0' || text.text[i] > '9')
			return false;
		value = value * 10 + (text.text[i] - '0');
	}
	*ret = negative ? -value : value;
	return true;
}

static int read_text(struct scan *scan, struct strtab *strings, struct ident *ret)
{
	struct scan_text text;
	int r = scan_string(scan, &text);

	if (r < 0)
		return r;
	if (text_number(text, &ret->num))
		return 1;
	/* Id 0 means "a number": "" ("Record Window End") gets a name of its own. */
	if (text.len == 0)
		text = (struct scan_text){ "(none)", strlen("(none)") };
	ret->num = -1;
	ret->text = strtab_intern(strings, text.text, text.len);
	return ret->text == STRTAB_NONE ? -ENOMEM : 1;
}

int kident_read(struct scan *scan, struct strtab *strings, struct ident *ret)
{
	struct number number;
	int c = scan_peek(scan), r;
	uint64_t plain;

	*ret = (struct ident){ 0 };
	if (c == '"')
		return read_text(scan, strings, ret);
	if (scan_plain_int(scan, &plain)) {
		ret->num = (int64_t)plain;
		return 1;
	}
	if (c != '-' && (c < '0' || c > '9'))
		return scan_skip(scan);
	r = scan_number(scan, &number);
	if (r < 0)
		return r;
	return number_id(&number, (uint64_t *)&ret->num) == 0;
}
