/* SPDX-License-Identifier: Apache-2.0 */
#include "pyread/pylines.h"

/* Kinds of entries from 3.11 on; those below SHORT_END have one byte of columns. */
enum { SHORT_END = 10, ONE_LINE_END = 13, NO_COLUMNS = 13, LONG = 14, NO_LOCATION = 15 };

struct cursor {
	const unsigned char *at, *end;
};

static uint32_t take_varint(struct cursor *in)
{
	uint32_t value = 0, shift = 0;

	while (in->at < in->end) {
		const unsigned char byte = *in->at++;

		if (shift < 32)
			value |= (uint32_t)(byte & 0x3f) << shift;
		shift += 6;
		if ((byte & 0x40) == 0)
			break;
	}
	return value;
}

/* The sign is in the lowest bit. Unsigned: additions wrap, as damaged tables may require. */
static uint32_t take_signed(struct cursor *in)
{
	const uint32_t value = take_varint(in);

	return (value & 1) != 0 ? 0u - (value >> 1) : value >> 1;
}

/* Takes what follows an entry's first byte. Returns by how much its line is further. */
static uint32_t take_delta(struct cursor *in, unsigned int kind)
{
	uint32_t delta = 0;

	if (kind == NO_COLUMNS || kind == LONG)
		delta = take_signed(in);
	else if (kind >= SHORT_END && kind < ONE_LINE_END)
		delta = kind - SHORT_END;
	if (kind == LONG)
		for (int i = 0; i < 3; i++)
			(void)take_varint(in);
	return delta;
}

static uint32_t find_by_entries(uint32_t line, struct cursor in, uint32_t instr)
{
	uint64_t end = 0;
	uint32_t known = line;

	while (in.at < in.end) {
		const unsigned char first = *in.at++;
		const unsigned int kind = first >> 3 & 15;

		line += take_delta(&in, kind);
		while (in.at < in.end && (*in.at & 0x80) == 0) /* columns */
			in.at++;
		if (kind != NO_LOCATION)
			known = line;
		end += 2 * ((first & 7u) + 1);
		if (instr < end)
			break;
	}
	return known;
}

/* 3.10: pairs of the bytes that a line has, and how much further it is; -128: no line. */
static uint32_t find_by_ranges(uint32_t line, struct cursor in, uint32_t instr)
{
	uint64_t end = 0;

	for (; in.end - in.at >= 2; in.at += 2) {
		const int8_t delta = (int8_t)in.at[1];

		if (delta != INT8_MIN)
			line += (uint32_t)delta;
		end += in.at[0];
		if (instr < end)
			break;
	}
	return line;
}

/* 3.8, 3.9: pairs of how many bytes and lines further the next line begins. */
static uint32_t find_by_steps(uint32_t line, struct cursor in, uint32_t instr)
{
	uint64_t start = 0;

	for (; in.end - in.at >= 2; in.at += 2) {
		start += in.at[0];
		if (start > instr)
			break;
		line += (uint32_t)(int8_t)in.at[1];
	}
	return line;
}

uint32_t pylines_find(uint32_t minor, uint32_t first_line, const unsigned char *table, size_t len,
		      uint32_t instr)
{
	const struct cursor in = { table, table + len };

	if (minor < 10)
		return find_by_steps(first_line, in, instr);
	if (minor == 10)
		return find_by_ranges(first_line, in, instr);
	return find_by_entries(first_line, in, instr);
}
