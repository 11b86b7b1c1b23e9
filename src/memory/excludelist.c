/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/excludelist.h"

#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* More digits do not fit a number; such a name stands by itself. */
#define DIGITS_MAX 9u

/* A name as what is before its last digits, and these. */
struct node {
	const char *name;
	size_t prefix_len, digit_cnt; /* digit_cnt 0: no number */
	unsigned long number;
};

typedef VEC(struct node) node_list;

static bool is_host_name(const char *name)
{
	static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789.-_";

	return name[0] != '\0' && name[0] != '-' && strspn(name, known) == strlen(name);
}

static struct node parse(const char *name)
{
	size_t len = strlen(name), digits = 0;

	while (digits < len && name[len - digits - 1] >= '0' && name[len - digits - 1] <= '9')
		digits++;
	/* The last number of an address or of a domain is none of the node. */
	if (digits > DIGITS_MAX || digits == len || strchr(name, '.') != NULL)
		digits = 0;
	return (struct node){ .name = name,
			      .prefix_len = len - digits,
			      .digit_cnt = digits,
			      .number = digits > 0 ? strtoul(name + len - digits, NULL, 10) : 0 };
}

static int order(const void *a, const void *b)
{
	const struct node *x = a, *y = b;
	int by_prefix = strncmp(x->name, y->name, MIN(x->prefix_len, y->prefix_len));

	if (by_prefix != 0)
		return by_prefix;
	if (x->prefix_len != y->prefix_len)
		return x->prefix_len < y->prefix_len ? -1 : 1;
	if (x->digit_cnt != y->digit_cnt)
		return x->digit_cnt < y->digit_cnt ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static int collect(const char *const *names, size_t cnt, node_list *ret)
{
	for (size_t i = 0; i < MIN(cnt, (size_t)EXCLUDELIST_HOSTS_MAX); i++) {
		if (is_host_name(names[i]) && vec_push(ret, parse(names[i])) < 0)
			return -ENOMEM;
	}
	if (ret->cnt > 0)
		qsort(ret->data, ret->cnt, sizeof(*ret->data), order);
	return 0;
}

static bool is_of_group(const struct node *first, const struct node *node)
{
	return node->digit_cnt > 0 && node->digit_cnt == first->digit_cnt &&
	       node->prefix_len == first->prefix_len &&
	       memcmp(node->name, first->name, first->prefix_len) == 0;
}

/* "03-05,12" */
static void append_numbers(const struct node *nodes, size_t cnt, struct str *out)
{
	for (size_t i = 0; i < cnt;) {
		size_t end = i + 1;

		while (end < cnt && nodes[end].number == nodes[end - 1].number + 1)
			end++;
		str_printf(out, "%s%s", i > 0 ? "," : "", nodes[i].name + nodes[i].prefix_len);
		if (end - i > 1)
			str_printf(out, "-%s", nodes[end - 1].name + nodes[end - 1].prefix_len);
		i = end;
	}
}

static void append_group(const struct node *nodes, size_t cnt, struct str *out)
{
	if (cnt == 1) {
		str_append(out, nodes[0].name);
		return;
	}
	str_printf(out, "%.*s[", (int)nodes[0].prefix_len, nodes[0].name);
	append_numbers(nodes, cnt, out);
	str_append_char(out, ']');
}

int excludelist_slurm(const char *const *names, size_t cnt, struct str *out)
{
	node_list nodes = { 0 };
	int ret = collect(names, cnt, &nodes);

	for (size_t i = 0; ret == 0 && i < nodes.cnt;) {
		size_t end = i + 1;

		while (end < nodes.cnt && is_of_group(&nodes.data[i], &nodes.data[end]))
			end++;
		str_append(out, i > 0 ? "," : "--exclude=");
		append_group(&nodes.data[i], end - i, out);
		i = end;
	}
	vec_done(&nodes);
	return ret < 0 ? ret : str_error(out);
}

int excludelist_kubernetes(const char *const *names, size_t cnt, struct str *out)
{
	node_list nodes = { 0 };
	int ret = collect(names, cnt, &nodes);

	if (ret == 0 && nodes.cnt > 0)
		str_append(out,
			   "# Names as the workers gave them: of nodes, if pods use hostNetwork.\n"
			   "affinity:\n"
			   "  nodeAffinity:\n"
			   "    requiredDuringSchedulingIgnoredDuringExecution:\n"
			   "      nodeSelectorTerms:\n"
			   "      - matchExpressions:\n"
			   "        - key: kubernetes.io/hostname\n"
			   "          operator: NotIn\n"
			   "          values:\n");
	for (size_t i = 0; ret == 0 && i < nodes.cnt; i++)
		str_printf(out, "          - \"%s\"\n", nodes.data[i].name);
	vec_done(&nodes);
	return ret < 0 ? ret : str_error(out);
}
