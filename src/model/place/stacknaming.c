/* SPDX-License-Identifier: Apache-2.0 */
#include "model/place/stacknaming.h"

#include "base/demangle.h"
#include "base/text/pythoncode.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* The text behind the last "DIR/" for a DIR that sys.path is known to have; NULL: none. */
static const char *behind_packages(const char *path)
{
	static const char *const folders[] = { "/site-packages/", "/dist-packages/" };
	const char *found = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		for (const char *p = strstr(path, folders[i]); p != NULL;
		     p = strstr(p + 1, folders[i]))
			found = p + strlen(folders[i]);
	return found;
}

/* ".../lib/python3.12/threading.py" */
static const char *behind_python(const char *path)
{
	const char *found = NULL;

	for (const char *p = strstr(path, "/lib/python"); p != NULL;
	     p = strstr(p + 1, "/lib/python")) {
		const char *q = p + strlen("/lib/python");

		if (!isdigit((unsigned char)*q))
			continue;
		q += strspn(q, "0123456789.t");
		if (*q == '/')
			found = q + 1;
	}
	return found;
}

static const char *short_path(const char *path)
{
	const char *found = behind_packages(path), *slash = strrchr(path, '/');

	if (found == NULL)
		found = behind_python(path);
	if (found == NULL && path[0] == '/' && slash != NULL)
		found = slash + 1;
	return found != NULL && *found != '\0' ? found : path;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* The last part of "Class.method.<locals>.f". */
static const char *plain_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot != NULL && dot[1] != '\0' ? dot + 1 : name;
}

void stacknaming_append(struct str *out, const struct stacks_frame *frame)
{
	const char *file = frame->file != NULL ? frame->file : "";
	const char *function = frame->function != NULL ? frame->function : "?";

	if (frame->kind == STACKS_PYTHON)
		str_printf(out, "%s(%u): %s", file[0] != '\0' ? short_path(file) : "<unknown>",
			   frame->line, plain_name(function));
	else if (frame->function != NULL)
		demangle(function, out);
	else
		str_printf(out, "%s!+0x%" PRIx64, base_name(file), frame->offset);
}

static bool is_users(const struct stacks_frame *frame)
{
	struct str name = { 0 };
	bool ret;

	if (frame->kind != STACKS_PYTHON)
		return false;
	stacknaming_append(&name, frame);
	ret = str_error(&name) == 0 && pythoncode_is_users(str_borrow(&name));
	str_done(&name);
	return ret;
}

const struct stacks_frame *stacknaming_innermost(const struct stacks_thread *thread)
{
	for (size_t i = 0; i < thread->frame_cnt; i++)
		if (thread->frames[i].kind == STACKS_PYTHON)
			return &thread->frames[i];
	return NULL;
}

const struct stacks_frame *stacknaming_own(const struct stacks_thread *thread)
{
	for (size_t i = 0; i < thread->frame_cnt; i++)
		if (is_users(&thread->frames[i]))
			return &thread->frames[i];
	return NULL;
}

const struct stacks_frame *stacknaming_users(const struct stacks_thread *thread)
{
	const struct stacks_frame *frame = stacknaming_own(thread);

	if (frame == NULL)
		frame = stacknaming_innermost(thread);
	return frame != NULL ? frame : thread->frame_cnt > 0 ? &thread->frames[0] : NULL;
}

const struct stacks_frame *stacknaming_common(const struct stacks_thread *thread)
{
	size_t common = 0;

	for (size_t i = thread->frame_cnt; i > 0; i--) {
		common += thread->frames[i - 1].kind == STACKS_PYTHON;
		if (common > 0 && common == thread->common_cnt)
			return &thread->frames[i - 1];
	}
	return NULL;
}

static bool has_path(const struct stacks_frame *frame, const char *part)
{
	return frame->kind == STACKS_PYTHON && frame->file != NULL &&
	       strstr(frame->file, part) != NULL;
}

/* Those between the fetcher of the worker and what it calls; outside are the parent's at a fork. */
const struct stacks_frame *stacknaming_of_loader(const struct stacks_thread *thread)
{
	size_t fetch = 0;

	while (fetch < thread->frame_cnt &&
	       !has_path(&thread->frames[fetch], "torch/utils/data/_utils/fetch.py"))
		fetch++;
	if (fetch == thread->frame_cnt)
		return NULL;
	for (size_t i = 0; i < fetch; i++)
		if (is_users(&thread->frames[i]))
			return &thread->frames[i];
	for (size_t i = 0; i <= fetch; i++)
		if (thread->frames[i].kind == STACKS_PYTHON)
			return &thread->frames[i];
	return NULL;
}

/* Wrappers of system calls, which say less than who calls them; and the interpreter. */
static bool is_plumbing(const struct stacks_frame *frame)
{
	static const char *const libraries[] = { "libc.so", "libc-", "libpthread", "ld-linux" };
	const char *name = frame->file != NULL ? base_name(frame->file) : "";

	if (frame->interpreter ||
	    (frame->function != NULL && strncmp(frame->function, "__", 2) == 0))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		if (strncmp(name, libraries[i], strlen(libraries[i])) == 0)
			return true;
	return false;
}

static bool is_shown(const struct stacks_frame *frame, bool python)
{
	if (python)
		return frame->kind == STACKS_PYTHON;
	return !is_plumbing(frame);
}

void stacknaming_stack(struct str *out, const struct stacks_thread *thread, size_t depth_max)
{
	const bool python = stacknaming_innermost(thread) != NULL;
	const size_t cnt = thread->frame_cnt;
	size_t left = 0;

	for (size_t i = 0; i < cnt; i++)
		left += is_shown(&thread->frames[i], python);
	for (size_t i = cnt; i > 0; i--) {
		const struct stacks_frame *frame = &thread->frames[i - 1];

		if (!is_shown(frame, python) || left-- > depth_max)
			continue;
		if (out->len > 0)
			str_append(out, "\n");
		stacknaming_append(out, frame);
	}
}
