/* SPDX-License-Identifier: Apache-2.0 */
#include "read/kineto/kargs.h"

#include "read/kineto/category.h"

#include <errno.h>
#include <string.h>

/* Series of one counter event. */
#define MAX_VALUES 64u
/* Lists of lists of tensors; deeper arrays are passed over. */
#define MAX_DIMS_DEPTH 8u

void kargs_clear(struct kargs *kargs)
{
	static const struct kargs absent = {
		.bytes = -1,
		.in_elements = -1,
		.out_elements = -1,
		.group_size = -1,
		.seq = -1,
		.elements = -1,
		.grid = -1,
		.block = -1,
		.dtype_bytes = -1,
		.type_bytes = -1,
		.concrete_seq = -1,
		.concrete_size = -1,
	};

	*kargs = absent;
}

#define ARG(key, type, field, has)                                             \
	{                                                                      \
		key, sizeof(key) - 1, type, offsetof(struct kargs, field), has \
	}

/* Sorted by length, so that most keys are refused by their length alone. */
static const struct karg args[] = {
	ARG("Seq", ARG_INT, seq, 0),
	ARG("name", ARG_TEXT, label, 0),
	ARG("grid", ARG_PRODUCT, grid, 0),
	ARG("block", ARG_PRODUCT, block, 0),
	ARG("bytes", ARG_INT, bytes, 0),
	ARG("dtype", ARG_DTYPE, dtype_bytes, 0),
	ARG("step_num", ARG_TEXT, step_num, 0),
	ARG("Python id", ARG_ID, python_id, HAS_PYTHON_ID),
	ARG("Input Dims", ARG_DIMS, elements, 0),
	ARG("Input type", ARG_TYPES, type_bytes, 0),
	ARG("Group size", ARG_INT, group_size, 0),
	ARG("correlation", ARG_ID, correlation, HAS_CORRELATION),
	ARG("In msg nelems", ARG_INT, in_elements, 0),
	ARG("Out msg nelems", ARG_INT, out_elements, 0),
	ARG("Concrete Inputs", ARG_CONCRETE, concrete_seq, 0),
	ARG("Collective name", ARG_TEXT, collective, 0),
	ARG("Python parent id", ARG_ID, python_parent, HAS_PYTHON_PARENT),
	ARG("Process Group Name", ARG_TEXT, group, 0),
	ARG("Process Group Ranks", ARG_TEXT, ranks, 0),
};

#define MAX_KEY 19u

/* First entry of args by length of the key. */
static const uint8_t args_of_len[MAX_KEY + 2] = {
	[0] = 0,   [1] = 0,   [2] = 0,	 [3] = 0,   [4] = 1,   [5] = 3,	  [6] = 6,
	[7] = 6,   [8] = 6,   [9] = 7,	 [10] = 8,  [11] = 11, [12] = 12, [13] = 12,
	[14] = 13, [15] = 14, [16] = 16, [17] = 17, [18] = 17, [19] = 18, [20] = 19,
};

static const struct karg *arg_find(const struct scan_text *key)
{
	if (key->len > MAX_KEY)
		return NULL;
	for (size_t i = args_of_len[key->len]; i < args_of_len[key->len + 1]; i++) {
		if (args[i].key[0] == key->text[0] && memcmp(args[i].key, key->text, key->len) == 0)
			return &args[i];
	}
	return NULL;
}

static int bad_value(struct kargs_reader *reader)
{
	reader->trace->drops.bad_value++;
	return scan_skip(reader->scan);
}

static bool is_number(int c)
{
	return c == '-' || (c >= '0' && c <= '9');
}

static void *field_of(struct kargs *kargs, const struct karg *arg)
{
	return (char *)kargs + arg->off;
}

static void store_number(struct kargs_reader *reader, const struct karg *arg,
			 const struct number *number, struct kargs *kargs)
{
	int ret = arg->type == ARG_ID ? number_id(number, field_of(kargs, arg))
				      : number_int64(number, field_of(kargs, arg));

	if (ret < 0)
		reader->trace->drops.bad_value++;
	else
		kargs->has |= arg->has;
}

/* Keeps a number of what is or may become a counter event. */
static int store_value(struct kargs_reader *reader, uint32_t key, const struct number *number)
{
	double value;

	if (reader->values.cnt >= MAX_VALUES) {
		reader->trace->drops.unsupported_overlap++;
		return 0;
	}
	if (number_double(number, &value) < 0) {
		reader->trace->drops.bad_value++;
		return 0;
	}
	return vec_push(&reader->values, (struct kvalue){ key, value });
}

static int read_text(struct kargs_reader *reader, uint32_t *ret)
{
	struct scan_text text;
	int r;

	if (scan_peek(reader->scan) != '"')
		return bad_value(reader);
	r = scan_string(reader->scan, &text);
	if (r < 0)
		return r;
	*ret = strtab_intern(&reader->trace->strings, text.text, text.len);
	return *ret == STRTAB_NONE ? -ENOMEM : 0;
}

static int read_dtype(struct kargs_reader *reader, int64_t *ret)
{
	struct scan_text text;
	int r, bytes;

	if (scan_peek(reader->scan) != '"')
		return bad_value(reader);
	r = scan_string(reader->scan, &text);
	if (r < 0)
		return r;
	bytes = dtype_bytes(text.text, text.len);
	if (bytes > 0 && *ret < 0)
		*ret = bytes;
	return 0;
}

/* ["float", "Scalar", ...]: elements that are no strings are passed over. */
static int read_types(struct kargs_reader *reader, int64_t *ret)
{
	bool first = true;
	int r;

	if (scan_peek(reader->scan) != '[')
		return bad_value(reader);
	scan_next(reader->scan);
	while ((r = scan_member(reader->scan, ']', &first)) > 0) {
		r = scan_peek(reader->scan) == '"' ? read_dtype(reader, ret)
						   : scan_skip(reader->scan);
		if (r < 0)
			return r;
	}
	return r;
}

/* Product of the numbers of one innermost array, -1 until there is one. */
static int multiply(struct kargs_reader *reader, int64_t *product)
{
	struct number number;
	uint64_t plain;
	int64_t value;
	int ret;

	if (scan_plain_int(reader->scan, &plain)) {
		value = (int64_t)plain;
	} else {
		ret = scan_number(reader->scan, &number);
		if (ret < 0)
			return ret;
		if (number_int64(&number, &value) < 0)
			value = -1;
	}
	if (value < 0 || __builtin_mul_overflow(*product < 0 ? 1 : *product, value, product)) {
		reader->trace->drops.bad_value++;
		*product = 0;
	}
	return 0;
}

static void add_product(struct kargs_reader *reader, int64_t *product, int64_t *sum)
{
	int64_t total;

	if (*product >= 0) {
		if (__builtin_add_overflow(*sum < 0 ? 0 : *sum, *product, &total))
			reader->trace->drops.bad_value++;
		else
			*sum = total;
	}
	*product = -1;
}

/*
 * Sum over all innermost arrays of the products of their numbers: the element
 * count of "Input Dims", in which tensor lists nest, and of a grid or block.
 */
static int read_dims(struct kargs_reader *reader, int64_t *ret)
{
	bool first[MAX_DIMS_DEPTH] = { true };
	int64_t product = -1;
	size_t depth = 1;

	*ret = -1;
	scan_next(reader->scan);
	while (depth > 0) {
		int r = scan_member(reader->scan, ']', &first[depth - 1]);

		if (r == 0) {
			add_product(reader, &product, ret);
			depth--;
			continue;
		}
		if (r > 0)
			r = scan_peek(reader->scan);
		if (r == '[' && depth < MAX_DIMS_DEPTH) {
			scan_next(reader->scan);
			add_product(reader, &product, ret);
			first[depth++] = true;
			r = 0;
		} else if (is_number(r)) {
			r = multiply(reader, &product);
		} else if (r >= 0) {
			r = bad_value(reader);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int64_t text_int(const struct scan_text *text)
{
	int64_t value = 0;

	if (text->len == 0 || text->len > 18)
		return -1;
	for (size_t i = 0; i < text->len; i++) {
		if (text->text[i] < '0' || text->text[i] > '9')
			return -1;
		value = value * 10 + (text->text[i] - '0');
	}
	return value;
}

/* ROCm writes the bytes of a copy's runtime call as text. */
static int read_int_text(struct kargs_reader *reader, int64_t *ret)
{
	struct scan_text text;
	int r = scan_string(reader->scan, &text);

	if (r < 0)
		return r;
	*ret = text_int(&text);
	reader->trace->drops.bad_value += *ret < 0;
	return 0;
}

/* record_param_comms up to torch 2.2: [1] sequence, [2] group, [7] world size. */
static int store_concrete(struct kargs_reader *reader, size_t idx, struct kargs *kargs)
{
	struct scan_text text;
	int r = scan_string(reader->scan, &text);

	if (r < 0)
		return r;
	if (idx == 1)
		kargs->concrete_seq = text_int(&text);
	else if (idx == 7)
		kargs->concrete_size = text_int(&text);
	else if (idx == 2 && text.len > 0)
		kargs->concrete_group = strtab_intern(&reader->trace->strings, text.text, text.len);
	return kargs->concrete_group == STRTAB_NONE ? -ENOMEM : 0;
}

static int read_concrete(struct kargs_reader *reader, struct kargs *kargs)
{
	bool first = true;
	size_t idx = 0;
	int r;

	if (!reader->want_concrete)
		return scan_skip(reader->scan);
	scan_next(reader->scan);
	while ((r = scan_member(reader->scan, ']', &first)) > 0) {
		bool wanted = idx == 1 || idx == 2 || idx == 7;

		r = wanted && scan_peek(reader->scan) == '"' ? store_concrete(reader, idx, kargs)
							     : scan_skip(reader->scan);
		if (r < 0)
			return r;
		idx++;
	}
	return r;
}

static int read_array_arg(struct kargs_reader *reader, const struct karg *arg, struct kargs *kargs)
{
	int c = scan_peek(reader->scan);

	/* Triton writes the grid of an operator as text: "grid(100,)". */
	if (c == '"' && arg->type == ARG_PRODUCT)
		return scan_skip(reader->scan);
	if (c != '[')
		return bad_value(reader);
	if (arg->type == ARG_CONCRETE)
		return read_concrete(reader, kargs);
	return read_dims(reader, field_of(kargs, arg));
}

/* A known key whose value is not a number. */
static int read_arg(struct kargs_reader *reader, const struct karg *arg, struct kargs *kargs)
{
	switch ((enum arg_type)arg->type) {
	case ARG_TEXT:
		return read_text(reader, field_of(kargs, arg));
	case ARG_DTYPE:
		return read_dtype(reader, field_of(kargs, arg));
	case ARG_TYPES:
		return !reader->want_types ? scan_skip(reader->scan)
					   : read_types(reader, field_of(kargs, arg));
	case ARG_DIMS:
	case ARG_PRODUCT:
	case ARG_CONCRETE:
		return read_array_arg(reader, arg, kargs);
	case ARG_ID:
	case ARG_INT:
		if (arg->type == ARG_INT && scan_peek(reader->scan) == '"')
			return read_int_text(reader, field_of(kargs, arg));
		/* "Python parent id" is null at the root of a stack. */
		return scan_peek(reader->scan) == 'n' ? scan_skip(reader->scan) : bad_value(reader);
	}
	return scan_skip(reader->scan);
}

static int read_number(struct kargs_reader *reader, const struct karg *arg, uint32_t key,
		       struct kargs *kargs)
{
	bool wanted = arg != NULL && (arg->type == ARG_ID || arg->type == ARG_INT);
	struct number number;
	int ret;

	if (wanted && !reader->want_values && kargs_plain(reader, arg, kargs))
		return 0;
	ret = scan_number(reader->scan, &number);
	if (ret < 0)
		return ret;
	if (wanted)
		store_number(reader, arg, &number, kargs);
	else if (arg != NULL && !reader->want_values)
		reader->trace->drops.bad_value++;
	return reader->want_values ? store_value(reader, key, &number) : 0;
}

static int read_value(struct kargs_reader *reader, const struct karg *arg, uint32_t key,
		      struct kargs *kargs)
{
	int c = scan_peek(reader->scan);

	kargs->touched = true;
	if (is_number(c) && (arg != NULL || reader->want_values))
		return read_number(reader, arg, key, kargs);
	if (c < 0)
		return c;
	return arg != NULL ? read_arg(reader, arg, kargs) : scan_skip(reader->scan);
}

int kargs_value(struct kargs_reader *reader, const struct karg *arg, struct kargs *kargs)
{
	return read_value(reader, arg, 0, kargs);
}

static int read_member(struct kargs_reader *reader, const struct shape_facts *facts,
		       struct kargs *kargs)
{
	const struct karg *arg;
	struct scan_text key;
	uint32_t key_id = 0;
	int ret = scan_key(reader->scan, &key);

	if (ret < 0)
		return ret;
	arg = arg_find(&key);
	if (reader->want_values) {
		key_id = strtab_intern(&reader->trace->strings, key.text, key.len);
		if (key_id == STRTAB_NONE)
			return -ENOMEM;
	}
	ret = scan_peek(reader->scan);
	if (ret < 0)
		return ret;
	shapes_log_value(&reader->shapes, arg != NULL ? SHAPE_ARG : SHAPE_OTHER, arg, facts);
	ret = read_value(reader, arg, key_id, kargs);
	shapes_log_next(&reader->shapes);
	return ret;
}

int kargs_rest(struct kargs_reader *reader, bool first, const struct shape_facts *facts,
	       struct kargs *ret)
{
	int r;

	while ((r = scan_member(reader->scan, '}', &first)) > 0) {
		r = read_member(reader, facts, ret);
		if (r < 0)
			return r;
	}
	shapes_log_args(&reader->shapes, false);
	return r;
}

int kargs_read(struct kargs_reader *reader, const struct shape_facts *facts, struct kargs *ret)
{
	int c = scan_peek(reader->scan);

	kargs_begin(reader, ret);
	if (c < 0)
		return c;
	if (c != '{') {
		shapes_log_drop(&reader->shapes);
		return c == 'n' ? scan_skip(reader->scan) : bad_value(reader);
	}
	scan_next(reader->scan);
	shapes_log_args(&reader->shapes, true);
	return kargs_rest(reader, true, facts, ret);
}
