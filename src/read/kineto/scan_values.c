/* SPDX-License-Identifier: Apache-2.0 */
#include "read/kineto/scan_values.h"

#include "read/kineto/scan_parts.h"
#include "read/kineto/scan_plain.h"
#include "read/kineto/unescape.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* The four digits of the \u escape at p. */
static int cross_hex4(struct scan *scan)
{
	scan->p += 2;
	for (int i = 0; i < 4; i++, scan->p++) {
		if (!isxdigit(*scan->p))
			return scan_fail(scan, "four hexadecimal digits after \\u");
	}
	return 0;
}

/* Checks the escape at p and steps over it. */
static int cross_escape(struct scan *scan)
{
	int ret = scan_ensure(scan, 6);

	if (ret < 0)
		return ret;
	switch (scan->p[1]) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
		scan->p += 2;
		return 0;
	case 'u':
		return cross_hex4(scan);
	default:
		scan->p++;
		return scan_fail(scan, "one of \" \\ / b f n r t u after a backslash in a string");
	}
}

enum string_flags {
	STRING_PLAIN = 0,
	STRING_ESCAPED = 1,
	STRING_BAD_UTF8 = 2,
};

/* One step over what stopped a run inside a string. Returns 0 or -errno. */
static int cross_stop(struct scan *scan, unsigned int *flags)
{
	size_t len;
	int ret;

	if (*scan->p == '\\') {
		*flags |= STRING_ESCAPED;
		return cross_escape(scan);
	}
	if (*scan->p >= 0x80) {
		ret = scan_ensure(scan, 4);
		if (ret < 0)
			return ret;
		len = utf8_len(scan->p, (size_t)(scan->end - scan->p));
		*flags |= len == 0 ? STRING_BAD_UTF8 : STRING_PLAIN;
		scan->p += len == 0 ? 1 : len;
		return 0;
	}
	if (scan->p == scan->end) {
		ret = scan_refill(scan);
		if (ret != 0)
			return MIN(ret, 0);
	}
	return scan_fail(scan, "the end of the string (control bytes must be escaped)");
}

/* From behind the opening quote to the closing one, which is not consumed. */
static int cross_string(struct scan *scan, unsigned int *ret_flags)
{
	unsigned int flags = STRING_PLAIN;

	for (;;) {
		int ret;

		scan->p = run_plain(scan->run, scan->p);
		if (*scan->p == '"')
			break;
		ret = cross_stop(scan, &flags);
		if (ret < 0)
			return ret;
	}
	*ret_flags = flags;
	return 0;
}

static int mend(struct scan *scan, const uint8_t *text, size_t len)
{
	scan->bad_utf8_cnt += unescape(&scan->mended, text, len);
	if (str_error(&scan->mended) < 0)
		return err_set(scan->err, ENOMEM, "%s: out of memory", scan->name);
	return 0;
}

int scan_string_slow(struct scan *scan, struct scan_text *ret)
{
	const uint8_t *text;
	unsigned int flags;
	size_t len;
	int r;

	scan->p++;
	scan->mark = scan->p;
	r = cross_string(scan, &flags);
	text = scan->mark;
	scan->mark = NULL;
	if (r < 0)
		return r;
	len = (size_t)(scan->p - text);
	if (len > SCAN_MAX_TOKEN_BYTES)
		return scan_token_too_long(scan, scan_offset(scan) - len);
	scan->p++;
	*ret = (struct scan_text){ (const char *)text, len };
	if (flags == STRING_PLAIN)
		return 0;
	r = mend(scan, text, len);
	*ret = (struct scan_text){ str_borrow(&scan->mended), scan->mended.len };
	return r;
}

/* Validates a string without keeping its text. */
static int skip_string(struct scan *scan)
{
	unsigned int flags;
	int ret;

	scan->p = run_plain(scan->run, scan->p + 1);
	if (*scan->p == '"') {
		scan->p++;
		return 0;
	}
	ret = cross_string(scan, &flags);
	if (ret < 0)
		return ret;
	scan->p++;
	scan->bad_utf8_cnt += (flags & STRING_BAD_UTF8) != 0;
	return 0;
}

int scan_key_slow(struct scan *scan, struct scan_text *ret)
{
	int c;

	if (*scan->p != '"')
		return scan_fail(scan, "a key in double quotes");
	c = scan_string(scan, ret);
	if (c < 0)
		return c;
	if (*scan->p == ':') {
		scan->p++;
		return 0;
	}
	/* Rare: a space before the colon. A refill would move the key: hold it. */
	scan->mark = ret->text == scan->mended.data ? NULL : (const uint8_t *)ret->text;
	c = scan_peek(scan);
	if (scan->mark != NULL)
		ret->text = (const char *)scan->mark;
	scan->mark = NULL;
	if (c < 0)
		return c;
	if (c != ':')
		return scan_fail(scan, "':' after a key");
	scan_next(scan);
	return 0;
}

/* Adds the digits from p on to *mant, which wraps: the caller counts them. */
static inline const uint8_t *cross_digits(const uint8_t *p, uint64_t *mant)
{
	uint64_t value = *mant;
	unsigned int digit;

	for (; (digit = (unsigned int)*p - '0') < 10; p++)
		value = value * 10 + digit;
	*mant = value;
	return p;
}

/* The exponent's digits, capped at 100000: beyond the range of any result. */
static const uint8_t *cross_exponent(const uint8_t *p, int32_t *ret)
{
	bool negative = *p == '-';
	int32_t value = 0;

	p += *p == '-' || *p == '+';
	for (; (uint8_t)(*p - '0') < 10; p++)
		value = MIN(value * 10 + (*p - '0'), 100000);
	*ret = negative ? -value : value;
	return p;
}

/* Parses the literal at start, up to the end of the window. NULL: scan->p is at the fault. */
static inline const uint8_t *parse_number(struct scan *scan, const uint8_t *start,
					  struct number *ret)
{
	const uint8_t *p = start + (*start == '-'), *from = p;
	int32_t exp10 = 0, frac_cnt = 0;
	size_t digit_cnt;
	uint64_t mant = 0;

	p = cross_digits(p, &mant);
	digit_cnt = (size_t)(p - from);
	if (p == from || (*from == '0' && p > from + 1)) {
		scan->p = p == from ? p : from + 1;
		return NULL;
	}
	if (*p == '.') {
		from = ++p;
		p = cross_digits(p, &mant);
		scan->p = p;
		if (p == from)
			return NULL;
		digit_cnt += (size_t)(p - from);
		frac_cnt = (int32_t)(p - from);
	}
	if ((*p | 0x20) == 'e') {
		from = p + 1;
		p = cross_exponent(from, &exp10);
		scan->p = p;
		if ((uint8_t)(p[-1] - '0') >= 10)
			return NULL;
	}
	ret->text = start;
	ret->len = (size_t)(p - start);
	ret->mant = mant;
	ret->negative = *start == '-';
	ret->cut = digit_cnt > 19;
	ret->exp10 = ret->cut ? exp10 : exp10 - frac_cnt;
	return p;
}

/* Crosses "NaN", "inf" or "Infinity", in any case; 0: it is none of them. */
static int cross_nonfinite(struct scan *scan)
{
	static const char *const words[] = { "nan", "infinity", "inf" };
	int ret = scan_ensure(scan, sizeof("infinity"));

	for (size_t i = 0; i < ARRAY_SIZE(words) && ret == 0; i++) {
		size_t len = strlen(words[i]);

		/* Zero bytes follow the window. */
		if (strncasecmp((const char *)scan->p, words[i], len) != 0 ||
		    isalpha(scan->p[len]) != 0)
			continue;
		scan->p += len;
		return 1;
	}
	return ret;
}

/* "-inf" at its 'i': a number that has no value of any type. */
static int negative_nonfinite(struct scan *scan, struct number *ret)
{
	static const uint8_t text[] = "-inf";
	int found = cross_nonfinite(scan);

	if (found < 0)
		return found;
	if (found == 0)
		return scan_fail(scan, "a number as JSON writes it");
	*ret = (struct number){ .text = text, .len = 4, .mant = 1, .exp10 = 100000 };
	return 0;
}

/* A literal that is invalid, or ends with the window and may continue after a refill. */
static __attribute__((noinline)) int number_slow(struct scan *scan, const uint8_t *start,
						 struct number *ret)
{
	const uint8_t *p = parse_number(scan, start, ret);

	while ((p != NULL ? p : scan->p) == scan->end && !scan->eof) {
		int r;

		scan->p = scan->mark = start;
		r = scan_refill(scan);
		start = scan->mark;
		scan->mark = NULL;
		if (r < 0)
			return r;
		p = parse_number(scan, start, ret);
	}
	if (p == NULL && *start == '-' && scan->p == start + 1)
		return negative_nonfinite(scan, ret);
	if (p == NULL)
		return scan_fail(scan, "a number as JSON writes it");
	if (ret->len > SCAN_MAX_TOKEN_BYTES)
		return scan_token_too_long(scan, scan_offset(scan));
	scan->p = p;
	return 0;
}

int scan_number(struct scan *scan, struct number *ret)
{
	const uint8_t *start = scan->p, *p = parse_number(scan, start, ret);

	if (p == NULL || p == scan->end)
		return number_slow(scan, start, ret);
	scan->p = p;
	return 0;
}

static int value_fail(struct scan *scan)
{
	return scan_fail(scan, "a value (an object, array, string, number, true, false or null)");
}

static int skip_word(struct scan *scan, const char *word)
{
	int ret = scan_ensure(scan, strlen(word));

	if (ret < 0)
		return ret;
	for (; *word != '\0'; word++, scan->p++) {
		if (*scan->p != (uint8_t)*word)
			return value_fail(scan);
	}
	return 0;
}

/* Writers of numbers without a value: not JSON, but they cost this value only. */
static int skip_nonfinite(struct scan *scan)
{
	int found = cross_nonfinite(scan);

	if (found < 0)
		return found;
	return found == 1 ? 0 : *scan->p == 'n' ? skip_word(scan, "null") : value_fail(scan);
}

static int skip_scalar(struct scan *scan, int c)
{
	struct number number;
	uint64_t value;

	switch (c) {
	case '"':
		return skip_string(scan);
	case 't':
		return skip_word(scan, "true");
	case 'f':
		return skip_word(scan, "false");
	case 'n':
	case 'N':
	case 'i':
	case 'I':
		return skip_nonfinite(scan);
	default:
		if (c == '-' || (c >= '0' && c <= '9'))
			return scan_plain_int(scan, &value) ? 0 : scan_number(scan, &number);
		return value_fail(scan);
	}
}

int scan_member_fail(struct scan *scan, int c, char closer)
{
	if (c < 0)
		return c;
	return scan_fail(scan, closer == '}' ? "',' or '}'" : "',' or ']'");
}

static int skip_key(struct scan *scan)
{
	int ret;

	if (*scan->p != '"')
		return scan_fail(scan, "a key in double quotes");
	ret = skip_string(scan);
	return ret < 0 ? ret : scan_expect(scan, ':', "':' after a key");
}

/* Closers of the containers around the next value. */
struct nest {
	unsigned int depth;
	char closer[SCAN_MAX_DEPTH];
};

/*
 * Goes on inside the innermost container: to its next value (1), or out of all
 * of them (0).
 */
static int nest_advance(struct scan *scan, struct nest *nest, bool first)
{
	while (nest->depth > 0) {
		char closer = nest->closer[nest->depth - 1];
		int ret = scan_member(scan, closer, &first);

		if (ret < 0)
			return ret;
		if (ret == 1)
			return closer == ']' ? 1 : (ret = skip_key(scan)) < 0 ? ret : 1;
		nest->depth--;
		first = false;
	}
	return 0;
}

/* A container at its opening bracket. */
static int skip_container(struct scan *scan)
{
	struct nest nest;
	int ret;

	nest.depth = 0;
	do {
		int c = scan_peek(scan);

		if (c < 0)
			return c;
		if (c == '{' || c == '[') {
			if (nest.depth == SCAN_MAX_DEPTH)
				return scan_fail(scan, "at most 512 levels of nesting");
			nest.closer[nest.depth++] = c == '{' ? '}' : ']';
			scan_next(scan);
			ret = nest_advance(scan, &nest, true);
		} else {
			ret = skip_scalar(scan, c);
			if (ret == 0)
				ret = nest_advance(scan, &nest, false);
		}
	} while (ret > 0);
	return ret;
}

/* An integer of digits or a string without escapes at p: the byte behind it, else NULL. */
static const uint8_t *cross_plain(const struct scan *scan, const uint8_t *p)
{
	const uint8_t *from = p;

	if (*p == '"') {
		p = run_plain(scan->run, p + 1);
		return *p == '"' ? p + 1 : NULL;
	}
	while ((unsigned int)*p - '0' < 10)
		p++;
	return p > from && (*from != '0' || p == from + 1) ? p : NULL;
}

/*
 * The usual array, "[[64, 1], [3], []]" or "["float", "Scalar"]", at p: the byte behind it.
 * NULL for anything else, including the end of the window: the general parser decides.
 */
static const uint8_t *cross_array(const struct scan *scan, const uint8_t *p, unsigned int depth)
{
	if (*++p == ']')
		return p + 1;
	for (;;) {
		if (*p == '[')
			p = depth > 0 ? cross_array(scan, p, depth - 1) : NULL;
		else
			p = cross_plain(scan, p);
		if (p == NULL)
			return NULL;
		if (*p == ']')
			return p + 1;
		if (*p != ',')
			return NULL;
		p += p[1] == ' ' ? 2 : 1;
	}
}

int scan_skip(struct scan *scan)
{
	const uint8_t *end;
	int c = scan_peek(scan);

	if (c < 0)
		return c;
	end = c == '[' ? cross_array(scan, scan->p, 2) : NULL;
	if (end != NULL) {
		scan->p = end;
		return 0;
	}
	return c == '{' || c == '[' ? skip_container(scan) : skip_scalar(scan, c);
}
