/* SPDX-License-Identifier: Apache-2.0 */
#include "report/json_pictures.h"

static json_t *stretch_object(struct json_writer *w, const struct report_stretch *stretch)
{
	json_t *object = json_object();

	jsonwriter_put(w, object, "begin_ms", jsonwriter_number(stretch->begin_ms));
	jsonwriter_put(w, object, "end_ms", jsonwriter_number(stretch->end_ms));
	jsonwriter_put(w, object, "class_frac", jsonwriter_classes(w, stretch->class_frac));
	return object;
}

static json_t *meeting_object(struct json_writer *w, const struct report_meeting *meeting)
{
	json_t *object = json_object();

	jsonwriter_put(w, object, "begin_ms", jsonwriter_number(meeting->begin_ms));
	jsonwriter_put(w, object, "end_ms", jsonwriter_number(meeting->end_ms));
	jsonwriter_put(w, object, "wait_ms", jsonwriter_number(meeting->wait_ms));
	return object;
}

static json_t *lane_object(struct json_writer *w, const struct report_lane *lane)
{
	json_t *object = json_object(), *stretches = json_array(), *meetings = json_array();

	jsonwriter_put(w, object, "rank", json_integer(lane->rank));
	jsonwriter_put(w, object, "role", jsonwriter_text(lane->role));
	for (size_t i = 0; i < lane->stretch_cnt; i++)
		jsonwriter_push(w, stretches, stretch_object(w, &lane->stretches[i]));
	for (size_t i = 0; i < lane->meeting_cnt; i++)
		jsonwriter_push(w, meetings, meeting_object(w, &lane->meetings[i]));
	jsonwriter_put(w, object, "stretches", stretches);
	jsonwriter_put(w, object, "collectives", meetings);
	return object;
}

json_t *json_lanes(struct json_writer *w, const struct report_lanes *lanes)
{
	json_t *object, *list;

	if (lanes->lane_cnt == 0)
		return json_null();
	object = json_object();
	list = json_array();
	jsonwriter_put(w, object, "step",
		       lanes->step_known ? json_integer((json_int_t)lanes->step) : json_null());
	jsonwriter_put(w, object, "length_ms", jsonwriter_number(lanes->length_ms));
	jsonwriter_put(w, object, "aligned", json_boolean(lanes->aligned));
	for (size_t i = 0; i < lanes->lane_cnt; i++)
		jsonwriter_push(w, list, lane_object(w, &lanes->lanes[i]));
	jsonwriter_put(w, object, "ranks", list);
	return object;
}

static json_t *node_object(struct json_writer *w, const struct report_flame_node *node, bool peers)
{
	json_t *object = json_object();

	jsonwriter_put(w, object, "name", jsonwriter_text(node->name));
	jsonwriter_put(w, object, "parent",
		       node->parent >= 0 ? json_integer(node->parent) : json_null());
	jsonwriter_put(w, object, "class", jsonwriter_text(event_class_name(node->class)));
	jsonwriter_put(w, object, "ms", jsonwriter_number(node->ms));
	jsonwriter_put(w, object, "peers_ms",
		       peers ? jsonwriter_number(node->peers_ms) : json_null());
	jsonwriter_put(w, object, "ranks",
		       node->rank_cnt > 0 ? jsonwriter_ranks(node->ranks, node->rank_cnt)
					  : json_null());
	return object;
}

json_t *json_flame(struct json_writer *w, const struct report_flame *flame)
{
	json_t *object, *list;

	if (flame->node_cnt == 0)
		return json_null();
	object = json_object();
	list = json_array();
	jsonwriter_put(w, object, "rank", json_integer(flame->rank));
	jsonwriter_put(w, object, "culprit", json_boolean(flame->culprit));
	jsonwriter_put(w, object, "peers", json_integer((json_int_t)flame->peer_cnt));
	jsonwriter_put(w, object, "compared",
		       flame->compared_cnt > 0
			       ? jsonwriter_ranks(flame->compared, flame->compared_cnt)
			       : json_null());
	for (size_t i = 0; i < flame->node_cnt; i++)
		jsonwriter_push(w, list, node_object(w, &flame->nodes[i], flame->peer_cnt > 0));
	jsonwriter_put(w, object, "functions", list);
	return object;
}

static json_t *point_object(struct json_writer *w, const struct report_pace_point *point)
{
	json_t *object = json_object();

	jsonwriter_put(w, object, "step", json_integer((json_int_t)point->step));
	jsonwriter_put(w, object, "min_ms", jsonwriter_number(point->min_ms));
	jsonwriter_put(w, object, "mean_ms", jsonwriter_number(point->mean_ms));
	jsonwriter_put(w, object, "max_ms", jsonwriter_number(point->max_ms));
	return object;
}

json_t *json_pace(struct json_writer *w, const struct report_pace *pace)
{
	json_t *object, *list;

	if (pace->point_cnt == 0)
		return json_null();
	object = json_object();
	list = json_array();
	jsonwriter_put(w, object, "best_ms",
		       pace->best_ms > 0 ? jsonwriter_number(pace->best_ms) : json_null());
	for (size_t i = 0; i < pace->point_cnt; i++)
		jsonwriter_push(w, list, point_object(w, &pace->points[i]));
	jsonwriter_put(w, object, "points", list);
	return object;
}

json_t *json_lateness(struct json_writer *w, const struct report_worker *worker)
{
	json_t *list;

	if (worker->late_ms == NULL)
		return json_null();
	list = json_array();
	for (size_t i = 0; i < worker->iteration_cnt; i++)
		jsonwriter_push(w, list, jsonwriter_number(worker->late_ms[i]));
	return list;
}
