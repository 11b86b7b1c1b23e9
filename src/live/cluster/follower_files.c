/* SPDX-License-Identifier: Apache-2.0 */
/* Fingerprints and flight recorders of a follower, which go to the leader in pieces. */
#include "base/file.h"
#include "base/log.h"
#include "live/cluster/follower_parts.h"
#include "live/hostd/recordername.h"
#include "live/link/wire_request.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int add_piece(struct follower *f, const struct item_piece *as, const char *data, size_t size,
		     size_t offset)
{
	size_t len = MIN(size - offset, CLUSTER_PIECE_MAX);
	struct item *item = outbox_add(&f->outbox, ITEM_PIECE, len);

	if (item == NULL)
		return -ENOMEM;
	item->piece = *as;
	item->piece.size = size;
	item->piece.offset = offset;
	item->piece.len = len;
	memcpy(item->data, data + offset, len);
	return 0;
}

int follower_add_bytes(struct follower *f, const char *data, size_t len,
		       const struct item_piece *as)
{
	int ret = 0;

	for (size_t at = 0; ret == 0 && at < len; at += CLUSTER_PIECE_MAX)
		ret = add_piece(f, as, data, len, at);
	return ret;
}

int follower_add_file(struct follower *f, const char *path, const struct item_piece *as,
		      struct err *err)
{
	_cleanup_free_ char *data = NULL;
	size_t size = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int ret = fd < 0 ? err_set(err, errno, "%s: %s", path, strerror(errno))
			 : file_read_whole(path, fd, CLUSTER_FILE_MAX, &data, &size, err);

	if (fd >= 0)
		(void)close(fd);
	if (ret == 0 && follower_add_bytes(f, data, size, as) < 0)
		ret = err_set(err, ENOMEM, "too much waits for the hub");
	return ret;
}

void follower_pass_collect(struct follower *f, const Cluster__Down *down)
{
	const struct wire_save save = { .id = down->collect };

	if (down->collect <= f->heard.collect)
		return;
	f->heard.collect = down->collect;
	(void)bus_pub(f->setup.local, SUBJECT_SAVE, &save,
		      sizeof(save)); /* full: the leader waits no longer */
}

/* Returns whether it was added. */
static bool add_recorder(struct follower *f, const char *name, uint64_t id)
{
	struct item_piece as = { .rank = recordername_rank(name), .order = id };
	struct err err;
	char path[4096];

	(void)snprintf(as.name, sizeof(as.name), "%.31s", name);
	(void)snprintf(path, sizeof(path), "%s/" RECORD_FOLDER "/%s", f->setup.out_dir, name);
	if (follower_add_file(f, path, &as, &err) == 0)
		return true;
	log_line(LOG_WARNING, "event=recorder-not-sent why=\"%s\"", err.text);
	return false;
}

/* Those of ranks that have ended are there, too. */
static uint32_t add_recorders(struct follower *f, uint64_t id)
{
	uint32_t dropped = 0;
	char path[4096];
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s/" RECORD_FOLDER, f->setup.out_dir);
	dir = opendir(path);
	for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
		if (recordername_rank(entry->d_name) >= 0)
			dropped += !add_recorder(f, entry->d_name, id);
	}
	if (dir != NULL)
		(void)closedir(dir);
	return dropped;
}

void follower_take_saved(void *arg, const struct bus_message *message)
{
	struct follower *f = arg;
	const struct wire_save *save = message->data;
	struct item_saved saved;
	struct item *item;

	if (!f->led || message->len != sizeof(*save) || save->id != f->heard.collect)
		return;
	saved = (struct item_saved){ save->id, add_recorders(f, save->id) };
	item = outbox_add(&f->outbox, ITEM_SAVED, 0);
	if (item != NULL)
		item->saved = saved;
	f->urgent = true;
}
