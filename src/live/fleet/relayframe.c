/* SPDX-License-Identifier: Apache-2.0 */
#include "live/fleet/relayframe.h"

#include <errno.h>
#include <string.h>

int64_t relayframe_parse(const void *bytes, size_t len, struct relayframe *ret)
{
	struct relayframe_head head;
	const char *subject = (const char *)bytes + sizeof(head);

	if (len < sizeof(head))
		return 0;
	memcpy(&head, bytes, sizeof(head));
	if (head.magic != RELAYFRAME_MAGIC || head.subject_len == 0 ||
	    head.subject_len >= BUS_SUBJECT_MAX || head.data_len > BUS_MESSAGE_MAX)
		return -EPROTO;
	if (len < sizeof(head) + head.subject_len + head.data_len)
		return 0;
	if (memchr(subject, '\0', head.subject_len) != NULL)
		return -EPROTO;
	memcpy(ret->subject, subject, head.subject_len);
	ret->subject[head.subject_len] = '\0';
	ret->data = subject + head.subject_len;
	ret->len = head.data_len;
	return (int64_t)(sizeof(head) + head.subject_len + head.data_len);
}
