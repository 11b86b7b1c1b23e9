/* SPDX-License-Identifier: Apache-2.0 */
#include "center/wire/fpwire_walk.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

void wire_fail(struct wire *w, const char *expected, uint64_t found)
{
	if (w->error != 0)
		return;
	w->error = err_set(w->err, EINVAL, "message:%zu: expected %s, found %llu of %zu bytes",
			   w->field_off, expected, (unsigned long long)found, w->len);
}

/* The next cnt bytes, NULL when they are not there. */
static const uint8_t *read_bytes(struct wire *w, size_t cnt)
{
	const uint8_t *bytes = w->data + w->off;

	if (w->error != 0)
		return NULL;
	w->field_off = w->off;
	if (w->len - w->off < cnt) {
		wire_fail(w, "more bytes", w->len - w->off);
		return NULL;
	}
	w->off += cnt;
	return bytes;
}

static void fixed(struct wire *w, void *value, size_t cnt)
{
	const uint8_t *bytes;

	if (!wire_reads(w)) {
		str_append_len(w->out, value, cnt);
		return;
	}
	bytes = read_bytes(w, cnt);
	if (bytes != NULL)
		memcpy(value, bytes, cnt);
}

void wire_byte(struct wire *w, uint8_t *value)
{
	fixed(w, value, sizeof(*value));
}

void wire_u64(struct wire *w, uint64_t *value)
{
	uint64_t raw = htole64(*value);

	fixed(w, &raw, sizeof(raw));
	*value = le64toh(raw);
}

void wire_code(struct wire *w, uint16_t *code)
{
	uint16_t raw = htole16(*code);

	fixed(w, &raw, sizeof(raw));
	*code = le16toh(raw);
}

void wire_chars(struct wire *w, char *chars, size_t cnt)
{
	fixed(w, chars, cnt);
	if (w->error == 0 && memchr(chars, '\0', cnt) != NULL)
		wire_fail(w, "a text without NUL", 0);
}

static void write_uint(struct str *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		str_append_char(out, (char)(value | 0x80));
	str_append_char(out, (char)value);
}

/* One spelling for each number: no zeros on top, nothing beyond 64 bits. */
static uint64_t read_uint(struct wire *w)
{
	uint64_t value = 0;
	uint8_t byte;

	w->field_off = w->off;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (w->off == w->len) {
			wire_fail(w, "the end of a number", 0);
			return 0;
		}
		byte = w->data[w->off++];
		if ((shift == 63 && byte > 1) || (shift > 0 && byte == 0))
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	wire_fail(w, "a number of at most 64 bits in its shortest form", value);
	return 0;
}

void wire_uint(struct wire *w, uint64_t *value, uint64_t max, const char *expected)
{
	uint64_t found;

	if (w->error != 0)
		return;
	if (!wire_reads(w)) {
		write_uint(w->out, *value);
		return;
	}
	found = read_uint(w);
	if (w->error == 0 && found > max)
		wire_fail(w, expected, found);
	if (w->error == 0)
		*value = found;
}

void wire_near(struct wire *w, int64_t *value, int64_t base)
{
	/* 0, -1, 1, -2 become 0, 1, 2, 3; differences wrap around, and back. */
	uint64_t diff = (uint64_t)*value - (uint64_t)base;
	uint64_t folded = diff << 1 ^ (uint64_t) - (int64_t)(diff >> 63);

	wire_uint(w, &folded, UINT64_MAX, "a number");
	diff = folded >> 1 ^ (uint64_t) - (int64_t)(folded & 1);
	*value = (int64_t)(diff + (uint64_t)base);
}

void wire_within(struct wire *w, int64_t *value, int64_t base, int64_t low, int64_t high,
		 const char *expected)
{
	int64_t found = *value;

	wire_near(w, &found, base);
	if (w->error == 0 && (found < low || found > high))
		wire_fail(w, expected, (uint64_t)found);
	if (w->error == 0)
		*value = found;
}

void wire_time(struct wire *w, int64_t *ns)
{
	uint16_t code = code16_of_ns(*ns);

	wire_code(w, &code);
	if (w->error == 0 && code > CODE16_TOP)
		wire_fail(w, "a duration", code);
	if (w->error == 0)
		*ns = MIN(code16_ns(code), (int64_t)FPWIRE_TIME_MAX);
}

void wire_cnt(struct wire *w, size_t *cnt, size_t min_bytes, const char *expected)
{
	uint64_t wide = *cnt;

	wire_uint(w, &wide, wire_reads(w) ? (w->len - w->off) / min_bytes : UINT64_MAX, expected);
	if (w->error == 0)
		*cnt = wide;
}
