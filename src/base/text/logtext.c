/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/logtext.h"

#include "base/clock.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define APP "perftracker"
#define DIM "\033[2m"
#define PLAIN "\033[0m"

static const char *const level_names[] = { "info", "warning", "error" };
static const char *const level_colors[] = { "", "\033[33m", "\033[31m" };

/* A part of the event's pairs; not terminated. */
struct span {
	const char *text;
	size_t len;
};

struct out {
	char *text;
	size_t len, size;
};

static void put_len(struct out *out, const char *text, size_t len)
{
	size_t room = out->size - out->len - 1; /* the newline */

	len = MIN(len, room);
	memcpy(out->text + out->len, text, len);
	out->len += len;
}

static void put(struct out *out, const char *text)
{
	put_len(out, text, strlen(text));
}

static void put_format(struct out *out, const char *fmt, ...) _printf_(2, 3);

static void put_format(struct out *out, const char *fmt, ...)
{
	char text[128];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	put(out, text);
}

static bool span_is(struct span span, const char *text)
{
	return span.len == strlen(text) && memcmp(span.text, text, span.len) == 0;
}

/* Whether a quote ends its value: call sites do not escape quotes inside of one. */
static bool ends_value(const char *behind)
{
	size_t len = strspn(behind, " "), key_len = strcspn(behind + len, " =\"");

	return behind[len] == '\0' || (len > 0 && key_len > 0 && behind[len + key_len] == '=');
}

static struct span take_quoted(const char **at)
{
	struct span ret = { .text = ++*at };
	const char *end = ret.text;

	while (*end != '\0' && !(*end == '"' && ends_value(end + 1)))
		end++;
	ret.len = (size_t)(end - ret.text);
	*at = end + (*end == '"');
	return ret;
}

/* Takes the next pair; a word without "=" has an empty value. */
static bool next_pair(const char **at, struct span *ret_key, struct span *ret_value)
{
	*at += strspn(*at, " ");
	if (**at == '\0')
		return false;
	*ret_key = (struct span){ *at, strcspn(*at, " =") };
	*at += ret_key->len;
	*ret_value = (struct span){ *at, 0 };
	if (**at != '=')
		return true;
	++*at;
	if (**at == '"') {
		*ret_value = take_quoted(at);
		return true;
	}
	*ret_value = (struct span){ *at, strcspn(*at, " ") };
	*at += ret_value->len;
	return true;
}

static bool find_value(const char *pairs, struct span key, struct span *ret)
{
	struct span known, value;

	while (next_pair(&pairs, &known, &value)) {
		if (known.len == key.len && memcmp(known.text, key.text, key.len) == 0) {
			*ret = value;
			return true;
		}
	}
	return false;
}

/* "2026-11-23T12:03:41.250+01:00" */
static void put_time(struct out *out, int64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / NSEC_PER_SEC);
	struct tm tm;
	char day[32], zone[8];

	(void)localtime_r(&seconds, &tm);
	(void)strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)strftime(zone, sizeof(zone), "%z", &tm);
	put_format(out, "%s.%03d%.3s:%s", day, (int)(wall_ns % NSEC_PER_SEC / NSEC_PER_MSEC), zone,
		   zone + 3);
}

static void put_escaped(struct out *out, struct span value)
{
	put(out, "\"");
	for (size_t i = 0; i < value.len; i++) {
		char c = value.text[i];

		if (c == '"' || c == '\\')
			put_format(out, "\\%c", c);
		else if ((unsigned char)c < 0x20)
			put_format(out, "\\u%04x", (unsigned)c);
		else
			put_len(out, &c, 1);
	}
	put(out, "\"");
}

static bool needs_quotes(struct span value)
{
	for (size_t i = 0; i < value.len; i++) {
		if ((unsigned char)value.text[i] <= ' ' || strchr("\"=\\", value.text[i]) != NULL)
			return true;
	}
	return value.len == 0;
}

/* Whether JSON has this number: digits, then at most one point and more digits. */
static bool is_number(struct span value)
{
	size_t at = value.len > 0 && value.text[0] == '-', digits = at, points = 0;

	for (; at < value.len; at++) {
		bool point = value.text[at] == '.';

		if (!point && !isdigit((unsigned char)value.text[at]))
			return false;
		points += point;
		if (point && (at == digits || at + 1 == value.len))
			return false;
	}
	return at > digits && points <= 1 &&
	       (value.text[digits] != '0' || at == digits + 1 || value.text[digits + 1] == '.');
}

static void put_logfmt(const struct log_event *event, struct out *out)
{
	const char *at = event->pairs;
	struct span key, value;

	put(out, "ts=");
	put_time(out, event->wall_ns);
	put_format(out, " level=%s app=" APP, level_names[event->level]);
	while (next_pair(&at, &key, &value)) {
		put(out, " ");
		put_len(out, key.text, key.len);
		put(out, "=");
		if (needs_quotes(value))
			put_escaped(out, value);
		else
			put_len(out, value.text, value.len);
	}
}

static void put_json(const struct log_event *event, struct out *out)
{
	const char *at = event->pairs;
	struct span key, value;

	put(out, "{\"ts\":\"");
	put_time(out, event->wall_ns);
	put_format(out, "\",\"level\":\"%s\",\"app\":\"" APP "\"", level_names[event->level]);
	while (next_pair(&at, &key, &value)) {
		put(out, ",");
		put_escaped(out, key);
		put(out, ":");
		if (is_number(value))
			put_len(out, value.text, value.len);
		else
			put_escaped(out, value);
	}
	put(out, "}");
}

static bool phrase_fits(const struct log_phrase *phrase, const char *pairs)
{
	struct span key, value;

	if (!find_value(pairs, (struct span){ "event", 5 }, &value) ||
	    !span_is(value, phrase->event))
		return false;
	if (phrase->when == NULL)
		return true;
	key = (struct span){ phrase->when, strcspn(phrase->when, "=") };
	return find_value(pairs, key, &value) && span_is(value, phrase->when + key.len + 1);
}

/* "{key}" or "{key|one|many}" in a phrase, and the value of the key. */
struct slot {
	size_t len; /* its braces included */
	struct span one, many, value;
};

/* Returns false if the line lacks the key. */
static bool find_slot(const char *at, const char *pairs, struct slot *ret)
{
	struct span key = { at + 1, strcspn(at + 1, "|}") };
	const char *end = key.text + key.len;

	*ret = (struct slot){ .value = { "?", 1 } };
	if (*end == '|') {
		ret->one = (struct span){ end + 1, strcspn(end + 1, "|}") };
		end = ret->one.text + ret->one.len;
	}
	if (*end == '|') {
		ret->many = (struct span){ end + 1, strcspn(end + 1, "}") };
		end = ret->many.text + ret->many.len;
	}
	ret->len = (size_t)(end - at) + (*end == '}');
	return find_value(pairs, key, &ret->value);
}

static void put_slot(const struct slot *slot, struct out *out)
{
	const struct span *word = span_is(slot->value, "1") ? &slot->one : &slot->many;

	put_len(out, slot->value.text, slot->value.len);
	if (slot->one.text == NULL)
		return;
	put(out, " ");
	put_len(out, word->text, word->len);
}

/* Whether the line has all keys up to the "]". */
static bool has_all(const char *at, const char *pairs)
{
	for (; *at != ']' && *at != '\0'; at++) {
		struct slot slot;

		if (*at == '{' && !find_slot(at, pairs, &slot))
			return false;
	}
	return true;
}

static void put_phrase(const char *text, const char *pairs, struct out *out)
{
	for (const char *at = text; *at != '\0'; at++) {
		struct slot slot;

		if (*at == '{') {
			(void)find_slot(at, pairs, &slot);
			put_slot(&slot, out);
			at += slot.len - 1;
		} else if (*at == '[' && !has_all(at, pairs)) {
			at += strcspn(at, "]");
		} else if (*at != '[' && *at != ']') {
			put_len(out, at, 1);
		}
	}
}

/* "baseline-adopted: step 4, why ..." for an event that no phrase knows. */
static void put_pairs(const char *pairs, struct out *out)
{
	const char *separator = ": ";
	struct span key, value;

	while (next_pair(&pairs, &key, &value)) {
		if (span_is(key, "event")) {
			put_len(out, value.text, value.len);
			continue;
		}
		put(out, separator);
		put_len(out, key.text, key.len);
		if (value.len > 0)
			put(out, " ");
		put_len(out, value.text, value.len);
		separator = ", ";
	}
}

static void put_people_head(const struct log_setup *setup, const struct log_event *event,
			    struct out *out)
{
	time_t seconds = (time_t)(event->wall_ns / NSEC_PER_SEC);
	struct tm tm;

	(void)localtime_r(&seconds, &tm);
	put_format(out, "%s" APP " %02d:%02d:%02d%s ", setup->color ? DIM : "", tm.tm_hour,
		   tm.tm_min, tm.tm_sec, setup->color ? PLAIN : "");
	if (event->level != LOG_INFO)
		put_format(out, "%s%s:%s ", setup->color ? level_colors[event->level] : "",
			   level_names[event->level], setup->color ? PLAIN : "");
}

static void put_people(const struct log_setup *setup, const struct log_event *event,
		       struct out *out)
{
	const struct log_phrase *phrase = NULL;

	for (size_t i = 0; i < setup->phrase_cnt && phrase == NULL; i++) {
		if (phrase_fits(&setup->phrases[i], event->pairs))
			phrase = &setup->phrases[i];
	}
	if (phrase != NULL && phrase->text[0] == '\0')
		return;
	put_people_head(setup, event, out);
	if (phrase != NULL)
		put_phrase(phrase->text, event->pairs, out);
	else
		put_pairs(event->pairs, out);
}

size_t logtext_render(const struct log_setup *setup, const struct log_event *event, char *ret,
		      size_t size)
{
	struct out out = { .text = ret, .size = size };

	if (setup->format == LOG_JSON)
		put_json(event, &out);
	else if (setup->format == LOG_PEOPLE)
		put_people(setup, event, &out);
	else
		put_logfmt(event, &out);
	if (out.len > 0)
		ret[out.len++] = '\n';
	return out.len;
}
