/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/distance/expect.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

struct expect_table expect_defaults(void)
{
	struct expect_table table;

	for (int c = 0; c < CLASS_CNT; c++)
		table.of_class[c] = (struct expect_box){ { 0, 1 }, { 0, 1 }, { 0, 1 } };
	table.of_class[CLASS_HOST].beta[1] = 0.01;
	table.of_class[CLASS_IDLE].beta[1] = 0.01;
	table.of_class[CLASS_COMM].beta[1] = 0.3;
	return table;
}

static double outside(double value, const double range[2])
{
	if (isnan(value))
		return 0;
	return fmax(0, fmax(range[0] - value, value - range[1]));
}

double expect_distance(const struct expect_table *table, const struct fp_function *f)
{
	const struct expect_box *box = &table->of_class[f->class];

	return outside(f->beta_frac, box->beta) + outside(f->mu_frac, box->mu) +
	       outside(f->sigma_frac, box->sigma);
}

static int load_range(const char *path, const char *class, const char *key, const json_t *value,
		      double ret[2], struct err *err)
{
	double low, high;

	if (!json_is_array(value) || json_array_size(value) != 2 ||
	    !json_is_number(json_array_get(value, 0)) || !json_is_number(json_array_get(value, 1)))
		return err_set(err, EINVAL, "%s: %s.%s: expected [low, high]", path, class, key);
	low = json_number_value(json_array_get(value, 0));
	high = json_number_value(json_array_get(value, 1));
	if (!(low >= 0 && low <= high && high <= 1))
		return err_set(err, EINVAL,
			       "%s: %s.%s: expected 0 <= low <= high <= 1, found [%g, %g]", path,
			       class, key, low, high);
	ret[0] = low;
	ret[1] = high;
	return 0;
}

static int load_box(const char *path, const char *class, json_t *object, struct expect_box *box,
		    struct err *err)
{
	const char *key;
	json_t *value;

	if (!json_is_object(object))
		return err_set(err, EINVAL, "%s: %s: expected an object", path, class);
	json_object_foreach(object, key, value)
	{
		double *range = strcmp(key, "beta") == 0    ? box->beta
				: strcmp(key, "mu") == 0    ? box->mu
				: strcmp(key, "sigma") == 0 ? box->sigma
							    : NULL;
		int error;

		if (range == NULL)
			return err_set(err, EINVAL, "%s: %s.%s: expected beta, mu or sigma", path,
				       class, key);
		error = load_range(path, class, key, value, range, err);
		if (error < 0)
			return error;
	}
	return 0;
}

static int class_by_name(const char *name)
{
	for (int c = 0; c < CLASS_CNT; c++) {
		if (strcmp(event_class_name((enum event_class)c), name) == 0)
			return c;
	}
	return -1;
}

int expect_load(const char *path, struct expect_table *table, struct err *err)
{
	struct expect_table fresh = *table;
	json_error_t where;
	json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &where), *value;
	const char *key;
	int error = 0;

	if (root == NULL && where.line < 0) /* jansson could not open it, and names the path */
		return err_set(err, EINVAL, "%s", where.text);
	if (root == NULL)
		return err_set(err, EINVAL, "%s:%d:%d: %s", path, where.line, where.column,
			       where.text);
	if (!json_is_object(root))
		error = err_set(err, EINVAL, "%s: expected an object of classes", path);
	json_object_foreach(root, key, value)
	{
		int class = class_by_name(key);

		if (error == 0 && class < 0)
			error = err_set(err, EINVAL,
					"%s: %s: expected idle, host, comm, memory or compute",
					path, key);
		if (error == 0)
			error = load_box(path, key, value, &fresh.of_class[class], err);
	}
	json_decref(root);
	if (error == 0)
		*table = fresh;
	return error;
}
