/* SPDX-License-Identifier: Apache-2.0 */
/* What `perftracker run` needs on several hosts: NATS' client library and its server. */
#include "base/brokerversion.h"
#include "base/subprocess.h"
#include "doctor/check.h"
#include "doctor/child.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void open_client(const void *unused _unused_, int fd)
{
	static const char *const names[] = BROKER_LIBRARIES;
	const char *(*version)(void) = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		void *symbol = library != NULL ? dlsym(library, "nats_GetVersion") : NULL;

		memcpy(&version, &symbol, sizeof(version));
		if (version != NULL) {
			dprintf(fd, "%s, version %.40s", names[i], version());
			return;
		}
	}
}

void check_nats_client(const struct doctor *doctor, struct doctor_result *ret)
{
	char text[256] = "";
	struct child_end end;

	if (!doctor->here)
		check_set(ret, DOCTOR_NOT_TRIED, "another root was given");
	else if (child_call(open_client, NULL, DOCTOR_LIBRARY_MS, text, sizeof(text), &end) < 0)
		check_set(ret, DOCTOR_NOT_TRIED, "the child process could not be started");
	else if (text[0] == '\0')
		check_set(ret, DOCTOR_ABSENT, "no libnats");
	else
		check_set(ret, DOCTOR_OK, "%s", text);
}

/* The version in "nats-server: v2.15.1"; "" if there is none. */
static const char *find_version(const char *text)
{
	unsigned number[3];

	for (const char *v = strchr(text, 'v'); v != NULL; v = strchr(v + 1, 'v')) {
		if (brokerversion_parse(v + 1, number))
			return v + 1;
	}
	return "";
}

void check_nats_server(const struct doctor *doctor, struct doctor_result *ret)
{
	const char *chosen = look_env(doctor, "PERFTRACKER_NATS_SERVER"), *version;
	char path[4096], text[256] = "", option[] = "--version";
	char *const argv[] = { path, option, NULL };
	struct child_end end;

	if (!doctor->here) {
		check_set(ret, DOCTOR_NOT_TRIED, "another root was given");
		return;
	}
	if (subprocess_find_beside(chosen != NULL ? chosen : "nats-server", path, sizeof(path)) <
	    0) {
		check_set(ret, DOCTOR_ABSENT, "no nats-server on PATH or beside perftracker");
		return;
	}
	if (child_run(argv, doctor->setup.environment, DOCTOR_LIBRARY_MS, text, sizeof(text),
		      &end) < 0) {
		check_set(ret, DOCTOR_FAILED, "%.200s does not start", path);
		return;
	}
	version = find_version(text);
	if (version[0] == '\0')
		check_set(ret, DOCTOR_FAILED, "%.200s does not tell its version", path);
	else
		check_set(ret, brokerversion_is_recent(version) ? DOCTOR_OK : DOCTOR_FAILED,
			  "%.200s, version %.*s", path, (int)strcspn(version, " \n"), version);
}
