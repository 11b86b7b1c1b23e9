/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The message: "PTFW", version, type, then
 *
 *	fingerprints	profile, detail; texts; names; entries; workers, one by one;
 *			for each worker a bit per entry: whether it has that function;
 *			the columns; iterations; kinds of collectives, collectives
 *	names		texts; names
 *	ask		profile, detail; ids; ranks
 *
 * and a 64-bit hash of it all.
 */
#include "center/wire/fpwire_walk.h"
#include "format/fingerprint/funckey.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <xxhash.h>

#define TEXT_BYTES_MAX (16u << 20)
#define US 1000
#define KEY_GIVEN 0x80 /* in the byte of a frame's kind */

/* --- memory --- */

int fpwire_reset(struct fpwire *m)
{
	m->type = FPWIRE_FINGERPRINTS;
	m->profile = 0;
	m->detail = FPWIRE_FUNCTIONS;
	m->workers.cnt = m->entries.cnt = m->entry_of.cnt = m->frames.cnt = 0;
	m->asked.cnt = m->ranks.cnt = 0;
	m->iterations.cnt = m->collectives.cnt = m->shares.cnt = m->kinds.cnt = 0;
	m->texts.cnt = m->text_offs.cnt = m->last.cnt = 0;
	for (int c = 0; c < FPWIRE_COLUMN_CNT; c++)
		m->columns[c].cnt = 0;
	if (vec_reserve(&m->iterations, 1) < 0 || vec_reserve(&m->collectives, 1) < 0 ||
	    vec_reserve(&m->shares, 1) < 0 || vec_reserve(&m->texts, 1) < 0)
		return -ENOMEM;
	return 0;
}

void fpwire_done(struct fpwire *m)
{
	vec_done(&m->workers);
	vec_done(&m->entries);
	vec_done(&m->entry_of);
	for (int c = 0; c < FPWIRE_COLUMN_CNT; c++)
		vec_done(&m->columns[c]);
	vec_done(&m->frames);
	vec_done(&m->asked);
	vec_done(&m->ranks);
	vec_done(&m->iterations);
	vec_done(&m->collectives);
	vec_done(&m->shares);
	vec_done(&m->kinds);
	vec_done(&m->texts);
	vec_done(&m->text_offs);
	vec_done(&m->last);
	*m = (struct fpwire){ 0 };
}

const char *fpwire_text(const struct fpwire *m, uint32_t idx)
{
	return idx < m->text_offs.cnt ? m->texts.data + m->text_offs.data[idx] : "";
}

void wire_text_fields(struct fingerprint *fp, const char **ret[FPWIRE_TEXT_CNT])
{
	ret[0] = &fp->job_id;
	ret[1] = &fp->host;
	ret[2] = &fp->source;
	ret[3] = &fp->device_name;
	ret[4] = &fp->host_stats.other_name;
	ret[5] = &fp->host_stats.thief;
	ret[6] = &fp->host_stats.awaited;
}

void fpwire_bind(struct fpwire *m)
{
	size_t iteration = 0, collective = 0, share = 0;

	vec_foreach(w, &m->workers) {
		struct fingerprint *fp = &w->fp;
		const char **texts[FPWIRE_TEXT_CNT];

		wire_text_fields(fp, texts);
		for (size_t i = 0; i < FPWIRE_TEXT_CNT; i++)
			*texts[i] = fpwire_text(m, w->texts[i]);
		fp->iterations = m->iterations.data + iteration;
		fp->collectives = m->collectives.data + collective;
		fp->shares = m->shares.data + share;
		iteration += fp->iteration_cnt;
		collective += fp->collective_cnt;
		share += fp->share_cnt;
	}
}

uint64_t fpwire_hash(const void *data, size_t len)
{
	return XXH3_64bits(data, len);
}

/* --- texts and names --- */

/* A text as what it shares with the one before and what follows. */
static void wire_text(struct wire *w, struct fpwire *m, size_t idx)
{
	const char *before = idx > 0 ? fpwire_text(m, (uint32_t)idx - 1) : "", *text;
	uint64_t same = 0, more, limit = strlen(before);
	size_t off = wire_reads(w) ? m->texts.cnt : m->text_offs.data[idx];

	if (!wire_reads(w)) {
		text = m->texts.data + off;
		while (same < limit && text[same] == before[same])
			same++;
		more = strlen(text + same);
	}
	wire_uint(w, &same, limit, "a beginning that both texts have");
	wire_uint(w, &more, FPNAMES_TEXT_MAX - same, "a text of a few KB");
	if (w->error == 0 && off + same + more >= TEXT_BYTES_MAX)
		wire_fail(w, "less text", off + same + more);
	wire_resize(w, &m->texts, off + same + more + 1);
	if (w->error != 0)
		return;
	if (wire_reads(w)) {
		m->text_offs.data[idx] = (uint32_t)off;
		/* The vector may have moved. */
		memcpy(m->texts.data + off, idx > 0 ? fpwire_text(m, (uint32_t)idx - 1) : "", same);
	}
	wire_chars(w, m->texts.data + off + same, more);
	m->texts.data[off + same + more] = '\0';
}

static void wire_texts(struct wire *w, struct fpwire *m)
{
	size_t cnt = m->text_offs.cnt;

	wire_cnt(w, &cnt, 2, "a number of texts");
	wire_resize(w, &m->text_offs, cnt);
	for (size_t i = 0; i < cnt && w->error == 0; i++)
		wire_text(w, m, i);
}

/* The key that a frame should have: it follows from the names of the stack. */
static int expected_key(const struct fpwire *m, const struct fpwire_frame *f, struct funckey *ret)
{
	const struct funckey *above =
		f->parent != FRAME_NONE ? &m->frames.data[f->parent].key : NULL;
	struct str part = { 0 };
	int error;

	funckey_part((enum event_kind)f->kind, fpwire_text(m, f->text), &part);
	*ret = funckey_under(above, str_borrow(&part));
	error = str_error(&part);
	str_done(&part);
	return error;
}

/*
 * Left out where it is the expected one. Should the rules of keys ever differ between
 * writer and reader, the ids differ, too, and the name stays unknown rather than wrong.
 */
static void wire_key(struct wire *w, const struct fpwire *m, struct fpwire_frame *f, bool given)
{
	if (given) {
		wire_u64(w, &f->key.hi);
		wire_u64(w, &f->key.lo);
	} else if (w->error == 0 && wire_reads(w)) {
		w->error = expected_key(m, f, &f->key);
	}
}

static void set_id(const struct fpwire *m, struct fpwire_frame *f)
{
	const char *text = fpwire_text(m, f->text);

	f->id = fpname_id_of(f->parent != FRAME_NONE ? m->frames.data[f->parent].id : fpname_none,
			     f->key, f->kind, text, strlen(text));
}

static void wire_frame(struct wire *w, struct fpwire *m, size_t idx)
{
	struct fpwire_frame *f = &m->frames.data[idx];
	/* How far back the caller is; 0: none. */
	uint64_t back = f->parent == FRAME_NONE ? 0 : idx - f->parent, text = f->text;
	struct funckey expected = { 0, 0 };
	uint8_t kind;

	if (!wire_reads(w))
		w->error = expected_key(m, f, &expected);
	kind = f->kind | (funckey_equal(expected, f->key) ? 0 : KEY_GIVEN);
	wire_byte(w, &kind);
	f->kind = kind & (uint8_t)~KEY_GIVEN;
	if (w->error == 0 && f->kind >= KIND_CNT)
		wire_fail(w, "a kind", f->kind);
	wire_uint(w, &back, idx, "a caller that comes before the frame");
	f->parent = back == 0 ? FRAME_NONE : (uint32_t)(idx - back);
	wire_uint(w, &text, m->text_offs.cnt, "the index of a text");
	f->text = (uint32_t)text;
	/* Many frames may share one long text; each has to be kept. */
	w->name_bytes += strlen(fpwire_text(m, f->text));
	if (w->error == 0 && w->name_bytes > TEXT_BYTES_MAX)
		wire_fail(w, "shorter names", w->name_bytes);
	wire_key(w, m, f, (kind & KEY_GIVEN) != 0);
	set_id(m, f);
}

static void wire_names(struct wire *w, struct fpwire *m)
{
	size_t cnt = m->frames.cnt;

	wire_cnt(w, &cnt, 3, "a number of names");
	wire_resize(w, &m->frames, cnt);
	for (size_t i = 0; i < cnt && w->error == 0; i++) {
		if (wire_reads(w))
			m->frames.data[i] = (struct fpwire_frame){ .parent = FRAME_NONE };
		wire_frame(w, m, i);
	}
}

static void wire_int(struct wire *w, int *value, int base, int low, const char *expected)
{
	int64_t wide = *value;

	wire_within(w, &wide, base, low, INT32_MAX, expected);
	*value = (int)wide;
}

static void wire_profile(struct wire *w, struct fpwire *m)
{
	uint8_t detail = (uint8_t)m->detail;

	wire_uint(w, &m->profile, UINT64_MAX, "the number of a profile");
	wire_byte(w, &detail);
	if (w->error == 0 && detail >= FPWIRE_DETAIL_CNT)
		wire_fail(w, "a level of detail", detail);
	m->detail = (enum fpwire_detail)detail;
}

static void wire_asked_names(struct wire *w, struct fpwire *m)
{
	size_t cnt = m->asked.cnt;

	wire_cnt(w, &cnt, 16, "a number of ids");
	wire_resize(w, &m->asked, cnt);
	for (size_t i = 0; i < cnt && w->error == 0; i++) {
		wire_u64(w, &m->asked.data[i].hi);
		wire_u64(w, &m->asked.data[i].lo);
	}
}

static void wire_asked_ranks(struct wire *w, struct fpwire *m)
{
	size_t cnt = m->ranks.cnt;

	wire_cnt(w, &cnt, 1, "a number of ranks");
	wire_resize(w, &m->ranks, cnt);
	for (size_t i = 0; i < cnt && w->error == 0; i++)
		wire_int(w, &m->ranks.data[i], i > 0 ? m->ranks.data[i - 1] : 0, 0, "a rank");
}

static void wire_question(struct wire *w, struct fpwire *m)
{
	wire_profile(w, m);
	wire_asked_names(w, m);
	wire_asked_ranks(w, m);
}

/* --- workers --- */

/* Its frame is one of the message's own names, or an id. */
static void wire_entry(struct wire *w, const struct fpwire *m, struct fpwire_entry *e)
{
	uint8_t resource = e->resource < RESOURCE_CNT ? e->resource + 1 : 0;
	uint64_t both = (uint64_t)resource * 8 + e->class;
	uint64_t frame = e->frame == FRAME_NONE ? 0 : e->frame + 1ULL;

	wire_uint(w, &frame, m->frames.cnt, "one of the names");
	e->frame = frame == 0 ? FRAME_NONE : (uint32_t)frame - 1;
	if (frame == 0) {
		wire_u64(w, &e->id.hi);
		wire_u64(w, &e->id.lo);
	} else if (w->error == 0) {
		e->id = m->frames.data[e->frame].id;
	}
	wire_uint(w, &both, RESOURCE_CNT * 8 + CLASS_CNT - 1, "a resource and a class");
	if (w->error == 0 && both % 8 >= CLASS_CNT)
		wire_fail(w, "a class", both % 8);
	e->class = both % 8;
	e->resource = both / 8 > 0 ? (uint8_t)(both / 8 - 1) : RESOURCE_CNT;
}

static void wire_entries(struct wire *w, struct fpwire *m)
{
	size_t cnt = m->entries.cnt;

	wire_cnt(w, &cnt, 2, "a number of functions");
	wire_resize(w, &m->entries, cnt);
	for (size_t i = 0; i < cnt && w->error == 0; i++) {
		if (wire_reads(w))
			m->entries.data[i] = (struct fpwire_entry){ .place = FRAME_NONE };
		wire_entry(w, m, &m->entries.data[i]);
	}
}

static void wire_identity(struct wire *w, struct fpwire_worker *x, const struct fpwire_worker *prev,
			  size_t text_cnt)
{
	struct fingerprint *fp = &x->fp;
	const struct fingerprint *before = &prev->fp;

	for (size_t i = 0; i < ARRAY_SIZE(x->texts); i++) {
		/* Index + 1; 0: as the worker before. */
		uint64_t text = x->texts[i] == prev->texts[i] ? 0 : x->texts[i] + 1u;

		wire_uint(w, &text, text_cnt, "the index of a text");
		x->texts[i] = text == 0 ? prev->texts[i] : (uint32_t)text - 1;
	}
	wire_int(w, &fp->rank, before->rank < INT32_MAX ? before->rank + 1 : 0, RANK_UNKNOWN,
		 "a rank");
	wire_int(w, &fp->world_size, before->world_size, -1, "a world size");
	wire_near(w, &fp->pid, before->pid);
	wire_near(w, &fp->window_start_wall_ns, before->window_start_wall_ns);
	wire_within(w, &fp->window_ns, before->window_ns, 1, FPWIRE_TIME_MAX,
		    "the length of a window");
}

static void wire_us(struct wire *w, int64_t *ns)
{
	uint64_t us = (uint64_t)*ns / US;

	wire_uint(w, &us, FPWIRE_TIME_MAX / US, "a duration");
	*ns = (int64_t)us * US;
}

/*
 * Where classes add up to the window, idle is what the others leave of it: they are
 * rounded down, so that it cannot become negative.
 */
static void wire_classes(struct wire *w, struct fingerprint *fp, bool closed)
{
	int64_t rest = fp->window_ns;

	for (int c = 0; c < CLASS_CNT; c++) {
		if (c == CLASS_IDLE && closed)
			continue;
		wire_us(w, &fp->class_ns[c]);
		if (closed && w->error == 0 && fp->class_ns[c] > rest)
			wire_fail(w, "classes within the window", (uint64_t)fp->class_ns[c]);
		rest -= fp->class_ns[c];
	}
	if (closed)
		fp->class_ns[CLASS_IDLE] = rest;
}

static bool classes_closed(const struct fingerprint *fp)
{
	int64_t rest = fp->window_ns;

	for (int c = 0; c < CLASS_CNT; c++) {
		if (fp->class_ns[c] < 0 || fp->class_ns[c] > rest)
			return false;
		rest -= fp->class_ns[c];
	}
	return rest == 0;
}

static void wire_drops(struct wire *w, struct trace_drops *drops)
{
	uint64_t *fields[] = {
#define X(field, one, many) &drops->field,
		TRACE_DROP_LIST(X)
#undef X
	};
	uint64_t present = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		present |= (uint64_t)(*fields[i] > 0) << i;
	wire_uint(w, &present, (1ULL << ARRAY_SIZE(fields)) - 1, "known kinds of drops");
	for (size_t i = 0; i < ARRAY_SIZE(fields) && w->error == 0; i++) {
		*fields[i] = (present >> i & 1) != 0 ? *fields[i] : 0;
		if ((present >> i & 1) != 0)
			wire_uint(w, fields[i], UINT64_MAX, "a number of drops");
	}
}

/* A share, or -1 for one that isn't there. */
static void wire_frac(struct wire *w, double *frac, bool present)
{
	uint16_t code = code16_of_frac(*frac);

	if (present)
		wire_code(w, &code);
	if (w->error == 0 && present && code > CODE16_TOP)
		wire_fail(w, "a share of time", code);
	*frac = present ? code16_frac(code) : -1;
}

/* If the last bit of the first byte is set, a second byte follows with the fields of GPU hosts. */
static void wire_host(struct wire *w, struct fp_host *h)
{
	double *fracs[] = { &h->cpu_frac,	&h->run_delay_frac, &h->other_cpu_frac,
			    &h->thief_frac,	&h->psi_cpu_frac,   &h->psi_io_frac,
			    &h->psi_memory_frac };
	uint8_t present = 0,
		gpu = (uint8_t)((h->gpu_throttled_frac >= 0) | (h->gpu_clock_frac >= 0) << 1);
	uint64_t cnt = (uint64_t)h->gc_cnt;

	for (size_t i = 0; i < ARRAY_SIZE(fracs); i++)
		present |= (uint8_t)((*fracs[i] >= 0) << i);
	present |= (uint8_t)((gpu != 0) << 7);
	wire_byte(w, &present);
	for (size_t i = 0; i < ARRAY_SIZE(fracs); i++)
		wire_frac(w, fracs[i], (present >> i & 1) != 0);
	if ((present >> 7 & 1) != 0) {
		wire_byte(w, &gpu);
		if (w->error == 0 && (gpu == 0 || gpu > 3))
			wire_fail(w, "known values of a GPU", gpu);
	} else {
		gpu = 0;
	}
	wire_frac(w, &h->gpu_throttled_frac, (gpu & 1) != 0);
	wire_frac(w, &h->gpu_clock_frac, (gpu & 2) != 0);
	wire_time(w, &h->gc_ns);
	wire_uint(w, &cnt, INT64_MAX, "a count");
	h->gc_cnt = (int64_t)cnt;
}

static void wire_worker(struct wire *w, struct fpwire *m, struct fpwire_worker *x,
			const struct fpwire_worker *prev)
{
	struct fingerprint *fp = &x->fp;
	uint8_t flags = (uint8_t)(fp->has_device | fp->has_stacks << 1 | fp->iterations_known << 2 |
				  classes_closed(fp) << 3 |
				  (fp->iterations_known ? fp->iterations_by : 0) << 4);
	uint64_t resources = fp->resources;

	wire_identity(w, x, prev, m->text_offs.cnt);
	wire_byte(w, &flags);
	if (w->error == 0 && flags >> 4 >= ITERATIONS_BY_CNT)
		wire_fail(w, "known flags", flags);
	fp->has_device = (flags & 1) != 0;
	fp->has_stacks = (flags & 2) != 0;
	fp->iterations_known = (flags & 4) != 0;
	fp->iterations_by = (enum iterations_by)(flags >> 4);
	/* Messages of older senders have 0 in these bits. */
	if (fp->iterations_known && fp->iterations_by == ITERATIONS_UNKNOWN)
		fp->iterations_by = ITERATIONS_ANNOTATION;
	wire_classes(w, fp, (flags & 8) != 0);
	wire_time(w, &fp->rest_ns);
	wire_uint(w, &fp->collective_dropped, UINT64_MAX, "a number of drops");
	wire_uint(w, &resources, UINT32_MAX, "a set of resources");
	fp->resources = (uint32_t)resources;
	wire_uint(w, &fp->event_cnt, UINT64_MAX, "a number of events");
	wire_drops(w, &fp->drops);
	wire_host(w, &fp->host_stats);
}

static void wire_workers(struct wire *w, struct fpwire *m)
{
	struct fpwire_worker none = { 0 };
	size_t cnt = m->workers.cnt;

	fingerprint_init(&none.fp);
	wire_cnt(w, &cnt, 24, "a number of workers");
	if (w->error == 0 && cnt > FPWIRE_WORKER_MAX)
		wire_fail(w, "fewer workers", cnt);
	wire_resize(w, &m->workers, cnt);
	for (size_t i = 0; i < cnt && w->error == 0; i++) {
		struct fpwire_worker *x = &m->workers.data[i];

		if (wire_reads(w))
			*x = none;
		wire_worker(w, m, x, i > 0 ? x - 1 : &none);
	}
}

/* --- all --- */

static void wire_head(struct wire *w, struct fpwire *m)
{
	uint8_t version = FPWIRE_VERSION, type = (uint8_t)m->type;
	uint8_t magic[4] = { 'P', 'T', 'F', 'W' };

	for (size_t i = 0; i < sizeof(magic); i++) {
		uint8_t expected = magic[i];

		wire_byte(w, &magic[i]);
		if (w->error == 0 && magic[i] != expected)
			wire_fail(w, "a message between hosts and center (\"PTFW\")", magic[i]);
	}
	wire_byte(w, &version);
	if (w->error == 0 && version != FPWIRE_VERSION)
		wire_fail(w, "version 2", version);
	wire_byte(w, &type);
	if (w->error == 0 && (type < FPWIRE_FINGERPRINTS || type > FPWIRE_ASK))
		wire_fail(w, "a type of message", type);
	m->type = (enum fpwire_type)type;
}

static void wire_fingerprints(struct wire *w, struct fpwire *m)
{
	wire_profile(w, m);
	wire_texts(w, m);
	wire_names(w, m);
	wire_entries(w, m);
	wire_workers(w, m);
	wire_presence(w, m);
	wire_columns(w, m);
	wire_iterations(w, m);
	if (w->error == 0 && m->detail != FPWIRE_FUNCTIONS)
		wire_collectives(w, m);
}

void wire_message(struct wire *w, struct fpwire *m)
{
	wire_head(w, m);
	if (w->error != 0)
		return;
	switch (m->type) {
	case FPWIRE_FINGERPRINTS:
		wire_fingerprints(w, m);
		break;
	case FPWIRE_NAMES:
		wire_texts(w, m);
		wire_names(w, m);
		break;
	case FPWIRE_ASK:
		wire_question(w, m);
		break;
	}
	w->field_off = w->off;
	if (w->error == 0 && wire_reads(w) && w->off != w->len)
		wire_fail(w, "the end of the message", w->len - w->off);
}

int fpwire_write(struct fpwire *m, struct str *out, struct err *err)
{
	struct str body = { 0 };
	struct wire w = { .out = &body, .err = err };
	uint64_t hash;

	wire_message(&w, m);
	hash = htole64(fpwire_hash(str_borrow(&body), body.len));
	if (w.error == 0 && str_error(&body) == 0) {
		str_append_len(out, body.data, body.len);
		str_append_len(out, (const char *)&hash, sizeof(hash));
	}
	w.error = w.error != 0 ? w.error : str_error(&body);
	str_done(&body);
	return w.error != 0 ? w.error : str_error(out);
}
