/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/meaning.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *id, *text;
} meanings[] = {
	{ "PT-101", "idle in a place that its peers pass at once" },
	{ "PT-102", "waits for input data" },
	{ "PT-103", "computes in Python while the job waits" },
	{ "PT-104", "is stopped by Python's garbage collector" },
	{ "PT-105", "waits for the GIL that another thread holds" },
	{ "PT-106", "is runnable but gets no CPU" },
	{ "PT-107", "is stopped by a signal, debugger or freezer" },
	{ "PT-108", "allocates pinned memory while it trains" },
	{ "PT-109", "has more work than its peers" },
	{ "PT-110", "an operator or runtime call takes longer here" },
	{ "PT-111", "GPUs wait for their host, on all ranks alike" },
	{ "PT-112", "allocates or frees GPU memory while it trains" },
	{ "PT-113", "the host waits for each kernel that it launches" },
	{ "PT-114", "the host waits for the GPU, then the GPU for the host" },
	{ "PT-115", "has more of a pipeline's layers than the other stages" },
	{ "PT-116", "operators run here that no peer runs" },
	{ "PT-117", "short functions all over the program stall for milliseconds" },
	{ "PT-201", "computes slower with the same work" },
	{ "PT-202", "has the slow link of its ring" },
	{ "PT-203", "sends over PCIe what its peers send over NVLink" },
	{ "PT-204", "spends longer in memory operations" },
	{ "PT-205", "a collective is slow for all members alike" },
	{ "PT-206", "memory copies hold the GPU, on all ranks alike" },
	{ "PT-301", "longer than a healthy job spends there, on all workers" },
	{ "PT-302", "differs from its peers, no pattern fits" },
	{ "PT-303", "takes longer than in the job's own past" },
	{ "PT-902", "its process has ended, the others wait" },
	{ "PT-903", "waits inside the kernel and cannot be interrupted" },
	{ "PT-904", "waits for its next batch without end" },
	{ "PT-905", "made less progress than the others, which wait" },
	{ "PT-906", "has not entered a collective in which others wait" },
	{ "PT-907", "is in another function than the others, which wait" },
	{ "PT-908", "does not come out of this function; there are no other ranks" },
	{ "PT-909", "its process was killed because memory ran out" },
	{ "PT-910", "ended its program while the others go on" },
	{ "PT-911", "its process is stopped by a debugger or tracer" },
	{ "PT-912", "waits for a lock that is not released" },
	{ "PT-913", "runs and does not come out of this function" },
	{ "PT-914", "waits for work of its GPU that does not end" },
	{ "PT-915", "waits in another collective than the others" },
	{ "PT-916", "the process that started the ranks has ended" },
	{ "PT-917", "left no dump, and the others wait for it" },
};

const char *meaning_of(const char *id)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		if (id != NULL && strcmp(meanings[i].id, id) == 0)
			return meanings[i].text;
	}
	return NULL;
}
