/* SPDX-License-Identifier: Apache-2.0 */
#include "base/demangle.h"

#include <ctype.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <string.h>

#define REPEAT_MAX 32

typedef char *(*demangle_fn)(const char *name, char *buffer, size_t *len, int *ret_status);

/* Length of the name at *p, and moves *p behind it; 0: no name. */
static size_t source_name(const char **p, const char **ret_name)
{
	size_t len = 0;

	while (isdigit((unsigned char)**p) && len < 10000)
		len = len * 10 + (size_t)(*(*p)++ - '0');
	*ret_name = *p;
	if (len == 0 || strnlen(*p, len) < len)
		return 0;
	*p += len;
	return len;
}

/*
 * Appends the parts of a nested name, up to template arguments in its middle. Returns the end of
 * what was parsed, NULL when there is no name.
 */
static const char *append_plain(const char *name, struct str *out)
{
	const char *p = name + 2, *part;
	bool nested, any = false;
	size_t len;

	if (strncmp(name, "_Z", 2) != 0)
		return NULL;
	nested = *p == 'N';
	p += nested;
	if (strncmp(p, "St", 2) == 0) {
		str_append(out, "std");
		p += 2;
		any = true;
	}
	while (isdigit((unsigned char)*p) && (len = source_name(&p, &part)) > 0) {
		bool anonymous = strncmp(part, "_GLOBAL__N_", 11) == 0;

		str_append(out, any ? "::" : "");
		if (anonymous)
			str_append(out, "(anonymous namespace)");
		else
			str_append_len(out, part, len);
		any = true;
		if (!nested)
			break;
	}
	return any ? p : NULL;
}

bool demangle_plain(const char *name, struct str *out)
{
	return append_plain(name, out) != NULL;
}

/* FNV-1a: the same wherever it is computed. */
static uint64_t hash_name(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	return hash;
}

/* The hash keeps kernels of one template with different arguments apart. */
static void append_short(const char *name, struct str *out)
{
	const char *end = append_plain(name, out);

	if (end == NULL)
		str_append(out, name);
	else if (*end == 'I')
		str_printf(out, "<~%016" PRIx64 ">", hash_name(name));
}

/*
 * Each substitution ("S_", "T_") of a mangled name can double the length of the output. Real
 * kernels have fewer of them than this.
 */
static bool is_harmless(const char *name)
{
	size_t cnt = 0;

	for (const char *p = name; *p != '\0'; p++) {
		const char *q = p + 1;

		while (isdigit((unsigned char)*q) || isupper((unsigned char)*q))
			q++;
		cnt += (*p == 'S' || *p == 'T') && *q == '_';
	}
	return cnt <= REPEAT_MAX;
}

static demangle_fn find_demangler(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY);
	void *symbol = library != NULL ? dlsym(library, "__cxa_demangle") : NULL;
	demangle_fn function;

	memcpy(&function, &symbol, sizeof(function));
	return function;
}

void demangle(const char *name, struct str *out)
{
	bool mangled = strncmp(name, "_Z", 2) == 0;
	demangle_fn function = mangled && is_harmless(name) ? find_demangler() : NULL;
	int status = -1;
	char *text = function != NULL ? function(name, NULL, NULL, &status) : NULL;

	if (text != NULL && status == 0)
		str_append(out, text);
	else
		append_short(name, out);
	free(text);
}
