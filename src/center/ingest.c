/* SPDX-License-Identifier: Apache-2.0 */
#include "center/ingest.h"

#include "base/strtab.h"

#include <errno.h>
#include <string.h>

#define WORKER_BITS 12 /* of a tag; the rest is the message */

/* A message, and what makes one fingerprint of a rank count more than another. */
struct letter {
	const uint8_t *data;
	size_t len;
	uint64_t hash; /* of its bytes */
	enum fpwire_detail detail;
};

/* A function as it came: its frame may still have no name. */
struct raw_function {
	struct fpname_id id;
	uint32_t place; /* in the dictionary; FRAME_NONE: outside of all frames */
	uint8_t class;
};

struct ingest {
	uint64_t profile;
	struct fpnames names;
	struct fpwire message; /* the latest; later, the one to fetch from */
	struct strtab hosts;
	VEC(struct letter) letters;
	VEC(struct raw_function) raw;
	struct idmap raw_by_place;
	VEC(uint32_t) raw_of; /* by entry of the message */
	struct idmap worker_by_rank;
	VEC(int64_t) start_ns;	/* by worker: when its window began */
	VEC(bool) dropped;	/* by worker: another one counts */
	struct columns columns; /* rows by number of raw function */
	struct ingest_counts counts;
	bool joined;
	size_t fetched; /* the letter that message holds while fingerprints are made; SIZE_MAX: none */
};

int ingest_open(uint64_t profile, struct ingest **ret)
{
	struct ingest *ingest = calloc(1, sizeof(*ingest));

	if (ingest == NULL || strtab_init(&ingest->hosts) < 0) {
		free(ingest);
		return -ENOMEM;
	}
	ingest->profile = profile;
	*ret = ingest;
	return 0;
}

struct ingest *ingest_close(struct ingest *ingest)
{
	if (ingest == NULL)
		return NULL;
	fpnames_done(&ingest->names);
	fpwire_done(&ingest->message);
	strtab_done(&ingest->hosts);
	vec_done(&ingest->letters);
	vec_done(&ingest->raw);
	vec_done(&ingest->raw_of);
	vec_done(&ingest->start_ns);
	vec_done(&ingest->dropped);
	idmap_done(&ingest->raw_by_place);
	idmap_done(&ingest->worker_by_rank);
	columns_done(&ingest->columns);
	free(ingest);
	return NULL;
}

struct ingest_counts ingest_counts(const struct ingest *ingest)
{
	return ingest->counts;
}

/* --- adding --- */

static int find_raw(struct ingest *ingest, const struct fpwire_entry *entry, uint32_t *ret)
{
	uint64_t key = (uint64_t)entry->place << 8 | entry->class;
	uint32_t found = idmap_get(&ingest->raw_by_place, key);

	if (found == IDMAP_NONE) {
		found = (uint32_t)ingest->raw.cnt;
		if (vec_push(&ingest->raw,
			     (struct raw_function){ entry->id, entry->place, entry->class }) < 0 ||
		    idmap_set(&ingest->raw_by_place, key, found) < 0)
			return -ENOMEM;
	}
	*ret = found;
	return 0;
}

static int find_entries(struct ingest *ingest)
{
	const struct fpwire *m = &ingest->message;
	int error = vec_reserve(&ingest->raw_of, m->entries.cnt + 1);

	for (size_t i = 0; i < m->entries.cnt && error == 0; i++)
		error = find_raw(ingest, &m->entries.data[i], &ingest->raw_of.data[i]);
	return error;
}

static uint64_t hash_at(const struct ingest *ingest, size_t worker)
{
	return ingest->letters.data[ingest->columns.workers.data[worker].tag >> WORKER_BITS].hash;
}

static enum fpwire_detail detail_at(const struct ingest *ingest, size_t worker)
{
	return ingest->letters.data[ingest->columns.workers.data[worker].tag >> WORKER_BITS].detail;
}

/* Whether worker a counts rather than b, of the same rank. Equal ones are the same bytes. */
static bool is_better(const struct ingest *ingest, size_t a, size_t b)
{
	const struct columns_worker *list = ingest->columns.workers.data;

	if (ingest->start_ns.data[a] != ingest->start_ns.data[b])
		return ingest->start_ns.data[a] > ingest->start_ns.data[b];
	if (detail_at(ingest, a) != detail_at(ingest, b))
		return detail_at(ingest, a) > detail_at(ingest, b);
	if (list[a].cnt != list[b].cnt)
		return list[a].cnt > list[b].cnt;
	if (hash_at(ingest, a) != hash_at(ingest, b))
		return hash_at(ingest, a) > hash_at(ingest, b);
	return (list[a].tag & ((1u << WORKER_BITS) - 1)) <
	       (list[b].tag & ((1u << WORKER_BITS) - 1));
}

/* Of two fingerprints of a rank one counts. */
static int file_worker(struct ingest *ingest, uint32_t worker)
{
	uint64_t rank = (uint64_t)ingest->columns.workers.data[worker].rank;
	uint32_t before = idmap_get(&ingest->worker_by_rank, rank);

	if (before == IDMAP_NONE)
		return idmap_set(&ingest->worker_by_rank, rank, worker);
	ingest->counts.repeated++;
	if (!is_better(ingest, worker, before)) {
		ingest->dropped.data[worker] = true;
		return 0;
	}
	ingest->dropped.data[before] = true;
	return idmap_set(&ingest->worker_by_rank, rank, worker);
}

static int add_rows(struct ingest *ingest, const struct fpwire_worker *x)
{
	const struct fpwire *m = &ingest->message;
	int error = 0;

	for (size_t row = x->first; row < x->first + x->cnt && error == 0; row++) {
		const uint16_t codes[COLUMN_CNT] = { m->columns[FPWIRE_BETA].data[row],
						     m->columns[FPWIRE_MU].data[row],
						     m->columns[FPWIRE_SIGMA].data[row],
						     m->columns[FPWIRE_SHARE].data[row] };

		error = columns_row(&ingest->columns, ingest->raw_of.data[m->entry_of.data[row]],
				    codes);
	}
	return error;
}

static int add_worker(struct ingest *ingest, const struct fpwire_worker *x, uint64_t tag,
		      const char *host)
{
	struct columns_worker worker = { .rank = x->fp.rank,
					 .world_size = x->fp.world_size,
					 .iterations =
						 (uint32_t)MAX(x->fp.iteration_cnt, (size_t)1),
					 .window_ns = x->fp.window_ns,
					 .lost_frac = job_lost_frac(&x->fp),
					 .host = host,
					 .tag = tag };

	if (columns_worker(&ingest->columns, worker) < 0 ||
	    vec_push(&ingest->start_ns, x->fp.window_start_wall_ns) < 0 ||
	    vec_push(&ingest->dropped, false) < 0 || add_rows(ingest, x) < 0)
		return -ENOMEM;
	return file_worker(ingest, (uint32_t)ingest->columns.workers.cnt - 1);
}

static int add_workers(struct ingest *ingest)
{
	const struct fpwire *m = &ingest->message;
	const char *text = NULL, *host = "";
	int error = find_entries(ingest);

	for (size_t i = 0; i < m->workers.cnt && error == 0; i++) {
		const struct fpwire_worker *x = &m->workers.data[i];
		uint64_t tag = (uint64_t)(ingest->letters.cnt - 1) << WORKER_BITS | i;

		if (x->fp.rank < 0) {
			ingest->counts.unranked++;
			continue;
		}
		/* The workers of a message share the text of their host. */
		if (x->fp.host != text) {
			uint32_t id;

			text = x->fp.host;
			id = strtab_intern(&ingest->hosts, text, strlen(text));
			if (id == STRTAB_NONE)
				return -ENOMEM;
			host = strtab_text(&ingest->hosts, id);
		}
		error = add_worker(ingest, x, tag, host);
	}
	return error;
}

int ingest_add(struct ingest *ingest, const void *data, size_t len, struct err *err)
{
	struct fpwire *m = &ingest->message;
	struct letter letter = { .data = data, .len = len };
	int error = fpwire_decode(m, data, len, &ingest->names, err);

	if (error == -EINVAL)
		ingest->counts.damaged++;
	if (error < 0)
		return error;
	if (m->type == FPWIRE_NAMES) {
		ingest->counts.names++;
		ingest->counts.messages++;
		return 0;
	}
	if (m->type != FPWIRE_FINGERPRINTS || m->profile != ingest->profile || ingest->joined) {
		ingest->counts.foreign++;
		return 0;
	}
	letter.detail = m->detail;
	memcpy(&letter.hash, letter.data + len - sizeof(letter.hash), sizeof(letter.hash));
	error = vec_push(&ingest->letters, letter);
	if (error == 0)
		error = add_workers(ingest);
	ingest->counts.messages += error == 0;
	return error == 0 ? 0
			  : err_set(err, -error, "out of memory for %zu workers",
				    ingest->columns.workers.cnt);
}

int ingest_ask(struct ingest *ingest, uint8_t ask_max, struct str *out)
{
	return fpwire_ask(&ingest->names, &ingest->message, ask_max, out);
}

/* --- names --- */

/* The frame of a place in the dictionary and those of its callers, callers first. */
static int resolve_place(struct ingest *ingest, uint32_t place, uint32_t *ret)
{
	const struct fpname *list = ingest->names.list.data;
	VEC(uint32_t) stack = { 0 };
	uint32_t frame = FRAME_NONE;
	int error = 0;

	for (; place != FRAME_NONE && error == 0; place = list[place].parent)
		error = vec_push(&stack, place);
	while (stack.cnt > 0 && error == 0) {
		const struct fpname *n = &list[stack.data[--stack.cnt]];

		error = columns_frame(&ingest->columns,
				      (struct job_frame){ n->key, frame, n->kind, n->text },
				      &frame);
	}
	vec_done(&stack);
	*ret = frame;
	return error;
}

static int resolve(struct ingest *ingest, const struct raw_function *raw, uint32_t *ret)
{
	uint32_t frame = FRAME_NONE;
	int error = 0;

	if (raw->place != FRAME_NONE && ingest->names.list.data[raw->place].text != NULL) {
		error = resolve_place(ingest, raw->place, &frame);
	} else if (raw->place != FRAME_NONE) {
		struct job_frame unknown = {
			{ raw->id.hi, raw->id.lo }, FRAME_NONE, KIND_OTHER, "unresolved"
		};

		ingest->counts.unresolved++;
		error = columns_frame(&ingest->columns, unknown, &frame);
	}
	return error == 0 ? columns_function(&ingest->columns, frame, raw->class, ret) : error;
}

struct numbered {
	struct raw_function raw;
	uint32_t idx;
};

static int numbered_cmp(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;
	int order = fpname_id_cmp(x->raw.id, y->raw.id);

	return order != 0 ? order : (x->raw.class > y->raw.class) - (x->raw.class < y->raw.class);
}

/* In the order of ids: of two spellings of one frame the same is taken each time. */
static int resolve_all(struct ingest *ingest)
{
	size_t cnt = ingest->raw.cnt;
	_cleanup_free_ struct numbered *order = calloc(cnt + 1, sizeof(*order));
	_cleanup_free_ uint32_t *function_of = calloc(cnt + 1, sizeof(*function_of));
	int error = order != NULL && function_of != NULL ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < cnt && error == 0; i++)
		order[i] = (struct numbered){ ingest->raw.data[i], i };
	if (error == 0)
		qsort(order, cnt, sizeof(*order), numbered_cmp);
	for (size_t i = 0; i < cnt && error == 0; i++)
		error = resolve(ingest, &order[i].raw, &function_of[order[i].idx]);
	if (error == 0)
		columns_renumber(&ingest->columns, function_of);
	return error;
}

/* --- comparing --- */

static void drop_repeated(struct ingest *ingest)
{
	struct columns *columns = &ingest->columns;
	size_t kept = 0;

	for (size_t w = 0; w < columns->workers.cnt; w++) {
		if (!ingest->dropped.data[w])
			columns->workers.data[kept++] = columns->workers.data[w];
	}
	columns->workers.cnt = kept;
}

static int fetch(void *arg, uint64_t tag, struct fingerprint *ret)
{
	struct ingest *ingest = arg;
	size_t number = tag >> WORKER_BITS;
	const struct letter *letter = &ingest->letters.data[number];
	int error = 0;

	/* Ranks of a host follow each other: its letter is decoded once. */
	if (number != ingest->fetched)
		error = fpwire_decode(&ingest->message, letter->data, letter->len, &ingest->names,
				      NULL);
	ingest->fetched = error == 0 ? number : SIZE_MAX;
	if (error < 0)
		return error;
	return fpwire_rebuild(&ingest->message, tag & ((1u << WORKER_BITS) - 1), &ingest->names,
			      ret, NULL);
}

static int localize_whole(struct ingest *ingest, const struct localize_options *options,
			  struct report *ret, struct err *err)
{
	size_t cnt = ingest->columns.workers.cnt, made = 0;
	_cleanup_free_ struct fingerprint *fps = calloc(cnt + 1, sizeof(*fps));
	_cleanup_free_ const struct fingerprint **list = calloc(cnt + 1, sizeof(*list));
	int error = fps != NULL && list != NULL ? 0 : -ENOMEM;

	for (; made < cnt && error == 0; made += error == 0) {
		error = fetch(ingest, ingest->columns.workers.data[made].tag, &fps[made]);
		list[made] = &fps[made];
	}
	if (error < 0)
		(void)err_set(err, -error, "%s", strerror(-error));
	else
		error = localize(list, cnt, options, ret, err);
	for (size_t i = 0; i < made; i++)
		fingerprint_done(&fps[i]);
	return error;
}

int ingest_localize(struct ingest *ingest, const struct localize_options *options, size_t whole_max,
		    struct report *ret, struct err *err)
{
	bool whole;
	int error;

	if (ingest->joined)
		return err_set(err, EINVAL, "this profile was compared before");
	ingest->joined = true;
	ingest->fetched = SIZE_MAX;
	drop_repeated(ingest);
	if (ingest->columns.workers.cnt == 0)
		return err_set(err, ENODATA, "no fingerprint");
	whole = ingest->columns.workers.cnt <= whole_max;
	error = resolve_all(ingest);
	if (error == 0 && !whole)
		error = columns_join(&ingest->columns);
	if (error < 0)
		return err_set(err, -error, "%s while joining %zu workers", strerror(-error),
			       ingest->columns.workers.cnt);
	if (whole)
		return localize_whole(ingest, options, ret, err);
	return columns_localize(&ingest->columns, options, fetch, ingest, ret, err);
}
