/* SPDX-License-Identifier: Apache-2.0 */
#include "model/place/pywait.h"

#include <string.h>

/* Beginnings of names. */
static const char *const waits[] = {
	"<built-in function sleep>",
	"<built-in function pause>",
	"<built-in function select>",
	"<built-in function wait>",
	"<built-in function wait4>",
	"<built-in function waitpid>",
	"<built-in function read>",
	"<built-in function fsync>",
	"<built-in function fdatasync>",
	"<built-in function flock>",
	"<built-in function lockf>",
	"<built-in method acquire of _thread.",
	"<built-in method __enter__ of _thread.",
	"<built-in method acquire of _multiprocessing.SemLock",
	"<built-in method __enter__ of _multiprocessing.SemLock",
	"<built-in method get of _queue.SimpleQueue",
	"<built-in method poll of select.",
	"<built-in method select of",
	"<built-in method accept of",
	"<built-in method _accept of",
	"<built-in method connect of",
	"<built-in method recv of",
	"<built-in method recv_into of",
	"<built-in method recv_bytes of",
	"<built-in method wait of",
};

bool pywait_is(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
		if (strncmp(name, waits[i], strlen(waits[i])) == 0)
			return true;
	}
	return false;
}
