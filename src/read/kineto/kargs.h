/* SPDX-License-Identifier: Apache-2.0 */
/* The "args" of one Kineto event: the few of about fifty keys that the reader uses. */
#pragma once

#include "base/vec.h"
#include "model/event.h"
#include "read/kineto/scan_plain.h"
#include "read/kineto/shape.h"

/* Bits of kargs.has, for fields in which any value is possible. */
enum kargs_has {
	HAS_PYTHON_ID = 1u << 0,
	HAS_PYTHON_PARENT = 1u << 1,
	HAS_CORRELATION = 1u << 2,
};

/* Absent numbers are -1, absent texts 0. */
struct kargs {
	unsigned int has;
	bool touched; /* a field without a presence bit has been set since the last clear */
	uint64_t python_id, python_parent, correlation;
	int64_t bytes, in_elements, out_elements, group_size, seq;
	int64_t elements;    /* sum over "Input Dims" of products */
	int64_t grid, block; /* products */
	int64_t dtype_bytes; /* of "dtype" */
	int64_t type_bytes;  /* of the first known "Input type" */
	uint32_t collective, group, ranks, label, step_num;
	int64_t concrete_seq, concrete_size; /* torch <= 2.2 record_param_comms */
	uint32_t concrete_group;
};

/* A number of a counter event. */
struct kvalue {
	uint32_t key;
	double value;
};

struct kargs_reader {
	struct scan *scan;
	struct trace *trace;
	struct kargs now; /* of the current event; touched at first */
	struct shapes shapes;
	VEC(struct kvalue) values; /* numbers of the current event, when wanted */
	bool want_values;	   /* the event is a counter, or may still become one */
	bool want_types;	   /* the event is an annotation, or may become one */
	bool want_concrete;	   /* the event is record_param_comms, or may become it */
};

enum arg_type {
	ARG_ID,
	ARG_INT,
	ARG_TEXT,
	ARG_DTYPE,
	ARG_TYPES,
	ARG_DIMS,
	ARG_PRODUCT,
	ARG_CONCRETE
};

/* A key that the reader uses. */
struct karg {
	const char *key;
	uint8_t len;
	uint8_t type; /* enum arg_type */
	uint16_t off; /* in struct kargs */
	unsigned int has;
};

/* Reads the value of "args", any type. facts: of the event, for the log. 0 or -errno. */
_must_check_ int kargs_read(struct kargs_reader *reader, const struct shape_facts *facts,
			    struct kargs *ret);

/* Makes all absent. */
void kargs_clear(struct kargs *kargs);

/*
 * kargs_read() in parts, when the text is known: kargs_begin() for "args" and its brace, then
 * a value of a key (NULL: an ignored key), and kargs_rest() from any place between
 * members to behind the closing brace; first: no member was read. Not when values are
 * wanted.
 */
static inline void kargs_begin(struct kargs_reader *reader, struct kargs *ret)
{
	/* Most events are frames, which only have ids: no clearing needed. */
	if (ret->touched)
		kargs_clear(ret);
	ret->has = 0;
	reader->values.cnt = 0;
}

_must_check_ int kargs_value(struct kargs_reader *reader, const struct karg *arg,
			     struct kargs *kargs);

/*
 * As kargs_value() for the usual value of most keys, up to 18 digits. Consumes it and returns
 * true, or false with nothing consumed.
 */
static inline bool kargs_plain(struct kargs_reader *reader, const struct karg *arg,
			       struct kargs *kargs)
{
	uint64_t plain;

	/* An id is a uint64_t and an integer an int64_t: 18 digits fit both alike. */
	if ((arg->type != ARG_ID && arg->type != ARG_INT) || !scan_plain_int(reader->scan, &plain))
		return false;
	memcpy((char *)kargs + arg->off, &plain, sizeof(plain));
	kargs->has |= arg->has;
	kargs->touched |= arg->has == 0;
	return true;
}

_must_check_ int kargs_rest(struct kargs_reader *reader, bool first,
			    const struct shape_facts *facts, struct kargs *ret);
