/* SPDX-License-Identifier: Apache-2.0 */
#include "model/rankset.h"

#include <errno.h>

#define MAX_RANK (1 << 20)

void rankset_format(struct str *out, const int *ranks, size_t cnt)
{
	for (size_t i = 0; i < cnt;) {
		size_t last = i;

		while (last + 1 < cnt && ranks[last + 1] == ranks[last] + 1)
			last++;
		str_printf(out, "%s%d", i > 0 ? "," : "", ranks[i]);
		if (last > i)
			str_printf(out, "-%d", ranks[last]);
		i = last + 1;
	}
}

static const char *parse_rank(const char *p, int *ret)
{
	long value = 0;
	const char *first = p;

	for (; *p >= '0' && *p <= '9' && value <= MAX_RANK; p++)
		value = value * 10 + (*p - '0');
	if (p == first || value >= MAX_RANK)
		return NULL;
	*ret = (int)value;
	return p;
}

static int int_cmp(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

static const char *parse_range(const char *p, rankset_vec *out, int *ret_error)
{
	int first, last;

	p = parse_rank(p, &first);
	last = first;
	if (p != NULL && *p == '-')
		p = parse_rank(p + 1, &last);
	if (p == NULL || last < first)
		return NULL;
	for (int rank = first; rank <= last; rank++) {
		*ret_error = vec_push(out, rank);
		if (*ret_error < 0)
			return NULL;
	}
	return p;
}

int rankset_parse(const char *text, rankset_vec *ret, struct err *err)
{
	rankset_vec out = { 0 };
	const char *p = text;
	int error = -EINVAL;
	size_t kept = 0;

	for (;;) {
		p = parse_range(p, &out, &error);
		if (p == NULL || (*p != ',' && *p != '\0'))
			break;
		if (*p == '\0') {
			qsort(out.data, out.cnt, sizeof(int), int_cmp);
			for (size_t i = 0; i < out.cnt; i++) {
				if (kept == 0 || out.data[kept - 1] != out.data[i])
					out.data[kept++] = out.data[i];
			}
			out.cnt = kept;
			*ret = out;
			return 0;
		}
		p++;
		error = -EINVAL;
	}
	vec_done(&out);
	if (error == -ENOMEM)
		return error;
	return err_set(err, EINVAL, "ranks '%s': expected numbers and ranges such as \"0-2,7\"",
		       text);
}
