/* SPDX-License-Identifier: Apache-2.0 */
#include "report/stacks/stackframe.h"

#include "base/demangle.h"
#include "base/text/clean.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { TEMPLATE_MAX = 24 }; /* letters of template arguments that are kept */

void stacknames_done(struct stacknames *names)
{
	vec_foreach(text, &names->texts)
		free(*text);
	vec_done(&names->texts);
	idmap_done(&names->by_text);
}

/* C++ names. */

/* Behind the bracket that closes the one at p; the end of the text if none does. */
static const char *skip_group(const char *p)
{
	const char open = *p, close = open == '(' ? ')' : '>';
	size_t depth = 0;

	for (; *p != '\0'; p++) {
		const bool arrow = *p == '>' && p[-1] == '-';

		if (*p == open)
			depth++;
		else if (*p == close && !arrow && --depth == 0)
			return p + 1;
	}
	return p;
}

static bool ends_with(const char *text, size_t len, const char *end)
{
	const size_t end_len = strlen(end);

	return len >= end_len && memcmp(text + len - end_len, end, end_len) == 0;
}

/* A bracket that belongs to the name: of an operator, or of a namespace without a name. */
static bool is_kept(const struct str *out, size_t start, const char *p)
{
	const char *text = str_borrow(out) + start;
	const size_t len = out->len - start;

	if (*p == '(' && strncmp(p, "(anonymous namespace)", 21) == 0)
		return true;
	return ends_with(text, len, "operator") || (*p == '<' && ends_with(text, len, "operator<"));
}

static const char *append_group(struct str *out, size_t start, const char *p)
{
	const char *end = skip_group(p);

	if (*p == '<' && is_kept(out, start, p)) {
		str_append_char(out, '<');
		return p + 1;
	}
	if (*p == '(' && is_kept(out, start, p)) {
		end = strchr(p, ')');
		end = end != NULL ? end + 1 : p + strlen(p);
		str_append_len(out, p, (size_t)(end - p));
	} else if (*p == '<' && end - p <= TEMPLATE_MAX) {
		str_append_len(out, p, (size_t)(end - p));
	} else if (*p == '<') {
		str_append(out, "<...>");
	}
	return end;
}

void stackframe_shorten(struct str *out, const char *demangled)
{
	struct str name = { 0 };
	const char *p = demangled;

	while (*p != '\0' && name.error == 0) {
		const bool operator_word = ends_with(str_borrow(&name), name.len, "operator");

		if (*p == '(' || *p == '<') {
			p = append_group(&name, 0, p);
		} else if (*p == '[' && strncmp(p, "[clone", 6) == 0) {
			break;
		} else if (*p == ' ' && !operator_word && strncmp(p, " const", 6) != 0 &&
			   p[1] != '[' && p[1] != '&') {
			name.len = 0; /* a return type ends here */
			p++;
		} else if (*p == ' ' && !operator_word) {
			p += strncmp(p, " const", 6) == 0 ? 6 : 1;
		} else {
			str_append_char(&name, *p++);
		}
	}
	if (name.len > 0)
		str_append_len(out, name.data, name.len);
	else
		str_append(out, demangled);
	str_done(&name);
}

/* "symbol@@VERSION" has one, too. */
static char *readable(const char *function)
{
	struct str full = { 0 }, out = { 0 };

	demangle(function, &full);
	if (strncmp(function, "_Z", 2) == 0)
		stackframe_shorten(&out, str_borrow(&full));
	else
		clean_append(&out, function);
	str_done(&full);
	if (str_error(&out) < 0 || out.data == NULL) {
		str_done(&out);
		return NULL;
	}
	return out.data;
}

static const char *name_of(struct stacknames *names, const char *function)
{
	const uint64_t key = (uint64_t)(uintptr_t)function;
	const uint32_t index = idmap_get(&names->by_text, key);
	char *text;

	if (index != IDMAP_NONE)
		return names->texts.data[index];
	text = readable(function);
	if (text == NULL)
		return function;
	if (vec_push(&names->texts, text) < 0) {
		free(text);
		return function;
	}
	(void)!idmap_set(&names->by_text, key, (uint32_t)(names->texts.cnt - 1));
	return text;
}

/* Frames. */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

void stackframe_function(struct str *out, struct stacknames *names,
			 const struct stacks_frame *frame)
{
	if (frame->kind == STACKS_PYTHON)
		clean_append(out, frame->function != NULL ? frame->function : "?");
	else if (frame->function != NULL)
		str_append(out, name_of(names, frame->function));
	else
		str_printf(out, "%s!+0x%" PRIx64, frame->file != NULL ? last_part(frame->file) : "",
			   frame->offset);
}

/* From the package on: "torch/nn/modules/module.py", as readers of traces shorten it. */
static const char *short_path(const char *path)
{
	static const char *const FOLDERS[] = { "/site-packages/", "/dist-packages/",
					       "/lib/python3." };
	const char *found;

	for (size_t i = 0; i < ARRAY_SIZE(FOLDERS); i++) {
		found = strstr(path, FOLDERS[i]);
		if (found == NULL)
			continue;
		found = strchr(found + strlen(FOLDERS[i]) - 1, '/');
		if (found != NULL && found[1] != '\0')
			return found + 1;
	}
	return path;
}

void stackframe_append(struct str *out, struct stacknames *names, const struct stacks_frame *frame)
{
	stackframe_function(out, names, frame);
	if (frame->kind == STACKS_PYTHON && frame->file != NULL) {
		str_append(out, " (");
		clean_append(out, short_path(frame->file));
		str_printf(out, ":%u)", frame->line);
	} else if (frame->kind == STACKS_NATIVE && frame->function != NULL && frame->file != NULL) {
		str_append(out, " (");
		clean_append(out, last_part(frame->file));
		str_append(out, ")");
	}
}

/* Views. */

/* Where threads and programs begin: the same below every stack. */
static bool is_start(const struct stacks_frame *frame)
{
	static const char *const LIBRARIES[] = { "libc.so", "libc-2.", "libpthread", "libstdc++" };
	const char *name;

	if (frame->kind != STACKS_NATIVE || frame->file == NULL)
		return false;
	if (frame->function != NULL && strcmp(frame->function, "_start") == 0)
		return true;
	name = last_part(frame->file);
	for (size_t i = 0; i < ARRAY_SIZE(LIBRARIES); i++)
		if (strncmp(name, LIBRARIES[i], strlen(LIBRARIES[i])) == 0)
			return true;
	return false;
}

/* How many frames are left without those below the outermost Python frame, or the start. */
static size_t without_start(const struct stacks_thread *thread, bool *ret_python)
{
	size_t cnt = thread->frame_cnt;

	*ret_python = false;
	for (size_t i = thread->frame_cnt; i > 0; i--)
		if (thread->frames[i - 1].kind == STACKS_PYTHON) {
			*ret_python = true;
			return thread->mixed ? i : thread->frame_cnt;
		}
	while (cnt > 0 && is_start(&thread->frames[cnt - 1]))
		cnt--;
	return cnt > 0 ? cnt : thread->frame_cnt;
}

/*
 * Without `all`: of native frames those inside the innermost Python frame, and those between Python
 * frames that are not the interpreter's.
 */
size_t stackview_pick(const struct stackview *view, const struct stacks_thread *thread,
		      uint32_t *ret)
{
	const bool both = view->frames == STACKVIEW_BOTH;
	size_t cnt = 0, last;
	bool inside = false, python;

	last = without_start(thread, &python);
	if (view->all || (python && !both))
		last = thread->frame_cnt;
	for (size_t i = 0; i < last; i++) {
		const struct stacks_frame *frame = &thread->frames[i];
		const bool native = frame->kind == STACKS_NATIVE;

		inside = inside || !native;
		if (native ? view->frames == STACKVIEW_PYTHON : view->frames == STACKVIEW_NATIVE)
			continue;
		if (native && both && !view->all && inside && frame->interpreter && thread->mixed)
			continue;
		ret[cnt++] = (uint32_t)i;
	}
	return cnt;
}

/* States. */

const char *stackstate_word(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
		return "sleeping";
	case 'D':
		return "in uninterruptible sleep";
	case 'T':
		return "stopped by a signal";
	case 't':
		return "stopped by a tracer";
	case 'Z':
		return "a zombie";
	case 'X':
		return "dead";
	case 'I':
		return "idle";
	default:
		return "in an unknown state";
	}
}

static void append_wait(struct str *out, const struct stacks_thread *thread)
{
	if (thread->call[0] == '\0')
		return;
	str_printf(out, " in %s", thread->call);
	if (thread->owner_tid != 0)
		str_printf(out, " (mutex held by thread %u)", thread->owner_tid);
	if (thread->waits[0] == '\0')
		return;
	str_append(out, " (");
	clean_append(out, thread->waits);
	str_append(out, ")");
}

void stackstate_append(struct str *out, const struct stacks_thread *thread)
{
	str_append(out, stackstate_word(thread->state));
	append_wait(out, thread);
	if (thread->call[0] == '\0' && thread->state != 'R' && thread->channel[0] != '\0')
		str_printf(out, " in the kernel's %s", thread->channel);
	if (thread->gil == STACKS_GIL_HOLDS)
		str_append(out, ", holds the GIL");
	else if (thread->gil == STACKS_GIL_WAITS)
		str_append(out, ", waits for the GIL");
}
