/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/host/cuptipath.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Below PREFIX. */
static const char *const wheels[] = {
	"lib/python3*/site-packages/nvidia/cu13/lib/" CUPTI_SONAME,
	"lib/python3*/site-packages/nvidia/cuda_cupti/lib/" CUPTI_SONAME,
	"lib/python3*/dist-packages/nvidia/cu13/lib/" CUPTI_SONAME,
};

/* bin: "PREFIX/bin", where a Python is. */
static bool find_beside(const char *bin, char ret[static PATH_MAX])
{
	char pattern[PATH_MAX];
	bool found = false;

	for (size_t i = 0; i < ARRAY_SIZE(wheels) && !found; i++) {
		glob_t files = { 0 };

		if (snprintf(pattern, sizeof(pattern), "%s/../%s", bin, wheels[i]) >=
		    (int)sizeof(pattern))
			return false;
		if (glob(pattern, 0, NULL, &files) == 0)
			found = snprintf(ret, PATH_MAX, "%s", files.gl_pathv[0]) < PATH_MAX;
		globfree(&files);
	}
	return found;
}

/* What belongs to a virtual environment, else to the Python that it was made with. */
static bool find_wheel(const char *folder, size_t len, const char *name, char ret[static PATH_MAX])
{
	char python[PATH_MAX], real[PATH_MAX], *slash;

	if (snprintf(python, sizeof(python), "%.*s/%s", (int)len, folder, name) >=
		    (int)sizeof(python) ||
	    realpath(python, real) == NULL)
		return false;
	slash = strrchr(python, '/');
	*slash = '\0';
	slash = strrchr(real, '/');
	*slash = '\0';
	return find_beside(python, ret) || find_beside(real, ret);
}

static bool search(const char *path_list, const char *name, char ret[static PATH_MAX])
{
	const char *at = path_list;

	while (*at != '\0') {
		size_t len = strcspn(at, ":");

		if (len > 0 && find_wheel(at, len, name, ret))
			return true;
		at += len + (at[len] == ':');
	}
	return false;
}

void cuptipath_find(const char *named, const char *path_list, struct cuptipath *ret)
{
	size_t cnt = 0;

	*ret = (struct cuptipath){ 0 };
	if (named != NULL && named[0] != '\0') {
		ret->names[0] = named;
		return;
	}
	ret->names[cnt++] = CUPTI_SONAME;
	if (path_list != NULL &&
	    (search(path_list, "python", ret->wheel) || search(path_list, "python3", ret->wheel)))
		ret->names[cnt++] = ret->wheel;
	ret->names[cnt++] = "/usr/local/cuda/lib64/" CUPTI_SONAME;
	ret->names[cnt++] = "/usr/local/cuda/extras/CUPTI/lib64/" CUPTI_SONAME;
}
