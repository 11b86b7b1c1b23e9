/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table per command describes its options. The parser, --help, the OPTIONS section of
 * the man page and the completions of three shells are made from it (optiondocs.h), so a new
 * option is one row. A row names the field that receives the value; the type of the field
 * decides how the value is parsed.
 */
#pragma once

#include "base/base.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum option_type {
	OPTION_OTHER, /* needs a setter */
	OPTION_FLAG,
	OPTION_TEXT,
	OPTION_DOUBLE,
	OPTION_INT,
	OPTION_UINT, /* also enums: words are stored as their index */
	OPTION_INT64,
	OPTION_UINT64,
};

enum option_unit {
	UNIT_PLAIN,
	UNIT_PERCENT, /* given as a percentage, stored as a fraction */
	UNIT_SECONDS, /* given in seconds, stored in ns */
};

struct option_row {
	const char *name;     /* without "--"; NULL: help is the title of a group of options */
	char letter;	      /* 0: no short form */
	const char *argument; /* "FILE", "N"; NULL: none, or words */
	const char *words;    /* "text|json": the values; a word in capitals is any text */
	const char *help;     /* a fragment: "write the report to FILE" */
	const char *preset;   /* the default, for people; NULL: none */
	const char *more;     /* sentences for the man page only; "--x" and `x` become bold */
	size_t off;
	enum option_type type;
	enum option_unit unit;
	double low, high;     /* of numbers; high 0: not limited */
	bool not_a_setting;   /* for the command line only (settings.h) */
	const char *expected; /* in complaints; NULL: made from words, low and high */
	/*
	 * Replaces the parser. field: options + off; text: NULL without an argument. Returns 0 or
	 * -EINVAL, with a line in err if "expected" does not say what is wrong.
	 */
	int (*set)(void *field, const char *text, struct err *err);
};

/* Initializes off and type of a row. */
#define OPTION_FIELD(owner, field) \
	.off = offsetof(owner, field), .type = _Generic(((owner *)NULL)->field, \
		bool: OPTION_FLAG, const char *: OPTION_TEXT, double: OPTION_DOUBLE, \
		int: OPTION_INT, unsigned int: OPTION_UINT, int64_t: OPTION_INT64, \
		uint64_t: OPTION_UINT64, default: OPTION_OTHER)

enum option_order {
	ORDER_ANY,     /* options may follow arguments */
	ORDER_BEFORE,  /* the first argument ends the options: a command line follows */
	ORDER_AS_GIVEN /* each argument is passed to take_argument, in order with the options */
};

struct command {
	const char *name;
	const char *summary;  /* one line of "perftracker --help" */
	const char *usage;    /* lines behind "perftracker NAME " */
	const char *about;    /* paragraphs in front of the options */
	const char *notes;    /* paragraphs behind the options; may be NULL */
	const char *examples; /* lines */
	const struct option_row *rows;
	size_t row_cnt;
	enum option_order order;
	int (*take_argument)(void *options, char *text); /* 0 or -ENOMEM; ORDER_AS_GIVEN */
	/* argv[0] names the command. Returns an exit status. */
	int (*run)(const struct command *command, int argc, char **argv);
};

#define OPTION_ROWS_MAX 64

/* Initializes rows and row_cnt; does not compile if a table is too long for the parser. */
#define OPTION_ROWS(table)                                                                       \
	.rows = (table), .row_cnt = ARRAY_SIZE(table) +                                          \
				    0 * sizeof(struct {                                          \
					    _Static_assert(ARRAY_SIZE(table) <= OPTION_ROWS_MAX, \
							   "raise OPTION_ROWS_MAX");             \
					    char unused;                                         \
				    })

#define OPTIONS_PARSED (-1)

/*
 * Fills options, the struct that the rows' fields belong to. Returns OPTIONS_PARSED with the
 * index of the first argument in *ret_first, or an exit status: --help was printed, or a
 * complaint was.
 */
_must_check_ int optiontable_parse(const struct command *command, int argc, char **argv,
				   void *options, int *ret_first);

/*
 * The same; ret_texts[OPTION_ROWS_MAX] gets the last value given for each row, "" without one.
 */
_must_check_ int optiontable_parse_noting(const struct command *command, int argc, char **argv,
					  void *options, const char **ret_texts, int *ret_first);

/* Parses the value of one row into options. Returns 0, or -EINVAL with a line in err. */
_must_check_ int optiontable_set(const struct option_row *row, const char *text, void *options,
				 struct err *err);

/* Complains unless no argument follows the options. Returns OPTIONS_PARSED or EXIT_USAGE. */
_must_check_ int optiontable_no_more(const struct command *command, int argc, char **argv,
				     int first);

static inline bool optiontable_has_value(const struct option_row *row)
{
	return row->argument != NULL || row->words != NULL;
}
