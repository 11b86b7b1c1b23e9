/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing arrays. All growth of the program goes through vec_reserve_bytes():
 * the multiplication is checked and the capacity is raised only after the
 * allocation succeeded.
 *
 *	VEC(int) v = { 0 };
 *	if (vec_push(&v, 3) < 0) ...
 *	vec_done(&v);
 */
#pragma once

#include "base/base.h"

#define VEC(type)                \
	struct {                 \
		type *data;      \
		size_t cnt, cap; \
	}

/* The slow path of vec_reserve_bytes(): need > *cap. */
_must_check_ int vec_grow_bytes(void **data, size_t *cap, size_t need, size_t elem_size);

/*
 * Makes room for need elements of elem_size bytes. Returns 0 or -ENOMEM; on
 * failure *data and *cap are as before. Amortized O(1) per added element.
 */
_must_check_ static inline int vec_reserve_bytes(void **data, size_t *cap, size_t need,
						 size_t elem_size)
{
	return need <= *cap ? 0 : vec_grow_bytes(data, cap, need, elem_size);
}

#define vec_reserve(v, need) \
	vec_reserve_bytes((void **)&(v)->data, &(v)->cap, (need), sizeof(*(v)->data))

/* Appends value. Evaluates to 0 or -ENOMEM; the vector is unchanged on failure. */
#define vec_push(v, ...)                                       \
	({                                                     \
		int _vec_ret = vec_reserve((v), (v)->cnt + 1); \
		if (_vec_ret == 0)                             \
			(v)->data[(v)->cnt++] = (__VA_ARGS__); \
		_vec_ret;                                      \
	})

#define vec_done(v)                      \
	do {                             \
		free((v)->data);         \
		(v)->data = NULL;        \
		(v)->cnt = (v)->cap = 0; \
	} while (0)

/* &* drops the const that a const vector would put on the cursor itself. */
#define vec_foreach(p, v) \
	for (__typeof__(&*(v)->data) p = (v)->data; p != NULL && p < (v)->data + (v)->cnt; p++)
