/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hardware counters of an NVIDIA GPU PM sampling can take all at once. A chip has few
 * counters; metrics that do not fit together would need repeated work, which a sampler cannot do.
 * So each kind of metric has candidates in order, and each kind takes the first with which all
 * chosen so far still fit in one pass. CUPTI's host API says so, on the CPU alone.
 *
 * This chooses; pmsampling_session.h samples.
 */
#pragma once

#include "host/gpu/gpuhw.h"

/* In order of priority when counters are short. */
enum pm_kind {
	PM_ACTIVE,
	PM_CORES_ACTIVE,
	PM_ISSUE, /* instructions issued */
	PM_MATRIX,
	PM_MEMORY_READ,
	PM_MEMORY_WRITE,
	PM_PCIE_READ,
	PM_PCIE_WRITE,
	PM_PCIE_BOTH, /* where reads and writes are not counted apart */
	PM_LINK_RX,
	PM_LINK_TX,
	PM_CORE_CLOCK,
	PM_SYSTEM_CLOCK, /* of all but the cores and the memory */
	PM_MEMORY_CLOCK,
	PM_KIND_CNT
};

/* The library, open. */
struct pm_library {
	void *handle;
	struct pm_functions *functions;
};

/*
 * Opens path, and the other libraries it needs from the same folder. Returns 0, or with the reason
 * in why: -ENOENT not found, -ENOTSUP older than CUDA 12.6, -ENOMEM. Calls none of its functions:
 * from CUDA 13.2 on each needs a driver.
 */
_must_check_ int pm_library_open(struct pm_library *library, const char *path,
				 char why[static GPUHW_WHY]);

/*
 * Opens the best candidate of cuptipath_find() (host/counters/cuptipath.h has the arguments).
 * Returns as pm_library_open() for the first one found.
 */
_must_check_ int pm_library_find(struct pm_library *library, const char *named,
				 const char *path_list, int driver, char why[static GPUHW_WHY]);

/* The file that it is, of static storage of the loader until it is closed. NULL: not known. */
const char *pm_library_file(const struct pm_library *library);

void pm_library_close(struct pm_library *library);

/* Names of the chips that the library knows, borrowed until it is closed. -EIO: it fails. */
_must_check_ int pm_library_chips(const struct pm_library *library, const char *const **ret_names,
				  size_t *ret_cnt);

/* CUPTI's name of what was chosen of each kind, of static storage; NULL: none fits. */
struct pm_choice {
	const char *names[PM_KIND_CNT];
	size_t cnt;
};

/*
 * Chooses for a chip ("GH100"). availability: of a device, from CUPTI; NULL: all counters of the
 * chip. Some 20 ms. Returns 0; -ENOTSUP with the reason in why when the library cannot sample such
 * a chip, or nothing fits.
 */
_must_check_ int pm_choose(const struct pm_library *library, const char *chip,
			   const uint8_t *availability, struct pm_choice *ret,
			   char why[static GPUHW_WHY]);
