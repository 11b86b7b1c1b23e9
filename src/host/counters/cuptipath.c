/* SPDX-License-Identifier: Apache-2.0 */
#include "host/counters/cuptipath.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TOOLKIT 4

static const struct version {
	int major;
	const char *soname;
	const char *wheel; /* below PREFIX, as glob() has it */
	const char *toolkits[TOOLKIT];
} versions[CUPTIPATH_MAJORS] = {
#define VERSION(major)                                                                    \
	{                                                                                 \
		major, "libcupti.so." #major,                                             \
			"lib/python3*/{site,dist}-packages/nvidia/{cu" #major             \
			",cuda_cupti}/lib/libcupti.so." #major,                           \
		{                                                                         \
			"/usr/local/cuda/lib64/libcupti.so." #major,                      \
				"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so." #major, \
				"/usr/local/cuda-" #major "/lib64/libcupti.so." #major,   \
				"/usr/local/cuda-" #major                                 \
				"/extras/CUPTI/lib64/libcupti.so." #major                 \
		}                                                                         \
	}
	VERSION(13),
	VERSION(12),
};

/* bin: "PREFIX/bin", where a Python is. */
static bool find_beside(const char *bin, const char *wheel, char ret[static PATH_MAX])
{
	char pattern[PATH_MAX];
	glob_t files = { 0 };
	bool found = false;

	if (snprintf(pattern, sizeof(pattern), "%s/../%s", bin, wheel) >= (int)sizeof(pattern))
		return false;
	if (glob(pattern, GLOB_BRACE, NULL, &files) == 0)
		found = snprintf(ret, PATH_MAX, "%s", files.gl_pathv[0]) < PATH_MAX;
	globfree(&files);
	return found;
}

/* What belongs to a virtual environment, else to the Python that it was made with. */
static bool find_wheel(const char *python, const char *wheel, char ret[static PATH_MAX])
{
	char bin[PATH_MAX], real[PATH_MAX];

	if (realpath(python, real) == NULL)
		return false;
	(void)snprintf(bin, sizeof(bin), "%s", python);
	*strrchr(bin, '/') = '\0';
	*strrchr(real, '/') = '\0';
	return find_beside(bin, wheel, ret) || find_beside(real, wheel, ret);
}

static bool search(const char *path_list, const char *name, const char *wheel,
		   char ret[static PATH_MAX])
{
	char python[PATH_MAX];

	for (const char *at = path_list; *at != '\0'; at += *at == ':') {
		size_t len = strcspn(at, ":");

		if (len > 0 &&
		    snprintf(python, sizeof(python), "%.*s/%s", (int)len, at, name) <
			    (int)sizeof(python) &&
		    find_wheel(python, wheel, ret))
			return true;
		at += len;
	}
	return false;
}

void cuptipath_find(const char *named, const char *path_list, int driver, struct cuptipath *ret)
{
	size_t cnt = 0;

	*ret = (struct cuptipath){ 0 };
	if (named != NULL && named[0] != '\0') {
		ret->names[0] = named;
		return;
	}
	for (size_t i = 0; i < CUPTIPATH_MAJORS; i++) {
		const struct version *version = &versions[i];
		char *wheel = ret->wheels[i];

		if (driver != 0 && driver < version->major * 1000)
			continue;
		ret->names[cnt++] = version->soname;
		if (path_list != NULL && (search(path_list, "python", version->wheel, wheel) ||
					  search(path_list, "python3", version->wheel, wheel)))
			ret->names[cnt++] = wheel;
		for (size_t j = 0; j < TOOLKIT; j++)
			ret->names[cnt++] = version->toolkits[j];
	}
}
