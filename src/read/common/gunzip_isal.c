/* SPDX-License-Identifier: Apache-2.0 */
#include "read/common/gunzip.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <limits.h>

struct gunzip {
	struct inflate_state state;
};

struct gunzip *gunzip_new(void)
{
	struct gunzip *gunzip = malloc(sizeof(*gunzip));

	if (gunzip != NULL)
		isal_inflate_init(&gunzip->state);
	return gunzip;
}

struct gunzip *gunzip_free(struct gunzip *gunzip)
{
	free(gunzip);
	return NULL;
}

void gunzip_reset(struct gunzip *gunzip)
{
	isal_inflate_reset(&gunzip->state);
	gunzip->state.crc_flag = ISAL_GZIP;
}

int gunzip_run(struct gunzip *gunzip, struct gunzip_step *step, const char **ret_why)
{
	struct inflate_state *state = &gunzip->state;
	uint32_t in_len = (uint32_t)MIN(step->in_len, (size_t)UINT_MAX);
	uint32_t out_len = (uint32_t)MIN(step->out_len, (size_t)UINT_MAX);
	int ret;

	/* The library does not write through next_in; its type lacks the const. */
	state->next_in = (uint8_t *)(uintptr_t)step->in;
	state->avail_in = in_len;
	state->next_out = step->out;
	state->avail_out = out_len;
	ret = isal_inflate(state);
	if (ret < 0) {
		*ret_why = ret == ISAL_INCORRECT_CHECKSUM
				   ? "expected the gzip checksum of the text, found another"
				   : "expected valid gzip data, found damaged data";
		return -EBADMSG;
	}
	step->in += in_len - state->avail_in;
	step->in_len -= in_len - state->avail_in;
	step->out += out_len - state->avail_out;
	step->out_len -= out_len - state->avail_out;
	return state->block_state == ISAL_BLOCK_FINISH;
}
