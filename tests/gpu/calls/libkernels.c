/* SPDX-License-Identifier: Apache-2.0 */
/* A job's library, linked to a version of CUDA's runtime, that launches from many places. */
struct size {
	unsigned x, y, z;
};

int cudaLaunchKernel(const void *kernel, struct size grid, struct size block, void **parameters,
		     unsigned long shared_bytes, void *queue);

__attribute__((visibility("default"))) int launch_from(int place);

#define HERE(place)                                                                      \
	case place:                                                                      \
		return place + cudaLaunchKernel(0, (struct size){ place, 1, 1 },         \
						(struct size){ 1, 1, 1 }, (void **)0, 0, \
						(void *)0)
#define FOUR(from)        \
	HERE(from);       \
	HERE((from) + 1); \
	HERE((from) + 2); \
	HERE((from) + 3)

/* What the launch returns, plus place: each of 40 has a call of its own. */
int launch_from(int place)
{
	switch (place) {
		FOUR(0);
		FOUR(4);
		FOUR(8);
		FOUR(12);
		FOUR(16);
		FOUR(20);
		FOUR(24);
		FOUR(28);
		FOUR(32);
		FOUR(36);
	default:
		return -1;
	}
}
