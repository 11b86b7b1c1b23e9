/* SPDX-License-Identifier: Apache-2.0 */
#include "report/prompt/fence.h"

#include "base/text/clean.h"

#define CELLS_MIN 8u

json_t *fence_text(const char *text, size_t cells)
{
	struct str shortened = { 0 };
	json_t *ret;

	clean_append_short(&shortened, text, cells);
	ret = str_error(&shortened) == 0 ? json_stringn(str_borrow(&shortened), shortened.len)
					 : NULL;
	str_done(&shortened);
	return ret;
}

json_t *fence_short_text(const char *text, size_t bytes)
{
	json_t *ret = fence_text(text, bytes);

	for (size_t cells = bytes; ret != NULL; cells /= 2) {
		size_t len = 0;
		_cleanup_free_ char *line = fence_line(ret, &len);

		if (line == NULL || len <= bytes + 3 ||
		    cells / 2 < CELLS_MIN) /* quotes, line end */
			break;
		json_decref(ret);
		ret = fence_text(text, cells / 2);
	}
	return ret;
}

char *fence_line(const json_t *object, size_t *ret_len)
{
	_cleanup_free_ char *plain =
		json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY |
					   JSON_REAL_PRECISION(6));
	struct str line = { 0 };

	for (const char *p = plain; p != NULL && *p != '\0'; p++) {
		if (*p == '`')
			str_append(&line, "\\u0060");
		else
			str_append_char(&line, *p);
	}
	str_append_char(&line, '\n');
	*ret_len = line.len;
	if (plain != NULL && str_error(&line) == 0)
		return line.data;
	str_done(&line);
	return NULL;
}
