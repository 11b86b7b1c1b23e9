/* SPDX-License-Identifier: Apache-2.0 */
#include "live/cluster/remote.h"

#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void forget_file(struct remote *remote)
{
	free(remote->file.data);
	remote->file = (struct remote_file){ 0 };
}

void remote_begin(struct remote *remote, const Cluster__Up *up)
{
	forget_file(remote);
	remote->states.cnt = 0;
	remote->boot = up->boot;
	remote->next =
		up->oldest; /* a hub that was started again goes on where the other stopped */
	remote->offset_ns = INT64_MAX;
	remote->acked_ns = 0;
	remote->collected = 0;
	remote->ended = remote->silent = remote->doubled = false;
	remote->node_rank = up->node_rank;
	(void)snprintf(remote->host, sizeof(remote->host), "%s", up->host);
}

void remote_done(struct remote *remote)
{
	forget_file(remote);
	vec_done(&remote->states);
}

void remote_hear(struct remote *remote, const Cluster__Up *up)
{
	int64_t delay_ns;

	if (!__builtin_sub_overflow(clock_mono_ns(), up->sent_ns, &delay_ns))
		remote->offset_ns = MIN(remote->offset_ns, delay_ns);
}

struct convert_from remote_from(const struct remote *remote)
{
	return (struct convert_from){ .host = remote->host,
				      .offset_ns = remote->offset_ns,
				      .worker_base = remote->slot * WIRE_OWN_WORKERS };
}

int remote_keep_state(struct remote *remote, const struct wire_state *state)
{
	vec_foreach(kept, &remote->states) {
		if (kept->worker == state->worker) {
			*kept = *state;
			return 0;
		}
	}
	return vec_push(&remote->states, *state);
}

static int begin_file(struct remote *remote, const Cluster__Piece *piece)
{
	forget_file(remote);
	if (piece->size == 0 || piece->size > CLUSTER_FILE_MAX)
		return -EINVAL;
	remote->file = (struct remote_file){ .worker = piece->worker,
					     .order = piece->order,
					     .size = piece->size,
					     .data = malloc(piece->size) };
	return remote->file.data == NULL ? -ENOMEM : 0;
}

int remote_add_piece(struct remote *remote, const Cluster__Piece *piece)
{
	struct remote_file *file = &remote->file;
	int ret = piece->offset == 0 ? begin_file(remote, piece) : 0;

	if (ret < 0)
		return ret;
	if (file->data == NULL || piece->worker != file->worker || piece->order != file->order ||
	    piece->size != file->size || piece->offset != file->got ||
	    piece->data.len > file->size - file->got)
		return -EINVAL;
	memcpy(file->data + file->got, piece->data.data, piece->data.len);
	file->got += piece->data.len;
	return 0;
}

int remote_save_file(struct remote *remote, uint32_t worker, uint64_t order, const char *path,
		     struct err *err)
{
	struct remote_file *file = &remote->file;
	int ret;

	if (file->data == NULL || file->worker != worker || file->order != order ||
	    file->got != file->size)
		return err_set(err, ENODATA, "its fingerprint did not come whole");
	ret = file_replace(path, file->data, file->size, 0644);
	if (ret < 0)
		(void)err_set(err, -ret, "%s: %s", path, strerror(-ret));
	forget_file(remote);
	return ret;
}
