/* SPDX-License-Identifier: Apache-2.0 */
/* A library whose constructor wants a lock of the program, as Python's modules may its own. */
extern void take_and_give_back(void);

__attribute__((constructor)) static void start(void)
{
	take_and_give_back();
}
