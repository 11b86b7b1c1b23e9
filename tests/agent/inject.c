/* SPDX-License-Identifier: Apache-2.0 */
/* A program without Python that uses CUDA: does what the driver does with the library it is given. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*initialize)(void) = library != NULL ? dlsym(library, "InitializeInjection") : NULL;

	if (initialize == NULL)
		return 2;
	(void)printf("%d %d\n", initialize(), initialize());
	return 0;
}
