/* SPDX-License-Identifier: Apache-2.0 */
#include "model/finding.h"

const char *confidence_name(enum confidence confidence)
{
	static const char *const names[] = { "low", "medium", "high" };

	return (unsigned int)confidence < ARRAY_SIZE(names) ? names[confidence] : "unknown";
}

const char *reference_name(enum reference_kind kind)
{
	static const char *const names[] = {
		[REFERENCE_PEERS] = "peers",
		[REFERENCE_EXPECTED] = "expected",
		[REFERENCE_PAST] = "before",
	};

	return names[kind];
}

bool finding_names_rank(const struct finding *finding, int rank)
{
	size_t low = 0, high = finding->rank_cnt;

	while (low < high) { /* they ascend */
		size_t middle = low + (high - low) / 2;

		if (finding->ranks[middle] < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low < finding->rank_cnt && finding->ranks[low] == rank;
}
