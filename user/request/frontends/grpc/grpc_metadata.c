// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * grpc_metadata.c - `metadata` of rules as a google.protobuf.Struct; see grpc_metadata.h.
 *
 * Strings point into the rules. Maps of all rules are merged at once: each field of the result is
 * made of the values that the rules have for it.
 */
#include "request/frontends/grpc/grpc_metadata.h"

#include <jansson.h>
#include <string.h>

#include "request/rules/rule.h"

#define DEPTH_MAX 16

static Rls__Value *make_value(struct grpc_stream *stream, json_t *const *from, u32 count,
			      int depth);

/* Whether an earlier one of `from` has the key. */
static bool has_before(json_t *const *from, u32 index, const char *key)
{
	for (u32 i = 0; i < index; i++)
		if (json_object_get(from[i], key))
			return true;
	return false;
}

static Rls__Field *make_field(struct grpc_stream *stream, json_t *const *from, u32 count,
			      const char *key, int depth)
{
	Rls__Field *field = grpc_stream_alloc(stream, sizeof(*field));
	json_t *value[REQUEST_DESCRIPTORS_MAX];
	u32 values = 0;

	for (u32 i = 0; i < count; i++) {
		json_t *one = json_object_get(from[i], key);

		/* The first one wins; maps are merged with a map. */
		if (one && (!values || (json_is_object(one) && json_is_object(value[0]))))
			value[values++] = one;
	}
	if (!field)
		return NULL;
	rls__field__init(field);
	field->key = (char *)key;
	field->value = make_value(stream, value, values, depth);
	return field->value ? field : NULL;
}

static Rls__Struct *make_struct(struct grpc_stream *stream, json_t *const *from, u32 count,
				int depth)
{
	Rls__Struct *ret = grpc_stream_alloc(stream, sizeof(*ret));
	size_t room = 0;
	const char *key;
	json_t *value;

	for (u32 i = 0; i < count; i++)
		room += json_object_size(from[i]);
	if (!ret)
		return NULL;
	rls__struct__init(ret);
	ret->fields = grpc_stream_alloc(stream, room * sizeof(*ret->fields));
	if (!ret->fields)
		return NULL;
	for (u32 i = 0; i < count; i++)
		json_object_foreach(from[i], key, value) {
			Rls__Field *field;

			if (has_before(from, i, key))
				continue;
			field = make_field(stream, from + i, count - i, key, depth);
			if (!field)
				return NULL;
			ret->fields[ret->n_fields++] = field;
		}
	return ret;
}

static Rls__List *make_list(struct grpc_stream *stream, json_t *from, int depth)
{
	Rls__List *ret = grpc_stream_alloc(stream, sizeof(*ret));
	size_t size = json_array_size(from);

	if (!ret)
		return NULL;
	rls__list__init(ret);
	ret->values = grpc_stream_alloc(stream, size * sizeof(*ret->values));
	if (!ret->values)
		return NULL;
	for (size_t i = 0; i < size; i++) {
		json_t *one = json_array_get(from, i);

		ret->values[i] = make_value(stream, &one, 1, depth);
		if (!ret->values[i])
			return NULL;
	}
	ret->n_values = size;
	return ret;
}

static Rls__Value *make_value(struct grpc_stream *stream, json_t *const *from, u32 count,
			      int depth)
{
	Rls__Value *ret = grpc_stream_alloc(stream, sizeof(*ret));

	if (!ret || depth > DEPTH_MAX)
		return NULL;
	rls__value__init(ret);
	switch (json_typeof(from[0])) {
	case JSON_OBJECT:
		ret->kind_case = RLS__VALUE__KIND_MAP;
		ret->map = make_struct(stream, from, count, depth + 1);
		return ret->map ? ret : NULL;
	case JSON_ARRAY:
		ret->kind_case = RLS__VALUE__KIND_LIST;
		ret->list = make_list(stream, from[0], depth + 1);
		return ret->list ? ret : NULL;
	case JSON_STRING:
		ret->kind_case = RLS__VALUE__KIND_TEXT;
		ret->text = (char *)json_string_value(from[0]);
		break;
	case JSON_INTEGER:
	case JSON_REAL:
		ret->kind_case = RLS__VALUE__KIND_NUMBER;
		ret->number = json_number_value(from[0]);
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		ret->kind_case = RLS__VALUE__KIND_YES;
		ret->yes = json_is_true(from[0]);
		break;
	case JSON_NULL:
		ret->kind_case = RLS__VALUE__KIND_NULL;
		break;
	}
	return ret;
}

Rls__Struct *grpc_metadata(struct grpc_stream *stream, const struct response *response)
{
	json_t *from[REQUEST_DESCRIPTORS_MAX];
	Rls__Struct *ret;
	u32 count = 0;

	for (u32 i = 0; i < response->count; i++) {
		const struct response_status *status = &response->status[i];

		if (status->rule && !status->over && json_object_size(status->rule->metadata))
			from[count++] = status->rule->metadata;
	}
	if (!count)
		return NULL;
	ret = grpc_stream_alloc(stream, sizeof(*ret));
	if (!ret)
		return NULL;
	rls__struct__init(ret);
	ret->fields = grpc_stream_alloc(stream, sizeof(*ret->fields));
	if (!ret->fields)
		return NULL;
	ret->n_fields = 1;
	ret->fields[0] = grpc_stream_alloc(stream, sizeof(*ret->fields[0]));
	if (!ret->fields[0])
		return NULL;
	rls__field__init(ret->fields[0]);
	ret->fields[0]->key = "metadata";
	ret->fields[0]->value = grpc_stream_alloc(stream, sizeof(Rls__Value));
	if (!ret->fields[0]->value)
		return NULL;
	rls__value__init(ret->fields[0]->value);
	ret->fields[0]->value->kind_case = RLS__VALUE__KIND_MAP;
	ret->fields[0]->value->map = make_struct(stream, from, count, 0);
	return ret->fields[0]->value->map ? ret : NULL;
}
