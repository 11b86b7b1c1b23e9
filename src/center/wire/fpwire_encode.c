/* SPDX-License-Identifier: Apache-2.0 */
/* From fingerprints to a message in memory, which the walk of fpwire.c writes. */
#include "base/strtab.h"
#include "center/wire/fpwire_walk.h"

#include <errno.h>
#include <string.h>

#define SIXTEENTHS 16

/* One function of one worker on its way to a row. */
struct pick {
	struct fpname_id id;
	uint8_t class, resource;
	uint32_t twin;	   /* earlier ones of its worker that are the same but for numbers */
	uint32_t function; /* in its fingerprint */
};

struct builder {
	const struct fpwire_options *options;
	struct fpwire *m;
	struct fpnames names; /* of all frames at hand */
	struct strtab texts;
	VEC(uint32_t) place_of;	   /* by frame of the fingerprint at hand: its place in names */
	VEC(struct pick) picks;	   /* by row */
	VEC(struct pick) distinct; /* by entry */
	VEC(uint32_t) row_of;	   /* by function of the fingerprint at hand; FRAME_NONE: none */
	bool *wanted;		   /* by place: its name travels */
	struct err *err;
};

static void builder_done(struct builder *b)
{
	fpnames_done(&b->names);
	strtab_done(&b->texts);
	vec_done(&b->place_of);
	vec_done(&b->picks);
	vec_done(&b->distinct);
	vec_done(&b->row_of);
	free(b->wanted);
}

static int broken(const struct builder *b, const struct fingerprint *fp, const char *what)
{
	return err_set(b->err, EINVAL, "fingerprint of rank %d: %s", fp->rank, what);
}

/* --- frames --- */

static int learn_frames(struct builder *b, const struct fingerprint *fp)
{
	int error = vec_reserve(&b->place_of, fp->frame_cnt + 1);

	for (size_t i = 0; i < fp->frame_cnt && error == 0; i++) {
		const struct fp_frame *f = &fp->frames[i];
		uint32_t parent = FRAME_NONE;

		if ((f->parent != FRAME_NONE && f->parent >= i) || f->kind >= KIND_CNT)
			return broken(b, fp, "a frame without a caller or kind");
		if (f->parent != FRAME_NONE)
			parent = b->place_of.data[f->parent];
		error = fpnames_learn(&b->names, parent, f->key, f->kind, f->name,
				      fpname_text_len(f->name), &b->place_of.data[i]);
	}
	return error;
}

/* --- functions --- */

static int pick_cmp(const void *a, const void *b)
{
	const struct pick *x = a, *y = b;
	int order = fpname_id_cmp(x->id, y->id);

	if (order != 0)
		return order;
	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	if (x->resource != y->resource)
		return x->resource < y->resource ? -1 : 1;
	return (x->twin > y->twin) - (x->twin < y->twin);
}

static int pick_function_cmp(const void *a, const void *b)
{
	const struct pick *x = a, *y = b;
	int order = pick_cmp(a, b);

	return order != 0 ? order : (x->function > y->function) - (x->function < y->function);
}

/* Numbers the functions of one worker that differ only in their measurements. */
static void number_twins(struct pick *picks, size_t cnt)
{
	qsort(picks, cnt, sizeof(*picks), pick_function_cmp);
	for (size_t i = 1; i < cnt; i++) {
		struct pick before = picks[i - 1];

		before.twin = 0;
		if (pick_cmp(&before, &picks[i]) == 0)
			picks[i].twin = picks[i - 1].twin + 1;
	}
}

static size_t function_cnt(const struct builder *b, const struct fingerprint *fp)
{
	size_t max = b->options->function_max;

	return max > 0 ? MIN(fp->function_cnt, max) : fp->function_cnt;
}

static int pick_functions(struct builder *b, const struct fingerprint *fp, struct fpwire_worker *x)
{
	size_t cnt = function_cnt(b, fp);
	int error = 0;

	x->first = b->picks.cnt;
	x->cnt = cnt;
	for (uint32_t i = 0; i < cnt && error == 0; i++) {
		const struct fp_function *f = &fp->functions[i];
		struct pick pick = { .class = f->class,
				     .resource = MIN(f->resource, (uint8_t)RESOURCE_CNT),
				     .function = i };

		if ((f->frame != FRAME_NONE && f->frame >= fp->frame_cnt) || f->class >= CLASS_CNT)
			return broken(b, fp, "a function without a frame or class");
		if (f->frame != FRAME_NONE)
			pick.id = b->names.list.data[b->place_of.data[f->frame]].id;
		error = vec_push(&b->picks, pick);
	}
	if (error == 0 && cnt > 0)
		number_twins(b->picks.data + x->first, cnt);
	for (size_t i = cnt; i < fp->function_cnt; i++)
		x->fp.rest_ns += MIN(fp->functions[i].share_ns, FPWIRE_TIME_MAX - x->fp.rest_ns);
	return error;
}

/* Entries are the distinct picks of all workers. */
static int make_entries(struct builder *b)
{
	struct pick *list;
	int error = vec_reserve(&b->distinct, b->picks.cnt + 1);

	if (error < 0)
		return error;
	list = b->distinct.data;
	for (size_t i = 0; i < b->picks.cnt; i++)
		list[i] = b->picks.data[i];
	if (b->picks.cnt > 0)
		qsort(list, b->picks.cnt, sizeof(*list), pick_cmp);
	for (size_t i = 0; i < b->picks.cnt && error == 0; i++) {
		struct fpwire_entry entry = { .id = list[i].id,
					      .place = FRAME_NONE,
					      .frame = FRAME_NONE,
					      .class = list[i].class,
					      .resource = list[i].resource };

		if (b->distinct.cnt > 0 && pick_cmp(&list[b->distinct.cnt - 1], &list[i]) == 0)
			continue;
		list[b->distinct.cnt++] = list[i];
		error = vec_push(&b->m->entries, entry);
	}
	return error;
}

static uint16_t sixteenths(double value)
{
	return value >= 0 ? code16_of_count((uint64_t)(fmin(value, 0x1p57) * SIXTEENTHS + 0.5))
			  : CODE16_ABSENT;
}

static uint16_t share_of_one(double frac)
{
	uint16_t code = code16_of_frac(frac);

	return code == CODE16_ABSENT ? code : MIN(code, (uint16_t)CODE16_ONE);
}

static void fill_row(const struct fp_function *f, uint16_t ret[static FPWIRE_COLUMN_CNT])
{
	ret[FPWIRE_SHARE] = code16_of_ns(f->share_ns);
	ret[FPWIRE_BETA] = share_of_one(fmax(f->beta_frac, 0));
	ret[FPWIRE_TOTAL] = code16_of_ns(f->total_ns);
	ret[FPWIRE_THREAD] = code16_of_ns(f->thread_ns);
	ret[FPWIRE_MU] = share_of_one(f->mu_frac);
	ret[FPWIRE_SIGMA] = share_of_one(f->sigma_frac);
	ret[FPWIRE_EXECUTIONS] = code16_of_count(f->executions);
	ret[FPWIRE_ELEMENTS] = sixteenths(f->elements);
	ret[FPWIRE_BYTES] = sixteenths(f->bytes);
}

static int make_rows(struct builder *b, const struct fingerprint *fp, const struct fpwire_worker *x)
{
	int error = 0;

	for (size_t row = x->first; row < x->first + x->cnt && error == 0; row++) {
		const struct pick *pick = &b->picks.data[row];
		const struct pick *entry =
			bsearch(pick, b->distinct.data, b->distinct.cnt, sizeof(*pick), pick_cmp);
		uint16_t codes[FPWIRE_COLUMN_CNT];

		fill_row(&fp->functions[pick->function], codes);
		error = vec_push(&b->m->entry_of, (uint32_t)(entry - b->distinct.data));
		for (int c = 0; c < FPWIRE_COLUMN_CNT && error == 0; c++)
			error = vec_push(&b->m->columns[c], codes[c]);
	}
	return error;
}

/* --- iterations and collectives --- */

static bool time_valid(int64_t ns)
{
	return ns >= 0 && ns <= FPWIRE_TIME_MAX;
}

static bool start_valid(int64_t ns)
{
	return ns >= -FPWIRE_TIME_MAX && ns <= FPWIRE_TIME_MAX;
}

static int add_iterations(struct builder *b, const struct fingerprint *fp)
{
	int error = 0;

	for (size_t i = 0; i < fp->iteration_cnt && error == 0; i++) {
		if (!start_valid(fp->iterations[i].start_ns) ||
		    !time_valid(fp->iterations[i].dur_ns))
			return broken(b, fp, "an iteration out of range");
		error = vec_push(&b->m->iterations, fp->iterations[i]);
	}
	return error;
}

static int map_functions(struct builder *b, const struct fingerprint *fp,
			 const struct fpwire_worker *x)
{
	if (vec_reserve(&b->row_of, fp->function_cnt + 1) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < fp->function_cnt; i++)
		b->row_of.data[i] = FRAME_NONE;
	for (uint32_t i = 0; i < x->cnt; i++)
		b->row_of.data[b->picks.data[x->first + i].function] = i;
	return 0;
}

/* Copies shares[first .. + cnt) for the wire: small and unlisted ones become one, at the end. */
static int add_shares(struct builder *b, const struct fingerprint *fp, size_t base, uint32_t *first,
		      uint32_t *cnt)
{
	size_t begin = b->m->shares.cnt;
	int64_t rest = 0;

	if ((uint64_t)*first + *cnt > fp->share_cnt)
		return broken(b, fp, "a collective without its shares");
	for (const struct fp_share *s = fp->shares + *first; s < fp->shares + *first + *cnt; s++) {
		uint32_t row = FRAME_NONE;

		if ((s->function != FRAME_NONE && s->function >= fp->function_cnt) ||
		    !time_valid(s->ns))
			return broken(b, fp, "a share without a function");
		if (s->function != FRAME_NONE && s->ns >= b->options->lead_min_ns)
			row = b->row_of.data[s->function];
		if (row == FRAME_NONE)
			rest = MIN(rest + s->ns, FPWIRE_TIME_MAX);
		else if (vec_push(&b->m->shares,
				  (struct fp_share){ row, code16_ns(code16_of_ns(s->ns)) }) < 0)
			return -ENOMEM;
	}
	if (rest > 0 &&
	    vec_push(&b->m->shares,
		     (struct fp_share){ FRAME_NONE, code16_ns(code16_of_ns(rest)) }) < 0)
		return -ENOMEM;
	*first = (uint32_t)(begin - base);
	*cnt = (uint32_t)(b->m->shares.cnt - begin);
	return 0;
}

static bool same_shares(const struct fp_share *x, const struct fp_share *y, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (x[i].function != y[i].function || x[i].ns != y[i].ns)
			return false;
	}
	return true;
}

static int add_leads(struct builder *b, const struct fingerprint *fp, size_t base,
		     struct fp_collective *c)
{
	const struct fp_share *shares;
	int error = add_shares(b, fp, base, &c->lead_first, &c->lead_cnt);

	if (error == 0)
		error = add_shares(b, fp, base, &c->host_first, &c->host_cnt);
	if (error < 0)
		return error;
	/* Where the launching thread is the critical path, once is enough. */
	shares = b->m->shares.data + base;
	if (c->lead_cnt == c->host_cnt &&
	    same_shares(shares + c->lead_first, shares + c->host_first, c->lead_cnt)) {
		b->m->shares.cnt -= c->host_cnt;
		c->host_first = c->lead_first;
	}
	return 0;
}

static int add_collective(struct builder *b, const struct fingerprint *fp, size_t base,
			  struct fp_collective c)
{
	struct fpwire_kind kind = { .group = c.group,
				    .name = c.name,
				    .bytes = c.bytes,
				    .group_size = c.group_size,
				    .group_known = c.group_known };
	int error = 0;

	if (!start_valid(c.start_ns) || !time_valid(c.dur_ns) || !time_valid(c.critical_ns) ||
	    !time_valid(c.lead_ns) || !time_valid(c.host_ns) || c.group_size < 0)
		return broken(b, fp, "a collective out of range");
	if (b->options->detail == FPWIRE_LEADS) {
		error = add_leads(b, fp, base, &c);
	} else {
		c.lead_first = c.lead_cnt = c.host_first = c.host_cnt = 0;
		c.lead_ns = c.host_ns = 0;
	}
	if (error == 0)
		error = vec_push(&b->m->kinds, kind);
	return error < 0 ? error : vec_push(&b->m->collectives, c);
}

static int add_collectives(struct builder *b, const struct fingerprint *fp, struct fpwire_worker *x)
{
	uint64_t max = b->options->collective_max;
	size_t skip = max > 0 && fp->collective_cnt > max ? fp->collective_cnt - max : 0;
	size_t base = b->m->shares.cnt;
	int error = 0;

	if (b->options->detail == FPWIRE_FUNCTIONS)
		skip = fp->collective_cnt;
	x->fp.collective_cnt = fp->collective_cnt - skip;
	x->fp.collective_dropped += b->options->detail != FPWIRE_FUNCTIONS ? skip : 0;
	for (size_t i = skip; i < fp->collective_cnt && error == 0; i++)
		error = add_collective(b, fp, base, fp->collectives[i]);
	x->fp.share_cnt = b->m->shares.cnt - base;
	return error;
}

static void sort_kinds(struct fpwire *m)
{
	size_t cnt = 0;

	if (m->kinds.cnt > 0)
		qsort(m->kinds.data, m->kinds.cnt, sizeof(*m->kinds.data), fpwire_kind_cmp);
	for (size_t i = 0; i < m->kinds.cnt; i++) {
		if (cnt == 0 || fpwire_kind_cmp(&m->kinds.data[cnt - 1], &m->kinds.data[i]) != 0)
			m->kinds.data[cnt++] = m->kinds.data[i];
	}
	m->kinds.cnt = cnt;
}

/* --- workers --- */

static int add_text(struct builder *b, const char *text, uint32_t *ret)
{
	text = text != NULL ? text : "";
	*ret = strtab_intern(&b->texts, text, fpname_text_len(text));
	return *ret == STRTAB_NONE ? -ENOMEM : 0;
}

static int add_worker(struct builder *b, const struct fingerprint *fp)
{
	struct fpwire_worker x = { .fp = *fp };
	const char **texts[FPWIRE_TEXT_CNT];
	int error = 0;

	if (fp->window_ns < 1 || fp->window_ns > FPWIRE_TIME_MAX || fp->rank < RANK_UNKNOWN ||
	    fp->world_size < -1 || !time_valid(fp->rest_ns) || fp->host_stats.gc_cnt < 0)
		return broken(b, fp, "a window out of range");
	for (int c = 0; c < CLASS_CNT; c++) {
		if (!time_valid(fp->class_ns[c]))
			return broken(b, fp, "the time of a class out of range");
	}
	wire_text_fields(&x.fp, texts);
	for (size_t i = 0; i < FPWIRE_TEXT_CNT && error == 0; i++)
		error = add_text(b, *texts[i], &x.texts[i]);
	if (error == 0)
		error = learn_frames(b, fp);
	if (error == 0)
		error = pick_functions(b, fp, &x);
	if (error == 0)
		error = map_functions(b, fp, &x);
	if (error == 0)
		error = add_iterations(b, fp);
	if (error == 0)
		error = add_collectives(b, fp, &x);
	return error < 0 ? error : vec_push(&b->m->workers, x);
}

/* --- names and texts --- */

static int want_nothing(struct builder *b)
{
	b->wanted = calloc(b->names.list.cnt + 1, sizeof(*b->wanted));
	return b->wanted != NULL ? 0 : -ENOMEM;
}

/* A name is of use only with those of its callers. */
static void want(struct builder *b, struct fpname_id id)
{
	uint32_t place;

	for (place = fpnames_find(&b->names, id); place != FRAME_NONE && !b->wanted[place];
	     place = b->names.list.data[place].parent)
		b->wanted[place] = true;
}

/* The wanted names, callers first as they were learnt. */
static int make_names(struct builder *b)
{
	_cleanup_free_ uint32_t *index = calloc(b->names.list.cnt + 1, sizeof(*index));
	int error = index != NULL ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < b->names.list.cnt && error == 0; i++) {
		const struct fpname *n = &b->names.list.data[i];
		struct fpwire_frame frame = {
			.key = n->key,
			.parent = n->parent == FRAME_NONE ? FRAME_NONE : index[n->parent],
			.kind = n->kind,
		};

		if (!b->wanted[i])
			continue;
		index[i] = (uint32_t)b->m->frames.cnt;
		error = add_text(b, n->text, &frame.text);
		if (error == 0)
			error = vec_push(&b->m->frames, frame);
	}
	for (size_t i = 0; i < b->m->entries.cnt && error == 0; i++) {
		uint32_t place = fpnames_find(&b->names, b->m->entries.data[i].id);

		if (place != FRAME_NONE && b->wanted[place])
			b->m->entries.data[i].frame = index[place];
	}
	return error;
}

struct ordered_text {
	const char *text;
	uint32_t id;
};

static int ordered_text_cmp(const void *a, const void *b)
{
	const struct ordered_text *x = a, *y = b;

	return strcmp(x->text, y->text);
}

static int push_text(struct fpwire *m, const char *text)
{
	size_t len = strlen(text) + 1;

	if (vec_push(&m->text_offs, (uint32_t)m->texts.cnt) < 0 ||
	    vec_reserve(&m->texts, m->texts.cnt + len) < 0)
		return -ENOMEM;
	memcpy(m->texts.data + m->texts.cnt, text, len);
	m->texts.cnt += len;
	return 0;
}

/* In the order of the alphabet neighbors have much in common. */
static int make_texts(struct builder *b)
{
	size_t cnt = b->texts.cnt;
	_cleanup_free_ struct ordered_text *order = calloc(cnt + 1, sizeof(*order));
	_cleanup_free_ uint32_t *index = calloc(cnt + 1, sizeof(*index));
	int error = order != NULL && index != NULL ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < cnt && error == 0; i++)
		order[i] = (struct ordered_text){ b->texts.entries[i].text, i };
	if (error == 0)
		qsort(order, cnt, sizeof(*order), ordered_text_cmp);
	for (uint32_t i = 0; i < cnt && error == 0; i++) {
		index[order[i].id] = i;
		error = push_text(b->m, order[i].text);
	}
	if (error < 0)
		return error;
	vec_foreach(f, &b->m->frames)
		f->text = index[f->text];
	vec_foreach(x, &b->m->workers) {
		for (size_t i = 0; i < ARRAY_SIZE(x->texts); i++)
			x->texts[i] = index[x->texts[i]];
	}
	return 0;
}

/* --- messages --- */

static int build_fingerprints(struct builder *b, const struct fingerprint *const *fps, size_t cnt)
{
	int error = fpwire_reset(b->m);

	b->m->profile = b->options->profile;
	b->m->detail = b->options->detail;
	for (size_t i = 0; i < cnt && error == 0; i++)
		error = add_worker(b, fps[i]);
	if (error == 0)
		error = make_entries(b);
	for (size_t i = 0; i < cnt && error == 0; i++)
		error = make_rows(b, fps[i], &b->m->workers.data[i]);
	sort_kinds(b->m);
	if (error == 0)
		error = want_nothing(b);
	for (size_t i = 0; i < b->m->entries.cnt && error == 0 && b->options->names; i++)
		want(b, b->m->entries.data[i].id);
	if (error == 0)
		error = make_names(b);
	return error < 0 ? error : make_texts(b);
}

static int build_names(struct builder *b, const struct fingerprint *const *fps, size_t cnt,
		       const struct fpname_id *ask, size_t ask_cnt)
{
	int error = fpwire_reset(b->m);

	b->m->type = FPWIRE_NAMES;
	for (size_t i = 0; i < cnt && error == 0; i++)
		error = learn_frames(b, fps[i]);
	if (error == 0)
		error = want_nothing(b);
	if (error < 0)
		return error;
	for (size_t i = 0; i < ask_cnt && ask != NULL; i++)
		want(b, ask[i]);
	for (size_t i = 0; i < b->names.list.cnt && ask == NULL; i++)
		b->wanted[i] = true;
	error = make_names(b);
	return error < 0 ? error : make_texts(b);
}

static int finish(struct builder *b, int error, struct str *out)
{
	if (error == 0)
		error = fpwire_write(b->m, out, b->err);
	if (error == -ENOMEM)
		(void)err_set(b->err, ENOMEM, "out of memory");
	if (error == -ENOBUFS)
		error = err_set(b->err, EINVAL, "too many names in one message");
	builder_done(b);
	fpwire_done(b->m);
	return error;
}

int fpwire_encode(const struct fingerprint *const *fps, size_t cnt,
		  const struct fpwire_options *options, struct str *out, struct err *err)
{
	struct fpwire message = { 0 };
	struct builder b = { .options = options, .m = &message, .err = err };
	int error = strtab_init(&b.texts);

	if (cnt > FPWIRE_WORKER_MAX)
		error = err_set(err, EINVAL, "%zu workers in one message", cnt);
	if (error == 0)
		error = build_fingerprints(&b, fps, cnt);
	return finish(&b, error, out);
}

int fpwire_encode_names(const struct fingerprint *const *fps, size_t cnt,
			const struct fpname_id *ask, size_t ask_cnt, struct str *out,
			struct err *err)
{
	struct fpwire message = { 0 };
	struct builder b = { .m = &message, .err = err };
	int error = strtab_init(&b.texts);

	if (error == 0)
		error = build_names(&b, fps, cnt, ask, ask_cnt);
	return finish(&b, error, out);
}
