/* SPDX-License-Identifier: Apache-2.0 */
#include "live/cluster/items.h"

#include <stdlib.h>

#define WAIT_FIRST_NS NSEC_PER_SEC
#define WAIT_MAX_NS (10 * NSEC_PER_SEC)

void items_init(struct items *items)
{
	*items = (struct items){ .tail = &items->head, .next_number = 1, .wait_ns = WAIT_FIRST_NS };
}

void items_done(struct items *items)
{
	while (items->head != NULL) {
		struct item *next = items->head->next;

		free(items->head);
		items->head = next;
	}
	items->tail = &items->head;
}

struct item *items_add(struct items *items, enum item_kind kind, size_t data_len)
{
	size_t bytes = sizeof(struct item) + data_len;
	struct item *item = NULL;

	if (items->bytes + bytes <= CLUSTER_ITEMS_MAX)
		item = calloc(1, bytes);
	if (item == NULL) {
		items->dropped++;
		return NULL;
	}
	item->kind = kind;
	item->number = items->next_number++;
	item->bytes = bytes;
	items->bytes += bytes;
	*items->tail = item;
	items->tail = &item->next;
	return item;
}

static void drop_head(struct items *items)
{
	struct item *head = items->head;

	items->bytes -= head->bytes;
	items->head = head->next;
	if (items->head == NULL)
		items->tail = &items->head;
	free(head);
}

void items_acknowledge(struct items *items, uint64_t number)
{
	if (number >= items->next_number || items->head == NULL || items->head->number > number)
		return; /* of another daemon, or known */
	while (items->head != NULL && items->head->number <= number)
		drop_head(items);
	items->wait_ns = WAIT_FIRST_NS;
	items->again_ns = 0; /* counts from the next look */
}

uint64_t items_oldest(const struct items *items)
{
	return items->head != NULL ? items->head->number : items->next_number;
}

void items_rewind(struct items *items)
{
	for (struct item *item = items->head; item != NULL; item = item->next) {
		items->resent += item->sent;
		item->sent = false;
	}
	items->again_ns = 0;
}

void items_mind(struct items *items, int64_t now_ns)
{
	if (items->head == NULL || !items->head->sent) {
		items->again_ns = 0;
		return;
	}
	if (items->again_ns == 0)
		items->again_ns = now_ns + items->wait_ns;
	if (now_ns < items->again_ns)
		return;
	items_rewind(items);
	items->wait_ns = MIN(2 * items->wait_ns, WAIT_MAX_NS);
}

struct item *items_next(const struct items *items)
{
	struct item *item = items->head;

	while (item != NULL && item->sent)
		item = item->next;
	return item;
}

void items_sent(struct items *items, struct item *item, int64_t now_ns)
{
	item->sent = true;
	if (items->again_ns == 0)
		items->again_ns = now_ns + items->wait_ns;
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
}

static void write_end(const struct job_end *end, Cluster__End *ret)
{
	cluster__end__init(ret);
	ret->exit_status = end->exit_status;
	ret->signal = end->signal;
}

void items_write(struct item *item, struct items_room *ret)
{
	cluster__item__init(&ret->item);
	ret->item.number = item->number;
	switch (item->kind) {
	case ITEM_ANSWER:
		convert_answer_out(&item->answer, &ret->answer);
		ret->item.answer = &ret->answer;
		break;
	case ITEM_WHERE:
		convert_where_out(&item->where, &ret->entered, &ret->where);
		ret->item.where = &ret->where;
		break;
	case ITEM_SLICES_COST:
		convert_slices_cost_out(&item->slices_cost, &ret->slices_cost);
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
	}
}
