/* SPDX-License-Identifier: Apache-2.0 */
#include "live/fleet/hoststate.h"

#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX (1024u * JOBKEY_MAX)

static void file_path(const struct hostservice *service, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%s/" HOSTSTATE_FILE, service->run_dir);
}

void hoststate_save(struct hostservice *service)
{
	struct str text = { 0 };
	char path[128];
	int ret;

	file_path(service, path, sizeof(path));
	vec_foreach(job, &service->jobs) {
		if ((*job)->state == HOSTJOB_READY)
			str_printf(&text, "%s\n", (*job)->key.text);
	}
	ret = str_error(&text) < 0 ? -ENOMEM
				   : file_replace(path, str_borrow(&text), text.len, 0600);
	str_done(&text);
	if (ret < 0 && !service->unsaved_logged)
		log_line(LOG_WARNING,
			 "event=jobs-not-noted why=\"%s: %s\" effect=\"if hostd is started again, "
			 "jobs that run then are watched by this host alone\"",
			 path, strerror(-ret));
	service->unsaved_logged = ret < 0;
}

static void take_key(struct hostservice *service, const char *text)
{
	struct jobkey key = { .is_plain = false };
	const char *job = NULL;
	unsigned uid = 0;

	if (!jobkey_split(text, service->setup.site->values.cluster, &uid, &job))
		return;
	(void)snprintf(key.text, sizeof(key.text), "%s", text);
	(void)snprintf(key.job, sizeof(key.job), "%s", job);
	hostjob_adopt(service, &key, uid);
}

void hoststate_load(struct hostservice *service)
{
	_cleanup_free_ char *text = NULL;
	char path[128], *save = NULL;
	size_t len = 0;
	int fd;

	file_path(service, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return; /* the first hostd since the host's start */
	if (file_read_whole(path, fd, FILE_MAX, &text, &len, NULL) == 0) {
		for (char *line = strtok_r(text, "\n", &save); line != NULL;
		     line = strtok_r(NULL, "\n", &save))
			take_key(service, line);
	}
	(void)close(fd);
}
