/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/funckey.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

int cct_init(struct cct *cct)
{
	*cct = (struct cct){ 0 };
	return strtab_init(&cct->names);
}

void cct_done(struct cct *cct)
{
	strtab_done(&cct->names);
	vec_done(&cct->nodes);
	idmap_done(&cct->by_parent);
	idmap_done(&cct->canonical);
	idmap_done(&cct->display);
	str_done(&cct->scratch);
}

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

/* "0x7f12.." that begins a word: the middle of "tile_160x128" is none. */
static bool address_begins(const char *name, const char *p)
{
	return p[0] == '0' && p[1] == 'x' && isxdigit((unsigned char)p[2]) &&
	       (p == name || !isalnum((unsigned char)p[-1]));
}

/* Copies name[len] without addresses and without numbers behind '#'. */
static void append_without_noise(const char *name, size_t len, struct str *out)
{
	const char *p = name, *end = name + len;

	while (p < end) {
		/* Noise begins with one of these. */
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

/* "dir/file.py(12): func": the place of "(12)", NULL for other names. */
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

/* The key of a path is the hash of its parent's key and the hash of its own name. */
static struct funckey key_under(const struct cct *cct, uint32_t parent, const char *canonical)
{
	XXH128_hash_t own = XXH3_128bits(canonical, strlen(canonical)), hash;
	uint64_t words[4] = { 0, 0, htole64(own.high64), htole64(own.low64) };

	if (parent != CCT_ROOT) {
		words[0] = htole64(cct->nodes.data[parent].key.hi);
		words[1] = htole64(cct->nodes.data[parent].key.lo);
	}
	hash = XXH3_128bits(words, sizeof(words));
	return (struct funckey){ hash.high64, hash.low64 };
}

static uint32_t cct_intern(struct cct *cct, enum event_kind kind, const char *name, bool display)
{
	cct->scratch.len = 0;
	if (display) {
		funckey_display(kind, name, &cct->scratch);
	} else {
		/* The kind letter keeps an operator and a Python function of one name apart. */
		str_append_char(&cct->scratch, (char)('A' + kind));
		funckey_canonical(kind, name, &cct->scratch);
	}
	if (str_error(&cct->scratch) < 0)
		return STRTAB_NONE;
	return strtab_intern(&cct->names, str_borrow(&cct->scratch), cct->scratch.len);
}

static uint32_t cct_find_or_add(struct cct *cct, uint32_t parent, enum event_kind kind,
				uint32_t canonical, uint32_t display)
{
	uint64_t edge = (uint64_t)parent << 32 | canonical;
	uint32_t node = idmap_get(&cct->by_parent, edge);

	if (node != IDMAP_NONE)
		return node;
	node = (uint32_t)cct->nodes.cnt;
	if (idmap_set(&cct->by_parent, edge, node) < 0)
		return FRAME_NONE;
	if (vec_push(&cct->nodes,
		     (struct cct_node){
			     .key = key_under(cct, parent, strtab_text(&cct->names, canonical)),
			     .parent = parent,
			     .name = display,
			     .kind = (uint8_t)kind,
		     }) < 0)
		return FRAME_NONE;
	return node;
}

uint32_t cct_child(struct cct *cct, uint32_t parent, enum event_kind kind, uint32_t raw_id,
		   const char *name)
{
	uint64_t raw = (uint64_t)kind << 32 | raw_id;
	uint32_t canonical = idmap_get(&cct->canonical, raw);
	uint32_t display = idmap_get(&cct->display, raw);

	if (canonical == IDMAP_NONE || display == IDMAP_NONE) {
		canonical = cct_intern(cct, kind, name, false);
		display = cct_intern(cct, kind, name, true);
		if (canonical == STRTAB_NONE || display == STRTAB_NONE ||
		    idmap_set(&cct->canonical, raw, canonical) < 0 ||
		    idmap_set(&cct->display, raw, display) < 0)
			return FRAME_NONE;
	}
	return cct_find_or_add(cct, parent, kind, canonical, display);
}

uint32_t cct_child_text(struct cct *cct, uint32_t parent, enum event_kind kind, const char *name)
{
	uint32_t canonical = cct_intern(cct, kind, name, false);
	uint32_t display = cct_intern(cct, kind, name, true);

	if (canonical == STRTAB_NONE || display == STRTAB_NONE)
		return FRAME_NONE;
	return cct_find_or_add(cct, parent, kind, canonical, display);
}

void funckey_hex(struct funckey key, char ret[static 33])
{
	(void)snprintf(ret, 33, "%016llx%016llx", (unsigned long long)key.hi,
		       (unsigned long long)key.lo);
}
