/* SPDX-License-Identifier: Apache-2.0 */
#include "format/fingerprint/funckey.h"

#include <ctype.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* Length of the parameter list that ends a demangled name, 0 when there is none. */
static size_t parameter_list_len(const char *name, size_t len)
{
	size_t depth = 0;

	if (len == 0 || name[len - 1] != ')')
		return 0;
	for (size_t i = len; i > 0; i--) {
		if (name[i - 1] == ')')
			depth++;
		else if (name[i - 1] == '(' && --depth == 0)
			return i > 1 ? len - (i - 1) : 0;
	}
	return 0;
}

static const char *skip_hex(const char *p)
{
	p += 2;
	while (isxdigit((unsigned char)*p))
		p++;
	return p;
}

/* "0x7f12.." at the start of a word: "tile_160x128" has none. */
static bool address_begins(const char *name, const char *p)
{
	return p[0] == '0' && p[1] == 'x' && isxdigit((unsigned char)p[2]) &&
	       (p == name || !isalnum((unsigned char)p[-1]));
}

/* Copies name[len] without addresses and without numbers after '#'. */
static void append_without_noise(const char *name, size_t len, struct str *out)
{
	const char *p = name, *end = name + len;

	while (p < end) {
		/* Addresses and numbers to remove begin with one of these. */
		size_t plain = MIN(strcspn(p, " 0#"), (size_t)(end - p));

		str_append_len(out, p, plain);
		p += plain;
		if (p == end)
			break;
		if (strncmp(p, " at 0x", 6) == 0 && p + 6 < end) {
			p = skip_hex(p + 4);
		} else if (address_begins(name, p) && p + 2 < end) {
			p = skip_hex(p);
		} else if (p[0] == '#' && isdigit((unsigned char)p[1])) {
			for (p++; p < end && isdigit((unsigned char)*p); p++)
				;
		} else {
			str_append_char(out, *p++);
		}
	}
}

static void append_kernel(const char *name, struct str *out)
{
	size_t len;

	if (strncmp(name, "void ", 5) == 0)
		name += 5;
	len = strlen(name);
	len -= parameter_list_len(name, len);
	append_without_noise(name, len, out);
}

/* "dir/file.py(12): func": the position of "(12)", NULL for other names. */
static const char *python_line_begin(const char *name, const char **ret_end)
{
	for (const char *p = strchr(name, '('); p != NULL; p = strchr(p + 1, '(')) {
		const char *q = p + 1;

		while (isdigit((unsigned char)*q))
			q++;
		if (q > p + 1 && q[0] == ')' && q[1] == ':') {
			*ret_end = q + 1;
			return p;
		}
	}
	return NULL;
}

static void append_python(const char *name, bool keep_line, struct str *out)
{
	static const char module[] = "nn.Module: ";
	const char *end = NULL, *line = python_line_begin(name, &end);
	size_t len = strlen(name);

	if (strncmp(name, module, sizeof(module) - 1) == 0) {
		while (len > 0 && isdigit((unsigned char)name[len - 1]))
			len--;
		if (len > 0 && name[len - 1] == '_' && name[len] != '\0')
			len--;
		else
			len = strlen(name);
	}
	if (line == NULL || keep_line) {
		append_without_noise(name, len, out);
		return;
	}
	append_without_noise(name, (size_t)(line - name), out);
	append_without_noise(end, strlen(end), out);
}

void funckey_canonical(enum event_kind kind, const char *name, struct str *out)
{
	if (kind == KIND_KERNEL)
		append_kernel(name, out);
	else if (kind == KIND_PYTHON)
		append_python(name, false, out);
	else
		append_without_noise(name, strlen(name), out);
}

void funckey_display(enum event_kind kind, const char *name, struct str *out)
{
	if (kind == KIND_PYTHON)
		append_python(name, true, out);
	else
		funckey_canonical(kind, name, out);
}

void funckey_part(enum event_kind kind, const char *name, struct str *out)
{
	str_append_char(out, (char)('A' + kind));
	funckey_canonical(kind, name, out);
}

/* The key of a path is the hash of its parent's key and the hash of its own name. */
struct funckey funckey_under(const struct funckey *parent, const char *part)
{
	XXH128_hash_t own = XXH3_128bits(part, strlen(part)), hash;
	uint64_t words[4] = { 0, 0, htole64(own.high64), htole64(own.low64) };

	if (parent != NULL) {
		words[0] = htole64(parent->hi);
		words[1] = htole64(parent->lo);
	}
	hash = XXH3_128bits(words, sizeof(words));
	return (struct funckey){ hash.high64, hash.low64 };
}

void funckey_hex(struct funckey key, char ret[static 33])
{
	(void)snprintf(ret, 33, "%016llx%016llx", (unsigned long long)key.hi,
		       (unsigned long long)key.lo);
}
