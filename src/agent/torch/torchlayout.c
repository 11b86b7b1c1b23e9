/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/torch/torchlayout.h"

#include <errno.h>

#define VERSION_PART_MAX 10000u

/* clang-format off */
static const struct torch_layout layouts[] = {
	{
		.first = { 1, 13 }, .last = { 2, 1 }, .comms_kind = 4,
		.comms_bytes = 112, .comms_rank = 8, .comms_collective = 16,
		.comms_in = 48, .comms_out = 52, .elements_bytes = 4, .comms_dtype = 56,
		.function_inputs = 208, .tensor_elements = 168, .tensor_dtype = 176,
	},
	{
		.first = { 2, 2 }, .last = { 2, 2 }, .comms_kind = 4,
		.comms_bytes = 112, .comms_rank = 8, .comms_size = 12, .comms_collective = 16,
		.comms_in = 48, .comms_out = 52, .elements_bytes = 4, .comms_dtype = 56,
		.function_inputs = 208, .tensor_elements = 168, .tensor_dtype = 176,
	},
	{
		.first = { 2, 3 }, .last = { 2, 3 }, .comms_kind = 4,
		.comms_bytes = 152, .comms_rank = 12, .comms_size = 16, .comms_collective = 24,
		.comms_in = 56, .comms_out = 60, .elements_bytes = 4, .comms_dtype = 64,
		.comms_first = 120,
		.function_inputs = 208, .tensor_elements = 160, .tensor_dtype = 168,
	},
	{
		.first = { 2, 4 }, .last = { 2, 4 }, .comms_kind = 4,
		.comms_bytes = 208, .comms_rank = 72, .comms_size = 76, .comms_group = 40,
		.comms_collective = 80, .comms_in = 112, .comms_out = 116, .elements_bytes = 4,
		.comms_dtype = 120, .comms_first = 176,
		.function_inputs = 208, .tensor_elements = 160, .tensor_dtype = 168,
	},
	{
		.first = { 2, 5 }, .last = { 2, 11 }, .comms_kind = 4,
		.comms_bytes = 216, .comms_rank = 72, .comms_size = 76, .comms_group = 40,
		.comms_collective = 80, .comms_in = 112, .comms_out = 120, .elements_bytes = 8,
		.comms_dtype = 128, .comms_first = 184,
		.function_inputs = 208, .tensor_elements = 160, .tensor_dtype = 168,
	},
	{
		.first = { 2, 12 }, .last = { 2, 12 }, .comms_kind = 4,
		.comms_bytes = 240, .comms_rank = 72, .comms_size = 76, .comms_group = 40,
		.comms_collective = 80, .comms_in = 112, .comms_out = 120, .elements_bytes = 8,
		.comms_dtype = 128, .comms_seq = 224, .comms_first = 184,
		.function_inputs = 208, .tensor_elements = 160, .tensor_dtype = 168,
	},
	{
		.first = { 2, 13 }, .last = { 2, 15 },
		.comms_bytes = 240, .comms_rank = 72, .comms_size = 76, .comms_group = 40,
		.comms_collective = 80, .comms_in = 112, .comms_out = 120, .elements_bytes = 8,
		.comms_dtype = 128, .comms_seq = 224, .comms_first = 184,
		.function_inputs = 208, .tensor_elements = 152, .tensor_dtype = 160,
	},
};

/* c10::ScalarType; numbers are never given to another type. */
static const uint8_t dtype_bytes[] = {
	1, 1, 2, 4, 8, 2, 4, 8,	/* uint8 int8 int16 int32 int64 half float double */
	4, 8, 16, 1,		/* complex half, float, double; bool */
	1, 1, 4, 2, 1, 1,	/* qint8 quint8 qint32 bfloat16 quint4x2 quint2x4 */
	1, 1, 1, 1, 2,		/* bits 1x8 2x4 4x2 8 16 */
	1, 1, 1, 1, 2, 4, 8,	/* float8 e5m2 e4m3fn e5m2fnuz e4m3fnuz; uint16 32 64 */
	1, 1, 1, 1, 1, 1, 1,	/* uint1 to 7 */
	1, 1, 1, 1, 1, 1, 1,	/* int1 to 7 */
	1, 1,			/* float8 e8m0fnu, float4 e2m1fn x2 */
};
/* clang-format on */

static const char *parse_number(const char *text, uint32_t *ret)
{
	const char *at = text;
	uint32_t number = 0;

	for (; *at >= '0' && *at <= '9' && number < VERSION_PART_MAX; at++)
		number = number * 10 + (uint32_t)(*at - '0');
	*ret = number;
	return at != text && number < VERSION_PART_MAX ? at : NULL;
}

int torch_version_parse(const char *text, struct torch_version *ret)
{
	struct torch_version version;
	const char *dot = parse_number(text, &version.major);

	if (dot == NULL || *dot != '.' || parse_number(dot + 1, &version.minor) == NULL)
		return -EINVAL;
	*ret = version;
	return 0;
}

static bool is_before(struct torch_version a, struct torch_version b)
{
	return a.major != b.major ? a.major < b.major : a.minor < b.minor;
}

const struct torch_layout *torch_layout_find(struct torch_version version)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		if (!is_before(version, layouts[i].first) && !is_before(layouts[i].last, version))
			return &layouts[i];
	}
	return NULL;
}

uint32_t torch_dtype_bytes(uint32_t dtype)
{
	return dtype < ARRAY_SIZE(dtype_bytes) ? dtype_bytes[dtype] : 0;
}
