/* SPDX-License-Identifier: Apache-2.0 */
#include "read/dumps/unpickle.h"

#include "base/vec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MEMO_SLACK 4096 /* picklers number what they remember 0, 1, 2, ... */

/* A value on the machine's stack. */
struct slot {
	json_t *value; /* NULL: a mark */
	uint32_t cell; /* of a container: index of its height, from 1 on */
	bool fresh;    /* a list or dict that is being filled: nothing else refers to it */
};

struct machine {
	const char *path;
	const unsigned char *data;
	size_t len, at, opcode_at;
	VEC(struct slot) stack;
	VEC(struct slot) memo;
	VEC(uint32_t) heights; /* of nested containers, in all places that a value has */
	struct err *err;
};

static int fail(struct machine *m, const char *expected, const char *found)
{
	(void)err_set(m->err, EINVAL, "%s: offset %zu: expected %s, found %s", m->path,
		      m->opcode_at, expected, found);
	return -EINVAL;
}

static int out_of_memory(struct machine *m)
{
	(void)err_set(m->err, ENOMEM, "%s: out of memory", m->path);
	return -ENOMEM;
}

/* --- input --- */

static int take(struct machine *m, size_t len, const unsigned char **ret)
{
	if (len > m->len - m->at)
		return fail(m, "a pickle", "its end in the middle of a value");
	*ret = m->data + m->at;
	m->at += len;
	return 0;
}

/* A little-endian number of up to 8 bytes. */
static int take_number(struct machine *m, size_t len, uint64_t *ret)
{
	const unsigned char *bytes = NULL;
	int error = take(m, len, &bytes);

	*ret = 0;
	for (size_t i = 0; error == 0 && i < len; i++)
		*ret |= (uint64_t)bytes[i] << (8 * i);
	return error;
}

/* --- stack --- */

static int push_slot(struct machine *m, struct slot slot)
{
	int error;

	if (m->stack.cnt >= UNPICKLE_STACK_MAX)
		error = fail(m, "at most 4194304 open values", "more");
	else
		error = vec_push(&m->stack, slot) < 0 ? out_of_memory(m) : 0;
	if (error < 0)
		json_decref(slot.value);
	return error;
}

static int push(struct machine *m, json_t *value)
{
	return value != NULL ? push_slot(m, (struct slot){ .value = value }) : out_of_memory(m);
}

/* Makes a slot of a new container, which it takes. */
static int new_container(struct machine *m, json_t *value, bool fresh, struct slot *ret)
{
	if (value == NULL || vec_push(&m->heights, 1) < 0) {
		json_decref(value);
		return out_of_memory(m);
	}
	*ret = (struct slot){ .value = value, .cell = (uint32_t)m->heights.cnt, .fresh = fresh };
	return 0;
}

/* A new list or dict. */
static int push_fresh(struct machine *m, json_t *value)
{
	struct slot slot;
	int error = new_container(m, value, true, &slot);

	return error == 0 ? push_slot(m, slot) : error;
}

/* The index of the first slot behind the latest mark. */
static int find_mark(struct machine *m, size_t *ret)
{
	for (size_t i = m->stack.cnt; i > 0; i--) {
		if (m->stack.data[i - 1].value == NULL) {
			*ret = i;
			return 0;
		}
	}
	return fail(m, "a mark before", "none");
}

static void drop_to(struct machine *m, size_t cnt)
{
	while (m->stack.cnt > cnt)
		json_decref(m->stack.data[--m->stack.cnt].value);
}

/* Checks that cnt values without a mark are on top. */
static int need(struct machine *m, size_t cnt)
{
	if (m->stack.cnt < cnt)
		return fail(m, "a value on the stack", "none");
	for (size_t i = 0; i < cnt; i++)
		if (m->stack.data[m->stack.cnt - 1 - i].value == NULL)
			return fail(m, "a value on the stack", "a mark");
	return 0;
}

static int raise_height(struct machine *m, const struct slot *to, const struct slot *child)
{
	const uint32_t inner = child->cell > 0 ? m->heights.data[child->cell - 1] : 0;
	uint32_t *height = &m->heights.data[to->cell - 1];

	*height = MAX(*height, inner + 1);
	return *height <= UNPICKLE_DEPTH_MAX
		       ? 0
		       : fail(m, "at most 32 containers in each other", "more");
}

/* --- containers --- */

static int append(struct machine *m, struct slot *list, const struct slot *item)
{
	int error = raise_height(m, list, item);

	if (error < 0)
		return error;
	return json_array_append(list->value, item->value) == 0 ? 0 : out_of_memory(m);
}

/* A key as text: an integer in decimal. */
static int set(struct machine *m, struct slot *dict, const struct slot *key,
	       const struct slot *value)
{
	const char *text = json_string_value(key->value);
	char number[32];
	int error = raise_height(m, dict, value);

	if (error < 0)
		return error;
	if (text == NULL && json_is_integer(key->value)) {
		(void)snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
			       json_integer_value(key->value));
		text = number;
	}
	if (text == NULL)
		return fail(m, "a dict with keys that are texts or integers", "another key");
	return json_object_set_nocheck(dict->value, text, value->value) == 0 ? 0 : out_of_memory(m);
}

/* The container under the values from `first` on. */
static int find_container(struct machine *m, size_t first, bool dict, struct slot **ret)
{
	struct slot *slot;

	if (first == 0 || m->stack.data[first - 1].value == NULL)
		return fail(m, "a container on the stack", "none");
	slot = &m->stack.data[first - 1];
	if (!slot->fresh || (dict ? !json_is_object(slot->value) : !json_is_array(slot->value)))
		return fail(m, dict ? "a new dict on the stack" : "a new list on the stack",
			    "another value");
	*ret = slot;
	return 0;
}

/* Moves the values from `first` on into the container below; bottom: what is left of the stack. */
static int fill(struct machine *m, size_t first, size_t bottom, bool dict)
{
	const size_t cnt = m->stack.cnt - first;
	struct slot *slot, *items = &m->stack.data[first];
	int error = find_container(m, bottom, dict, &slot);

	if (error == 0 && dict && cnt % 2 != 0)
		error = fail(m, "pairs of keys and values", "a key without a value");
	for (size_t i = 0; error == 0 && i < cnt; i += dict ? 2 : 1)
		error = dict ? set(m, slot, &items[i], &items[i + 1]) : append(m, slot, &items[i]);
	if (error == 0)
		drop_to(m, bottom);
	return error;
}

static int fill_from_mark(struct machine *m, bool dict)
{
	size_t first;
	int error = find_mark(m, &first);

	return error == 0 ? fill(m, first, first - 1, dict) : error;
}

static int fill_one(struct machine *m, bool dict)
{
	const size_t cnt = dict ? 2 : 1;
	int error = need(m, cnt);

	return error == 0 ? fill(m, m->stack.cnt - cnt, m->stack.cnt - cnt, dict) : error;
}

/* Replaces the values from `first` on by an array of them. */
static int make_tuple(struct machine *m, size_t first, size_t bottom)
{
	struct slot tuple;
	int error = new_container(m, json_array(), false, &tuple);

	if (error < 0)
		return error;
	for (size_t i = first; error == 0 && i < m->stack.cnt; i++)
		error = append(m, &tuple, &m->stack.data[i]);
	if (error < 0) {
		json_decref(tuple.value);
		return error;
	}
	drop_to(m, bottom);
	return push_slot(m, tuple);
}

static int tuple_from_mark(struct machine *m)
{
	size_t first;
	int error = find_mark(m, &first);

	return error == 0 ? make_tuple(m, first, first - 1) : error;
}

static int tuple_of(struct machine *m, size_t cnt)
{
	int error = need(m, cnt);

	return error == 0 ? make_tuple(m, m->stack.cnt - cnt, m->stack.cnt - cnt) : error;
}

/* --- numbers and texts --- */

static int push_signed(struct machine *m, size_t len)
{
	uint64_t number;
	int error = take_number(m, len, &number);

	if (error == 0 && len == 4)
		number = (uint64_t)(int64_t)(int32_t)number;
	return error == 0 ? push(m, json_integer((json_int_t)number)) : error;
}

/* Two's complement of any length; those beyond 64 bits become the nearest double. */
static int push_long(struct machine *m)
{
	const unsigned char *bytes = NULL;
	uint64_t len;
	double value = 0;
	int64_t number = 0;
	int error = take_number(m, 1, &len);

	if (error == 0)
		error = take(m, (size_t)len, &bytes);
	if (error < 0)
		return error;
	if (len > 8) {
		for (size_t i = len; i > 0; i--)
			value = value * 256 + (i == len ? (double)(signed char)bytes[i - 1]
							: (double)bytes[i - 1]);
		return push(m, json_real(value));
	}
	for (size_t i = 0; i < len; i++)
		number |= (int64_t)((uint64_t)bytes[i] << (8 * i));
	if (len > 0 && len < 8 && (bytes[len - 1] & 0x80) != 0)
		number |= (int64_t)(UINT64_MAX << (8 * len));
	return push(m, json_integer((json_int_t)number));
}

static int push_float(struct machine *m)
{
	const unsigned char *bytes = NULL;
	uint64_t bits = 0;
	double value;
	int error = take(m, 8, &bytes);

	if (error < 0)
		return error;
	for (size_t i = 0; i < 8; i++)
		bits = bits << 8 | bytes[i];
	memcpy(&value, &bits, sizeof(value));
	/* JSON has neither infinities nor NAN. */
	return push(m, value - value == 0 ? json_real(value) : json_null());
}

/* A text behind its length. What is no UTF-8 is kept as it is. */
static int push_text(struct machine *m, size_t length_bytes)
{
	const unsigned char *bytes = NULL;
	uint64_t len;
	json_t *text;
	int error = take_number(m, length_bytes, &len);

	if (error == 0)
		error = len > m->len ? fail(m, "a text inside the file", "a longer one")
				     : take(m, (size_t)len, &bytes);
	if (error < 0)
		return error;
	text = json_stringn_nocheck((const char *)bytes, (size_t)len);
	return push(m, text);
}

/* --- what is remembered --- */

static int remember(struct machine *m, uint64_t index)
{
	struct slot *top;
	int error = need(m, 1);

	if (error < 0)
		return error;
	if (index >= UNPICKLE_MEMO_MAX || index > m->memo.cnt + MEMO_SLACK)
		return fail(m, "values remembered in order", "a number far beyond");
	top = &m->stack.data[m->stack.cnt - 1];
	while (m->memo.cnt <= index)
		if (vec_push(&m->memo, (struct slot){ .value = NULL }) < 0)
			return out_of_memory(m);
	json_decref(m->memo.data[index].value);
	m->memo.data[index] = *top;
	(void)json_incref(top->value);
	return 0;
}

static int put(struct machine *m, size_t len)
{
	uint64_t index;
	int error = take_number(m, len, &index);

	return error == 0 ? remember(m, index) : error;
}

static int recall(struct machine *m, size_t len)
{
	struct slot slot;
	uint64_t index;
	int error = take_number(m, len, &index);

	if (error < 0)
		return error;
	if (index >= m->memo.cnt || m->memo.data[index].value == NULL)
		return fail(m, "a value that was remembered", "none of that number");
	slot = m->memo.data[index];
	slot.fresh = false;
	if (slot.cell > 0) {
		vec_foreach(open, &m->stack)
			if (open->fresh && open->value == slot.value)
				return fail(m, "a complete value", "a container in itself");
	}
	(void)json_incref(slot.value);
	return push_slot(m, slot);
}

/* --- the machine --- */

/* What opcodes of classes and calls are, for the message. */
static const char *name_of_refused(unsigned char opcode)
{
	static const struct {
		unsigned char opcode;
		const char *name;
	} refused[] = {
		{ 'c', "GLOBAL, which loads code" },
		{ 'R', "REDUCE, which calls code" },
		{ 'i', "INST, which calls code" },
		{ 'o', "OBJ, which calls code" },
		{ 0x81, "NEWOBJ, which calls code" },
		{ 0x92, "NEWOBJ_EX, which calls code" },
		{ 0x93, "STACK_GLOBAL, which loads code" },
		{ 'b', "BUILD, which changes an object" },
		{ 'P', "PERSID, which calls code" },
		{ 'Q', "BINPERSID, which calls code" },
		{ 0x82, "EXT1, which loads code" },
		{ 0x83, "EXT2, which loads code" },
		{ 0x84, "EXT4, which loads code" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (refused[i].opcode == opcode)
			return refused[i].name;
	return NULL;
}

static int refuse(struct machine *m, unsigned char opcode)
{
	const char *name = name_of_refused(opcode);
	char text[48];

	(void)snprintf(text, sizeof(text), "opcode 0x%02x", opcode);
	return fail(m, "a pickle of data alone", name != NULL ? name : text);
}

static int skip(struct machine *m, size_t len)
{
	const unsigned char *bytes = NULL;

	return take(m, len, &bytes);
}

static int run_scalar(struct machine *m, unsigned char opcode)
{
	switch (opcode) {
	case 'N':
		return push(m, json_null());
	case 0x88:
		return push(m, json_true());
	case 0x89:
		return push(m, json_false());
	case 'K':
		return push_signed(m, 1);
	case 'M':
		return push_signed(m, 2);
	case 'J':
		return push_signed(m, 4);
	case 0x8a:
		return push_long(m);
	case 'G':
		return push_float(m);
	case 0x8c:
	case 'U':
	case 'C':
		return push_text(m, 1);
	case 'X':
	case 'T':
	case 'B':
		return push_text(m, 4);
	case 0x8d:
	case 0x8e:
		return push_text(m, 8);
	default:
		return refuse(m, opcode);
	}
}

static int run_opcode(struct machine *m, unsigned char opcode)
{
	switch (opcode) {
	case 0x80:
		return skip(m, 1); /* the protocol */
	case 0x95:
		return skip(m, 8); /* a frame's length: what is in it follows */
	case '(':
		return push_slot(m, (struct slot){ .value = NULL });
	case '}':
		return push_fresh(m, json_object());
	case ']':
		return push_fresh(m, json_array());
	case ')':
		return tuple_of(m, 0);
	case 0x85:
	case 0x86:
	case 0x87:
		return tuple_of(m, (size_t)(opcode - 0x84));
	case 't':
		return tuple_from_mark(m);
	case 'e':
		return fill_from_mark(m, false);
	case 'u':
		return fill_from_mark(m, true);
	case 'a':
		return fill_one(m, false);
	case 's':
		return fill_one(m, true);
	case 'q':
		return put(m, 1);
	case 'r':
		return put(m, 4);
	case 0x94:
		return remember(m, m->memo.cnt);
	case 'h':
		return recall(m, 1);
	case 'j':
		return recall(m, 4);
	default:
		return run_scalar(m, opcode);
	}
}

/* Runs up to STOP, which leaves one value. */
static int run(struct machine *m, json_t **ret)
{
	for (;;) {
		const unsigned char *opcode = NULL;
		int error;

		m->opcode_at = m->at;
		error = take(m, 1, &opcode);
		if (error == 0 && *opcode == '.')
			break;
		if (error == 0)
			error = run_opcode(m, *opcode);
		if (error < 0)
			return error;
	}
	if (m->stack.cnt != 1 || m->stack.data[0].value == NULL)
		return fail(m, "one value at the end", "another number of values");
	*ret = json_incref(m->stack.data[0].value);
	return 0;
}

int unpickle(const char *path, const char *data, size_t len, json_t **ret, struct err *err)
{
	struct machine m = {
		.path = path, .data = (const unsigned char *)data, .len = len, .err = err
	};
	int error = run(&m, ret);

	drop_to(&m, 0);
	vec_foreach(slot, &m.memo)
		json_decref(slot->value);
	vec_done(&m.stack);
	vec_done(&m.memo);
	vec_done(&m.heights);
	return error;
}
