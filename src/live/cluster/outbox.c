/* SPDX-License-Identifier: Apache-2.0 */
#include "live/cluster/outbox.h"

#include <stdlib.h>

#define WAIT_FIRST_NS NSEC_PER_SEC
#define WAIT_MAX_NS (10 * NSEC_PER_SEC)

void outbox_init(struct outbox *outbox)
{
	*outbox = (struct outbox){ .tail = &outbox->head,
				   .next_number = 1,
				   .wait_ns = WAIT_FIRST_NS };
}

void outbox_done(struct outbox *outbox)
{
	while (outbox->head != NULL) {
		struct item *next = outbox->head->next;

		free(outbox->head);
		outbox->head = next;
	}
	outbox->tail = &outbox->head;
}

struct item *outbox_add(struct outbox *outbox, enum item_kind kind, size_t data_len)
{
	size_t bytes = sizeof(struct item) + data_len;
	struct item *item = NULL;

	if (outbox->bytes + bytes <= CLUSTER_ITEMS_MAX)
		item = calloc(1, bytes);
	if (item == NULL) {
		outbox->dropped++;
		return NULL;
	}
	item->kind = kind;
	item->number = outbox->next_number++;
	item->bytes = bytes;
	outbox->bytes += bytes;
	*outbox->tail = item;
	outbox->tail = &item->next;
	return item;
}

static void drop_head(struct outbox *outbox)
{
	struct item *head = outbox->head;

	outbox->bytes -= head->bytes;
	outbox->head = head->next;
	if (outbox->head == NULL)
		outbox->tail = &outbox->head;
	free(head);
}

void outbox_acknowledge(struct outbox *outbox, uint64_t number)
{
	if (number >= outbox->next_number || outbox->head == NULL || outbox->head->number > number)
		return; /* of another daemon, or known */
	while (outbox->head != NULL && outbox->head->number <= number)
		drop_head(outbox);
	outbox->wait_ns = WAIT_FIRST_NS;
	outbox->again_ns = 0; /* counts from the next look */
}

uint64_t outbox_oldest(const struct outbox *outbox)
{
	return outbox->head != NULL ? outbox->head->number : outbox->next_number;
}

void outbox_rewind(struct outbox *outbox)
{
	for (struct item *item = outbox->head; item != NULL; item = item->next) {
		outbox->resent += item->sent;
		item->sent = false;
	}
	outbox->again_ns = 0;
}

void outbox_mind(struct outbox *outbox, int64_t now_ns)
{
	if (outbox->head == NULL || !outbox->head->sent) {
		outbox->again_ns = 0;
		return;
	}
	if (outbox->again_ns == 0)
		outbox->again_ns = now_ns + outbox->wait_ns;
	if (now_ns < outbox->again_ns)
		return;
	outbox_rewind(outbox);
	outbox->wait_ns = MIN(2 * outbox->wait_ns, WAIT_MAX_NS);
}

struct item *outbox_next(const struct outbox *outbox)
{
	struct item *item = outbox->head;

	while (item != NULL && item->sent)
		item = item->next;
	return item;
}

void outbox_sent(struct outbox *outbox, struct item *item, int64_t now_ns)
{
	item->sent = true;
	if (outbox->again_ns == 0)
		outbox->again_ns = now_ns + outbox->wait_ns;
}

static void write_piece(struct item *item, Cluster__Piece *ret)
{
	cluster__piece__init(ret);
	ret->worker = item->piece.worker;
	ret->order = item->piece.order;
	ret->rank = item->piece.rank;
	ret->size = item->piece.size;
	ret->offset = item->piece.offset;
	ret->data.data = item->data;
	ret->data.len = item->piece.len;
	ret->name = item->piece.name;
}

void outbox_write_result(const struct item_result *from, Cluster__Window *room,
			 Cluster__Result *ret)
{
	cluster__result__init(ret);
	convert_window_out(&from->window, room);
	ret->epoch = from->epoch;
	ret->rank = from->rank;
	ret->window = room;
	ret->spool = from->spool;
	ret->number = from->number;
}

static void write_answer(const struct item *item, struct outbox_room *ret)
{
	convert_answer_out(&item->answer, &ret->answer);
	outbox_write_result(&item->result, &ret->window, &ret->result);
	if (item->result.epoch != 0)
		ret->answer.result = &ret->result;
	ret->item.answer = &ret->answer;
}

static void write_end(const struct job_end *end, Cluster__End *ret)
{
	cluster__end__init(ret);
	ret->exit_status = end->exit_status;
	ret->signal = end->signal;
}

static void write_saved(const struct item_saved *saved, Cluster__Saved *ret)
{
	cluster__saved__init(ret);
	ret->id = saved->id;
	ret->dropped = saved->dropped;
}

void outbox_write(struct item *item, struct outbox_room *ret)
{
	cluster__item__init(&ret->item);
	ret->item.number = item->number;
	switch (item->kind) {
	case ITEM_ANSWER:
		write_answer(item, ret);
		break;
	case ITEM_WHERE:
		convert_where_out(&item->where, &ret->entered, &ret->where);
		ret->item.where = &ret->where;
		break;
	case ITEM_SLICES_COST:
		convert_slices_cost_out(&item->slices_cost, &ret->slices_cost);
		ret->slices_cost.epoch = item->result.epoch;
		ret->item.slices_cost = &ret->slices_cost;
		break;
	case ITEM_PIECE:
		write_piece(item, &ret->piece);
		ret->item.piece = &ret->piece;
		break;
	case ITEM_ASK:
		convert_ask_out(&item->ask, &ret->ask);
		ret->item.ask = &ret->ask;
		break;
	case ITEM_END:
		write_end(&item->end, &ret->end);
		ret->item.end = &ret->end;
		break;
	case ITEM_SAVED:
		write_saved(&item->saved, &ret->saved);
		ret->item.saved = &ret->saved;
		break;
	}
}
