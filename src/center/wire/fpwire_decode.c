/* SPDX-License-Identifier: Apache-2.0 */
/* From a message to its columns, and from columns to fingerprints. */
#include "base/idmap.h"
#include "center/wire/fpwire_walk.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define SIXTEENTHS 16
#define ASKED_MAX 4096u /* ids in one question; the others wait for the next */

/* --- messages --- */

/* Files the names that a message brings. */
static int learn_names(struct fpwire *m, struct fpnames *names)
{
	_cleanup_free_ uint32_t *places = calloc(m->frames.cnt + 1, sizeof(*places));
	int error = places != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; i < m->frames.cnt && error == 0; i++) {
		const struct fpwire_frame *f = &m->frames.data[i];
		uint32_t parent = f->parent == FRAME_NONE ? FRAME_NONE : places[f->parent];

		const char *text = fpwire_text(m, f->text);

		error = fpnames_learn(names, parent, f->key, f->kind, text, strlen(text),
				      &places[i]);
	}
	return error;
}

static int resolve(struct fpwire *m, struct fpnames *names)
{
	int error = m->frames.cnt > 0 ? learn_names(m, names) : 0;

	for (size_t i = 0; i < m->entries.cnt && error == 0; i++)
		error = fpnames_place(names, m->entries.data[i].id, &m->entries.data[i].place);
	return error;
}

static int check_hash(const uint8_t *bytes, size_t len, struct err *err)
{
	uint64_t hash;

	if (len < sizeof(hash))
		return err_set(err, EINVAL, "message:0: expected a message, found %zu bytes", len);
	memcpy(&hash, bytes + len - sizeof(hash), sizeof(hash));
	if (le64toh(hash) != fpwire_hash(bytes, len - sizeof(hash)))
		return err_set(err, EINVAL,
			       "message:%zu: expected %016" PRIx64
			       ", the hash of the bytes before, found %016" PRIx64,
			       len - sizeof(hash), fpwire_hash(bytes, len - sizeof(hash)),
			       le64toh(hash));
	return 0;
}

static int decode(struct fpwire *m, const uint8_t *bytes, size_t len, struct fpnames *names,
		  struct err *err)
{
	struct wire w = { .data = bytes, .len = len - sizeof(uint64_t), .err = err };
	int error = check_hash(bytes, len, err);

	if (error < 0)
		return error;
	wire_message(&w, m);
	if (w.error == 0 && names != NULL)
		w.error = resolve(m, names);
	if (w.error == 0)
		fpwire_bind(m);
	return w.error;
}

int fpwire_decode(struct fpwire *m, const void *data, size_t len, struct fpnames *names,
		  struct err *err)
{
	int error = fpwire_reset(m);

	if (error == 0)
		error = decode(m, data, len, names, err);
	if (error < 0)
		m->workers.cnt = m->entries.cnt = m->frames.cnt = m->asked.cnt = m->ranks.cnt = 0;
	if (error == -ENOMEM)
		return err_set(err, ENOMEM, "message: out of memory");
	if (error == -ENOBUFS)
		return err_set(err, ENOBUFS,
			       "message: expected names that the dictionary has room for, found "
			       "more than %u in all",
			       FPNAMES_MAX);
	return error;
}

int fpwire_ask(struct fpnames *names, const struct fpwire *message, uint8_t ask_max,
	       struct str *out)
{
	struct fpwire question = { .type = FPWIRE_ASK, .profile = message->profile };
	int error = 0;

	for (size_t i = 0; i < message->entries.cnt && error == 0; i++) {
		uint32_t place = message->entries.data[i].place;
		struct fpname *name = place != FRAME_NONE ? &names->list.data[place] : NULL;

		if (name == NULL || name->text != NULL || name->asked >= ask_max ||
		    question.asked.cnt == ASKED_MAX)
			continue;
		error = vec_push(&question.asked, name->id);
		name->asked += error == 0;
	}
	if (error == 0 && question.asked.cnt > 0)
		error = fpwire_write(&question, out, NULL);
	if (error == 0)
		error = (int)question.asked.cnt;
	fpwire_done(&question);
	return error;
}

int fpwire_ask_workers(uint64_t profile, enum fpwire_detail detail, const int *ranks, size_t cnt,
		       struct str *out)
{
	struct fpwire question = { .type = FPWIRE_ASK, .profile = profile, .detail = detail };
	int error = 0;

	for (size_t i = 0; i < cnt && error == 0; i++)
		error = vec_push(&question.ranks, ranks[i]);
	if (error == 0)
		error = fpwire_write(&question, out, NULL);
	fpwire_done(&question);
	return error;
}

/* --- fingerprints --- */

struct rebuild {
	const struct fpwire *m;
	const struct fpwire_worker *x;
	const struct fpnames *names;
	struct fingerprint *fp;
	VEC(struct fp_frame) frames;
	struct idmap frame_of; /* low half of the id -> frame */
	VEC(uint32_t) stack;   /* places whose frames are missing, callers last */
	uint32_t *function_of; /* row -> function */
	size_t unresolved;
};

struct ranked {
	uint16_t share;
	uint32_t row;
};

/* Largest first; rows are in the order of ids. */
static int ranked_cmp(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->share != y->share)
		return x->share < y->share ? 1 : -1;
	return (x->row > y->row) - (x->row < y->row);
}

static int push_frame(struct rebuild *r, struct fpname_id id, struct fp_frame frame)
{
	frame.name = arena_strdup(&r->fp->arena, frame.name);
	if (frame.name == NULL || vec_push(&r->frames, frame) < 0)
		return -ENOMEM;
	return idmap_set(&r->frame_of, id.lo, (uint32_t)r->frames.cnt - 1);
}

/* A frame whose name has not come: its id keeps it apart from others. */
static int push_unresolved(struct rebuild *r, struct fpname_id id)
{
	r->unresolved++;
	return push_frame(r, id,
			  (struct fp_frame){ .key = { id.hi, id.lo },
					     .parent = FRAME_NONE,
					     .kind = KIND_OTHER,
					     .name = "unresolved" });
}

static uint32_t frame_at(const struct rebuild *r, uint32_t place)
{
	return idmap_get(&r->frame_of, r->names->list.data[place].id.lo);
}

/* Adds a place's frame and those of its callers, callers first. */
static int push_resolved(struct rebuild *r, uint32_t place)
{
	const struct fpname *list = r->names->list.data;
	uint32_t parent = FRAME_NONE;
	int error = 0;

	for (r->stack.cnt = 0; place != FRAME_NONE && error == 0; place = list[place].parent) {
		parent = frame_at(r, place);
		if (parent != IDMAP_NONE)
			break;
		error = vec_push(&r->stack, place);
	}
	while (r->stack.cnt > 0 && error == 0) {
		const struct fpname *n = &list[r->stack.data[--r->stack.cnt]];

		error = push_frame(r, n->id, (struct fp_frame){ n->key, parent, n->kind, n->text });
		parent = (uint32_t)r->frames.cnt - 1;
	}
	return error;
}

static int add_frame(struct rebuild *r, const struct fpwire_entry *entry, uint32_t *ret)
{
	bool known = entry->place != FRAME_NONE && r->names->list.data[entry->place].text != NULL;
	int error = 0;

	if (idmap_get(&r->frame_of, entry->id.lo) == IDMAP_NONE)
		error = known ? push_resolved(r, entry->place) : push_unresolved(r, entry->id);
	*ret = idmap_get(&r->frame_of, entry->id.lo);
	return error;
}

static uint16_t at(const struct rebuild *r, enum fpwire_column column, uint32_t row)
{
	return r->m->columns[column].data[r->x->first + row];
}

static double sixteenths(uint16_t code)
{
	return code == CODE16_ABSENT ? -1 : (double)code16_count(code) / SIXTEENTHS;
}

static void fill_function(const struct rebuild *r, uint32_t row, const struct fpwire_entry *entry,
			  struct fp_function *ret)
{
	*ret = (struct fp_function){
		.class = entry->class,
		.resource = entry->resource,
		.beta_frac = code16_frac(at(r, FPWIRE_BETA, row)),
		.mu_frac = code16_frac(at(r, FPWIRE_MU, row)),
		.sigma_frac = code16_frac(at(r, FPWIRE_SIGMA, row)),
		.executions = code16_count(at(r, FPWIRE_EXECUTIONS, row)),
		.total_ns = code16_ns(at(r, FPWIRE_TOTAL, row)),
		.share_ns = code16_ns(at(r, FPWIRE_SHARE, row)),
		.thread_ns = code16_ns(at(r, FPWIRE_THREAD, row)),
		.elements = sixteenths(at(r, FPWIRE_ELEMENTS, row)),
		.bytes = sixteenths(at(r, FPWIRE_BYTES, row)),
	};
	ret->critical_ns = llround(ret->beta_frac * (double)r->fp->window_ns);
}

static int add_functions(struct rebuild *r)
{
	struct fingerprint *fp = r->fp;
	size_t cnt = r->x->cnt;
	_cleanup_free_ struct ranked *order = calloc(cnt + 1, sizeof(*order));
	int error = 0;

	fp->functions = arena_calloc(&fp->arena, cnt + 1, sizeof(*fp->functions));
	r->function_of = arena_calloc(&fp->arena, cnt + 1, sizeof(*r->function_of));
	if (order == NULL || fp->functions == NULL || r->function_of == NULL)
		return -ENOMEM;
	for (uint32_t row = 0; row < cnt; row++)
		order[row] = (struct ranked){ at(r, FPWIRE_SHARE, row), row };
	qsort(order, cnt, sizeof(*order), ranked_cmp);
	for (uint32_t i = 0; i < cnt && error == 0; i++) {
		uint32_t row = order[i].row;
		const struct fpwire_entry *entry =
			&r->m->entries.data[r->m->entry_of.data[r->x->first + row]];

		fill_function(r, row, entry, &fp->functions[i]);
		fp->functions[i].frame = FRAME_NONE;
		r->function_of[row] = i;
		if (!fpname_id_equal(entry->id, fpname_none))
			error = add_frame(r, entry, &fp->functions[i].frame);
	}
	fp->function_cnt = cnt;
	return error;
}

static void *copy(struct fingerprint *fp, const void *array, size_t cnt, size_t size)
{
	void *mine = arena_calloc(&fp->arena, cnt + 1, size);

	if (mine != NULL && cnt > 0)
		memcpy(mine, array, cnt * size);
	return mine;
}

static int copy_arrays(struct rebuild *r)
{
	const struct fingerprint *from = &r->x->fp;
	struct fingerprint *fp = r->fp;

	fp->frame_cnt = r->frames.cnt;
	fp->frames = copy(fp, r->frames.data, r->frames.cnt, sizeof(*fp->frames));
	fp->iterations = copy(fp, from->iterations, from->iteration_cnt, sizeof(*fp->iterations));
	fp->shares = copy(fp, from->shares, from->share_cnt, sizeof(*fp->shares));
	fp->collectives =
		copy(fp, from->collectives, from->collective_cnt, sizeof(*fp->collectives));
	if (fp->frames == NULL || fp->iterations == NULL || fp->shares == NULL ||
	    fp->collectives == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < fp->share_cnt; i++) {
		if (fp->shares[i].function != FRAME_NONE)
			fp->shares[i].function = r->function_of[fp->shares[i].function];
	}
	return 0;
}

static int copy_texts(struct fingerprint *fp)
{
	const char **texts[FPWIRE_TEXT_CNT];

	wire_text_fields(fp, texts);
	for (size_t i = 0; i < FPWIRE_TEXT_CNT; i++) {
		*texts[i] = arena_strdup(&fp->arena, *texts[i]);
		if (*texts[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

int fpwire_rebuild(const struct fpwire *message, size_t worker, const struct fpnames *names,
		   struct fingerprint *ret, size_t *ret_unresolved)
{
	const struct fpwire_worker *x = &message->workers.data[worker];
	struct fingerprint fp = x->fp;
	struct rebuild r = { .m = message, .x = x, .names = names, .fp = &fp };
	int error;

	arena_init(&fp.arena);
	error = copy_texts(&fp);
	if (error == 0)
		error = add_functions(&r);
	if (error == 0)
		error = copy_arrays(&r);
	idmap_done(&r.frame_of);
	vec_done(&r.frames);
	vec_done(&r.stack);
	if (error < 0) {
		arena_done(&fp.arena);
		return error;
	}
	*ret = fp;
	if (ret_unresolved != NULL)
		*ret_unresolved = r.unresolved;
	return 0;
}
