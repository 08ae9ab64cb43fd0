// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * grpc_rls.c - Envoy's messages to a request, and a response to Envoy's.
 *
 *     ShouldRateLimit     decides and charges
 *     CheckRateLimit      Kuadrant's: the verdict only
 *     Report              Kuadrant's: charges requests that have happened
 *
 * Envoy lets traffic pass on errors, so only a malformed message makes one (INVALID_ARGUMENT).
 * More than can be decided (request.h), or a message too large to be read, is OVER_LIMIT; a value
 * may be any bytes, as many as the message holds.
 */
#include <jansson.h>
#include <string.h>

#include "request/server/response.h"
#include "request/server/callers.h"
#include "request/rules/permit.h"
#include "request/rules/request_text.h"
#include "request/rules/rule.h"
#include "request/frontends/grpc/grpc_private.h"

#define DEPTH_MAX 16

/* ------------------------------------------------------------------ metadata */

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

static Rls__Value *make_value(struct grpc_stream *stream, json_t *const *from, u32 count, int depth)
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

/* Adds a field that has no value yet; `to` has room for it. NULL: no memory. */
static Rls__Value *add_field(struct grpc_stream *stream, Rls__Struct *to, const char *key)
{
	Rls__Field *field = grpc_stream_alloc(stream, sizeof(*field));

	if (!field)
		return NULL;
	rls__field__init(field);
	field->key = (char *)key;
	field->value = grpc_stream_alloc(stream, sizeof(*field->value));
	if (!field->value)
		return NULL;
	rls__value__init(field->value);
	to->fields[to->n_fields++] = field;
	return field->value;
}

/* The same of a text, which is copied. */
static bool add_text(struct grpc_stream *stream, Rls__Struct *to, const char *key, const char *text)
{
	Rls__Value *value = add_field(stream, to, key);
	char *copy = grpc_stream_alloc(stream, strlen(text) + 1);

	if (!value || !copy)
		return false;
	value->kind_case = RLS__VALUE__KIND_TEXT;
	value->text = strcpy(copy, text);
	return true;
}

/*
 * dynamic_metadata of a response: {"metadata": ...} of the rules whose descriptors passed, for
 * Envoy's next filter, merged in the order of the request: the first value wins, maps within maps
 * are merged at once. With quota_mode that filter learns which backend has quota left. `shadow` is
 * that of response_shadow(), for Envoy's access log; `permit` comes back when the stream is done.
 * NULL: there is none. Strings point into the rules. It lives as long as the stream and the rules.
 */
static Rls__Struct *grpc_metadata(struct grpc_stream *stream, const struct response *response)
{
	json_t *from[REQUEST_DESCRIPTORS_MAX];
	char shadow[RESPONSE_TEXT_MAX], permit[PERMIT_TEXT_MAX];
	Rls__Value *value;
	Rls__Struct *ret;
	u32 count = 0;

	for (u32 i = 0; i < response->count; i++) {
		const struct response_status *status = &response->status[i];

		if (status->rule && !status->over && json_object_size(status->rule->metadata))
			from[count++] = status->rule->metadata;
	}
	response_shadow(response, shadow, sizeof(shadow));
	permit_format(&response->permit, permit, sizeof(permit));
	if (!count && !shadow[0] && !permit[0])
		return NULL;
	ret = grpc_stream_alloc(stream, sizeof(*ret));
	if (!ret)
		return NULL;
	rls__struct__init(ret);
	ret->fields = grpc_stream_alloc(stream, 3 * sizeof(*ret->fields));
	if (!ret->fields)
		return NULL;
	if (count) {
		value = add_field(stream, ret, "metadata");
		if (!value)
			return NULL;
		value->kind_case = RLS__VALUE__KIND_MAP;
		value->map = make_struct(stream, from, count, 0);
		if (!value->map)
			return NULL;
	}
	if (shadow[0] && !add_text(stream, ret, "shadow", shadow))
		return NULL;
	if (permit[0] && !add_text(stream, ret, "permit", permit))
		return NULL;
	return ret;
}

/* ------------------------------------------------------------------ in */

static struct bytes bytes_of(ProtobufCBinaryData data)
{
	return (struct bytes){ data.len ? (const char *)data.data : "", data.len };
}

void grpc_descriptor_begin(struct request_descriptor *ret, u64 hits)
{
	ret->count = 0;
	ret->beyond = false;
	ret->refund = false;
	ret->hits = hits ? hits : 1;
	ret->limit_unit = REQUEST_UNIT_UNKNOWN;
}

static void read_descriptor(const Rls__Request *request, const Rls__Descriptor *from,
			    struct request *rl_request, struct request_descriptor *ret)
{
	grpc_descriptor_begin(ret, request->hits_addend);
	if (from->hits_addend)
		ret->hits = from->hits_addend->value;
	if (from->limit) {
		if (from->limit->unit == REQUEST_UNIT_UNKNOWN ||
		    from->limit->unit >= REQUEST_UNIT_COUNT)
			rl_request->beyond = "a limit with an unknown unit";
		ret->limit_unit = from->limit->unit;
		ret->limit_requests = from->limit->requests_per_unit;
	}
	for (size_t i = 0; i < from->n_entries; i++)
		request_add_entry_or_source(rl_request, ret, bytes_of(from->entries[i]->key),
					    bytes_of(from->entries[i]->value));
}

const char *grpc_request_read(struct grpc_stream *stream, struct bytes message,
			      struct request *rl_request)
{
	const Rls__Request *request =
		rls__request__unpack(&stream->allocator, message.len, (const u8 *)message.at);

	if (!request && !stream->too_much)
		return "not a RateLimitRequest";
	if (!request) {
		rl_request->beyond = "too much in a message";
		return NULL;
	}
	rl_request->domain = bytes_of(request->domain);
	if (!rl_request->domain.len)
		return "domain is empty";
	if (!request->n_descriptors)
		return "no descriptors";
	if (request->n_descriptors > REQUEST_DESCRIPTORS_MAX) {
		rl_request->beyond = REQUEST_DESCRIPTORS_BEYOND;
		return NULL;
	}
	rl_request->descriptor =
		grpc_stream_alloc(stream, request->n_descriptors * sizeof(*rl_request->descriptor));
	if (!rl_request->descriptor) {
		rl_request->beyond = "too much in a message";
		return NULL;
	}
	for (u32 i = 0; i < request->n_descriptors; i++)
		read_descriptor(request, request->descriptors[i], rl_request,
				&rl_request->descriptor[i]);
	rl_request->count = rl_request->beyond ? 0 : request->n_descriptors;
	return NULL;
}

/*
 * The time for which the caller waits: its deadline less the time for the response to return, else
 * the listener's max_wait, else 0.
 */
static u64 max_wait_ns(const struct grpc_stream *stream)
{
	const struct listen_def *listener = stream->conn->peer.listener;
	u64 way_ns = stream->timeout_ns / 10 < 10000000 ? stream->timeout_ns / 10 : 10000000;

	if (stream->has_timeout)
		return stream->timeout_ns - way_ns;
	return listener && listener->has_max_wait ? listener->max_wait_ns : 0;
}

/* ------------------------------------------------------------------ out */

static void add_header(struct bytes name, struct bytes value, void *arg)
{
	struct grpc_response_message *message = arg;
	size_t at = message->response.n_response_headers_to_add;
	Rls__Header *header = &message->header[at];

	if (at == GRPC_RESPONSE_HEADERS_MAX || value.len >= sizeof(message->text[at]))
		return;
	rls__header__init(header);
	header->key = (char *)name.at;
	header->value = memcpy(message->text[at], value.at, value.len + 1);
	message->header_at[at] = header;
	message->response.n_response_headers_to_add++;
}

static u32 at_most_u32(u64 n)
{
	return n > UINT32_MAX ? UINT32_MAX : n;
}

void grpc_status_set(struct grpc_status_message *ret, const struct response_status *from)
{
	Rls__Status *status = &ret->status;

	rls__status__init(status);
	status->code = from->over && !from->shadow ? RLS__CODE__OVER_LIMIT : RLS__CODE__OK;
	status->limit_remaining = at_most_u32(from->remaining);
	if (from->unlimited)
		status->limit_remaining = UINT32_MAX;
	if (!from->window_ns)
		return;
	/* Whole seconds, as envoyproxy/ratelimit's: no client returns early because of Envoy. */
	rls__duration__init(&ret->reset);
	ret->reset.seconds = from->reset_ns / 1000000000 + !!(from->reset_ns % 1000000000);
	status->duration_until_reset = &ret->reset;
	/* rls.proto can only express N per one unit; the headers have the rest. */
	if (from->requests > UINT32_MAX || !request_unit_of(response_unit_ns(from)))
		return;
	rls__limit__init(&ret->limit);
	ret->limit.requests_per_unit = from->requests;
	ret->limit.unit = request_unit_of(response_unit_ns(from));
	if (from->limit && from->limit->name)
		ret->limit.name = from->limit->name;
	status->current_limit = &ret->limit;
}

void grpc_response_set(struct grpc_stream *stream, struct grpc_response_message *ret,
		       const struct response *from, u32 jitter_permille)
{
	Rls__Response *response = &ret->response;

	rls__response__init(response);
	response->overall_code = from->code == RESPONSE_OK ? RLS__CODE__OK : RLS__CODE__OVER_LIMIT;
	response->statuses = ret->status_at;
	response->n_statuses = from->count;
	for (u32 i = 0; i < from->count; i++) {
		grpc_status_set(&ret->status[i], &from->status[i]);
		ret->status_at[i] = &ret->status[i].status;
	}
	response->response_headers_to_add = ret->header_at;
	response_headers(from, jitter_permille, add_header, ret);
	response->dynamic_metadata = grpc_metadata(stream, from);
}

static bool has_metadata(const struct response *response)
{
	char shadow[RESPONSE_TEXT_MAX];

	for (u32 i = 0; i < response->count; i++)
		if (response->status[i].rule && response->status[i].rule->metadata)
			return true;
	return response->permit.count || response_shadow(response, shadow, sizeof(shadow))[0];
}

static void write_by_protobuf_c(struct grpc_stream *stream, const struct response *response,
				u32 jitter_permille)
{
	struct grpc_response_message message;

	grpc_response_set(stream, &message, response, jitter_permille);
	grpc_stream_reply(stream, &message.response.base, false);
}

static void write_response(struct grpc_stream *stream, const struct response *response)
{
	struct grpc_worker *of = stream->conn->of;
	const struct http_def *def = tier_def(of->worker->tier);
	u32 jitter_permille = def ? def->retry_jitter_permille : 0;
	size_t len = 0;

	if (!has_metadata(response))
		len = grpc_response_plain(response, jitter_permille, of->message,
					  sizeof(of->message));
	if (len)
		grpc_stream_reply_packed(stream, (struct bytes){ of->message, len });
	else
		write_by_protobuf_c(stream, response, jitter_permille);
}

static void on_response(const struct request *rl_request, const struct response *rl_response,
			void *arg)
{
	struct grpc_stream *stream = arg;
	struct grpc_conn *conn = stream->conn;

	stream->delayed = NULL;
	if (rl_response->code == RESPONSE_ERROR)
		grpc_stream_fail(stream, GRPC_UNAVAILABLE, "no decision possible");
	else
		write_response(stream, rl_response);
	grpc_conn_settle(conn);
}

/* ------------------------------------------------------------------ methods */

static void run(struct grpc_stream *stream, struct bytes message, bool peek, bool report)
{
	struct worker *worker = stream->conn->of->worker;
	struct request *rl_request = grpc_stream_alloc(stream, sizeof(*rl_request));
	u32 right = report ? MAY_REPORT : MAY_CHECK;
	bool bad_token = false;
	const char *wrong = NULL;

	if (!rl_request) {
		grpc_stream_no_memory(stream);
		return;
	}
	*rl_request = (struct request){ .api = API_GRPC, .peek = peek, .report = report };
	if (!grpc_request_plain(stream, message, rl_request))
		wrong = grpc_request_read(stream, message, rl_request);
	rl_request->rights = caller_rights(worker->tier, &stream->conn->peer, stream->token,
					   rl_request->domain, &bad_token);
	rl_request->caller = caller_number(&stream->conn->peer, stream->token);
	if (bad_token)
		grpc_stream_fail(stream, GRPC_UNAUTHENTICATED, "unknown token");
	else if (wrong || (rl_request->beyond && report))
		grpc_stream_fail(stream, GRPC_INVALID_ARGUMENT, wrong ? wrong : rl_request->beyond);
	else if (!(rl_request->rights & right))
		grpc_stream_fail(stream, GRPC_PERMISSION_DENIED,
				 report ? "permission denied: no right to report to this domain"
					: "permission denied: no right to check this domain");
	else {
		rl_request->max_wait_ns = max_wait_ns(stream);
		stream->delayed = request_submit(worker->engine, rl_request, on_response, stream);
	}
}

bool grpc_refuse_beyond(struct grpc_stream *stream, const char *message)
{
	struct request *rl_request;

	if (stream->method->run != grpc_should_rate_limit &&
	    stream->method->run != grpc_check_rate_limit)
		return false;
	rl_request = grpc_stream_alloc(stream, sizeof(*rl_request));
	if (!rl_request)
		return false;
	*rl_request = (struct request){ .api = API_GRPC, .beyond = message };
	request_submit(stream->conn->of->worker->engine, rl_request, on_response, stream);
	return true;
}

void grpc_should_rate_limit(struct grpc_stream *stream, struct bytes message)
{
	run(stream, message, false, false);
}

void grpc_check_rate_limit(struct grpc_stream *stream, struct bytes message)
{
	run(stream, message, true, false);
}

void grpc_report(struct grpc_stream *stream, struct bytes message)
{
	run(stream, message, false, true);
}
