/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a trace or an error, and shapes that were found have times. */
#include "cmd/replay/opshapes.h"

#include "read/common/input.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct opshapes shapes = { .rank = -1 };
	struct err err = { "" };
	struct input *input;

	if (input_open_memory(data, len, &input) < 0)
		return 0;
	if (opshapes_read("file", input, &shapes, &err) < 0) {
		if (err.text[0] == '\0')
			abort();
	} else {
		vec_foreach(shape, &shapes.shapes) {
			if (shape->us.cnt == 0 || !(opshape_median_us(shape) >= shape->us.data[0]))
				abort();
		}
	}
	opshapes_done(&shapes);
	(void)input_free(input);
	return 0;
}
