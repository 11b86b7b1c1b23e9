/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes one message of the Model Context Protocol, up to the answers of tools without any report. */
#include "mcp/rpc.h"

#include "mcp/mcp.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An answer is one line of JSON-RPC in ASCII. */
static void check_answer(const struct str *out)
{
	json_t *root;

	if (out->len == 0)
		return;
	for (size_t i = 0; i < out->len; i++)
		assert(out->data[i] >= ' ' && (unsigned char)out->data[i] < 128);
	root = json_loadb(out->data, out->len, 0, NULL);
	assert(json_is_object(root));
	assert((json_object_get(root, "result") != NULL) !=
	       (json_object_get(root, "error") != NULL));
	json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct archive archive = { .catalog = catalog_new(NULL, 0) };
	struct mcp_options options = { .archive = &archive };
	const struct mcp_headers headers = { MCP_VERSION, "tools/call", "get_report" };
	struct mcp *mcp = mcp_new(&options);
	char *text = malloc(size + 1);

	for (int i = 0; i < 2 && mcp != NULL && archive.catalog != NULL && text != NULL; i++) {
		struct str out = { 0 };

		if (size > 0)
			memcpy(text, data, size);
		assert(mcp_answer(mcp, text, size, i > 0 ? &headers : NULL, &out, NULL) == 0);
		check_answer(&out);
		str_done(&out);
	}
	free(text);
	(void)mcp_free(mcp);
	archive_done(&archive);
	return 0;
}
