// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The gRPC frontend: RateLimitRequest as a request, a response as in rls.proto. */
#include "grpc_wire.h"
#include "request/rules/rule.h"

#define MS 1000000ULL
#define SEC 1000000000ULL

/* ------------------------------------------------------------------ calls */

TEST_WITH(test_ask, rig_begin, rig_end)
{
	Rls__Response *got;

	rig_connect(true);
	got = response(grpc_call(SHOULD, wire_user("bob")));
	assert_int_equal(got->overall_code, RLS__CODE__OK);
	assert_int_equal(got->n_statuses, 1);
	assert_int_equal(got->statuses[0]->code, RLS__CODE__OK);
	assert_null(got->statuses[0]->current_limit);
	rls__response__free_unpacked(got, NULL);
	assert_string_equal(rig.text, "api user=bob;");
	assert_int_equal(rig.descriptor[0].hits, 1);
	assert_int_equal(rig.request.api, API_GRPC);
	assert_int_equal(rig.request.max_wait_ns, 0);
	assert_false(rig.request.peek || rig.request.report || rig.request.has_source);

	is_answered(grpc_call(CHECK, wire_user("bob")));
	assert_true(rig.request.peek && !rig.request.report);
	is_answered(grpc_call(REPORT, wire_user("bob")));
	assert_true(rig.request.report && !rig.request.peek);
	assert_int_equal(rig.asked, 3);
	assert_int_equal(rig.requests, 3);
}

TEST_WITH(test_hits_and_override, rig_begin, rig_end)
{
	static struct wire wire, one, two, hits;

	memset(&wire, 0, sizeof(wire));
	one.len = two.len = hits.len = 0;
	wire_bytes(&wire, 1, "api", 3);
	wire_entry(&one, "plan", "free", 4);
	wire_entry(&one, "user", "bob", 3);
	wire_bytes(&wire, 2, one.at, one.len);
	wire_entry(&two, "path", "/", 1);
	/* Its own hits, 0, and a limit of its own: 20 a minute. */
	wire_bytes(&two, 3, "", 0);
	wire_number(&hits, 1, 20);
	wire_number(&hits, 2, REQUEST_UNIT_MINUTE);
	wire_bytes(&two, 2, hits.at, hits.len);
	wire_number(&two, 99, 5); /* an unknown field */
	wire_bytes(&wire, 2, two.at, two.len);
	wire_number(&wire, 3, 7);
	rig_connect(true);
	is_answered(grpc_call(SHOULD, &wire));
	assert_string_equal(rig.text, "api plan=free user=bob; path=/;");
	assert_int_equal(rig.descriptor[0].hits, 7);
	assert_int_equal(rig.descriptor[0].limit_unit, REQUEST_UNIT_UNKNOWN);
	assert_int_equal(rig.descriptor[1].hits, 0);
	assert_int_equal(rig.descriptor[1].limit_unit, REQUEST_UNIT_MINUTE);
	assert_int_equal(rig.descriptor[1].limit_requests, 20);
}

/* Values are bytes: a NUL, bad UTF-8 and 60 KiB are other users, and no error. */
TEST_WITH(test_values, rig_begin, rig_end)
{
	static struct wire wire, descriptor;
	static char large[70000];
	const char odd[] = "bob\0\xff\xfe%";

	memset(large, 'x', sizeof(large));
	rig_connect(true);
	wire.len = descriptor.len = 0;
	wire_bytes(&wire, 1, "api", 3);
	wire_entry(&descriptor, "user", odd, sizeof(odd));
	wire_entry(&descriptor, "path", large, 60000);
	wire_entry(&descriptor, "cut", large, sizeof(large));
	wire_entry(&descriptor, "none", "", 0);
	wire_bytes(&wire, 2, descriptor.at, descriptor.len);
	rig.hold = true;
	grpc_call(SHOULD, &wire);
	assert_int_equal(rig.asked, 1);
	assert_int_equal(rig.descriptor[0].count, 4);
	assert_int_equal(rig.descriptor[0].entry[0].value.len, sizeof(odd));
	assert_memory_equal(rig.descriptor[0].entry[0].value.at, odd, sizeof(odd));
	assert_int_equal(rig.descriptor[0].entry[1].value.len, 60000);
	assert_int_equal(rig.descriptor[0].entry[2].value.len, sizeof(large));
	assert_int_equal(rig.descriptor[0].entry[3].value.len, 0);
}

TEST_WITH(test_source, rig_begin, rig_end)
{
	static struct wire wire, descriptor;

	wire.len = descriptor.len = 0;
	wire_bytes(&wire, 1, "api", 3);
	wire_entry(&descriptor, "sluice_source", "192.0.2.7", 9);
	wire_bytes(&wire, 2, descriptor.at, descriptor.len);
	descriptor.len = 0;
	wire_entry(&descriptor, "user", "bob", 3);
	wire_bytes(&wire, 2, descriptor.at, descriptor.len);
	rig_connect(true);
	is_answered(grpc_call(SHOULD, &wire));
	assert_true(rig.request.has_source);
	assert_int_equal(rig.request.source.len, 32);
	assert_string_equal(rig.text, "api; user=bob;");
}

/* ------------------------------------------------------------------ answers */

TEST_WITH(test_over_limit, rig_begin, rig_end)
{
	struct rule_limit limit = { .name = "user" }, odd = { .name = "user-2" };
	struct rule rule = { .domain = "api", .path = "user" };
	bool policy = false, retry = false;
	Rls__Response *got;
	static struct wire wire;

	wire.len = 0;
	wire_bytes(&wire, 1, "api", 3);
	for (int i = 0; i < 4; i++)
		wire_bytes(&wire, 2, "", 0);
	rig.def.retry_jitter_permille = 0;
	rig.response = (struct response){
		.code = RESPONSE_OVER_LIMIT,
		.status = {
			{ .over = true, .rule = &rule, .limit = &limit, .requests = 10,
			  .window_ns = 60 * SEC, .reset_ns = 1500 * MS, .retry_after_ns = SEC },
			{ .rule = &rule, .limit = &odd, .requests = 10, .window_ns = 10 * SEC,
			  .remaining = 1ULL << 40 },
			{ .over = true, .shadow = true, .rule = &rule, .limit = &limit,
			  .requests = 5, .window_ns = 7 * 86400 * SEC, .remaining = 3 },
			{ .rule = &rule, .unlimited = true },
		},
		.policy_count = 1,
		.policy = { { .rule = &rule, .limit = &limit, .q = 10, .w_s = 60, .r = 0,
			      .t_ns = 1500 * MS, .wait_ns = SEC, .refused = true } },
		.retry_after_ns = SEC,
	};
	rig_connect(true);
	got = response(grpc_call(SHOULD, &wire));
	assert_int_equal(got->overall_code, RLS__CODE__OVER_LIMIT);
	assert_int_equal(got->n_statuses, 4);
	assert_int_equal(got->statuses[0]->code, RLS__CODE__OVER_LIMIT);
	assert_int_equal(got->statuses[0]->current_limit->requests_per_unit, 10);
	assert_int_equal(got->statuses[0]->current_limit->unit, REQUEST_UNIT_MINUTE);
	assert_string_equal(got->statuses[0]->current_limit->name, "user");
	assert_int_equal(got->statuses[0]->limit_remaining, 0);
	/* Up: Envoy takes the seconds alone, and its clients would be early. */
	assert_int_equal(got->statuses[0]->duration_until_reset->seconds, 2);
	assert_int_equal(got->statuses[0]->duration_until_reset->nanos, 0);
	/* 10 per 10 s has no exact rate per single unit. */
	assert_int_equal(got->statuses[1]->code, RLS__CODE__OK);
	assert_null(got->statuses[1]->current_limit);
	assert_int_equal(got->statuses[1]->limit_remaining, UINT32_MAX);
	assert_int_equal(got->statuses[2]->code, RLS__CODE__OK);
	assert_int_equal(got->statuses[2]->current_limit->unit, REQUEST_UNIT_WEEK);
	assert_int_equal(got->statuses[3]->limit_remaining, UINT32_MAX);
	for (size_t i = 0; i < got->n_response_headers_to_add; i++) {
		Rls__Header *header = got->response_headers_to_add[i];

		policy |= !strcmp(header->key, "ratelimit-policy") &&
			  !strcmp(header->value, "\"user\";q=10;w=60");
		retry |= !strcmp(header->key, "retry-after") && !strcmp(header->value, "1");
	}
	assert_true(policy && retry);
	rls__response__free_unpacked(got, NULL);

	rig.response.code = RESPONSE_CLOSED;
	got = response(grpc_call(SHOULD, &wire));
	assert_int_equal(got->overall_code, RLS__CODE__OVER_LIMIT);
	rls__response__free_unpacked(got, NULL);
	rig.response.code = RESPONSE_ERROR;
	is_failed(grpc_call(SHOULD, &wire), GRPC_UNAVAILABLE);
}

static const Rls__Value *field(const Rls__Struct *of, const char *key)
{
	const Rls__Value *found = NULL;

	for (size_t i = 0; i < of->n_fields; i++)
		if (!strcmp(of->fields[i]->key, key)) {
			assert_null(found);
			found = of->fields[i]->value;
		}
	assert_non_null(found);
	return found;
}

TEST_WITH(test_metadata, rig_begin, rig_end)
{
	struct rule rule[3] = {
		{ .metadata = json_loads("{\"backend\": \"a\"}", 0, NULL) },
		{ .metadata = json_loads(
			  "{\"backend\": \"b\", \"n\": 1.5, \"m\": {\"x\": [1, null]}}", 0, NULL) },
		{ .metadata = json_loads("{\"backend\": \"c\", \"m\": {\"x\": 9, \"y\": true}}", 0,
					 NULL) },
	};
	const Rls__Struct *metadata, *inner;
	static struct wire wire;
	Rls__Response *got;

	wire.len = 0;
	wire_bytes(&wire, 1, "api", 3);
	for (int i = 0; i < 3; i++)
		wire_bytes(&wire, 2, "", 0);
	rig.response = (struct response){ .status = { { .rule = &rule[0], .over = true },
						      { .rule = &rule[1] },
						      { .rule = &rule[2] } } };
	rig_connect(true);
	got = response(grpc_call(SHOULD, &wire));
	assert_int_equal(got->dynamic_metadata->n_fields, 1);
	metadata = field(got->dynamic_metadata, "metadata")->map;
	assert_int_equal(metadata->n_fields, 3);
	assert_string_equal(field(metadata, "backend")->text, "b");
	assert_true(field(metadata, "n")->number == 1.5);
	inner = field(metadata, "m")->map;
	assert_int_equal(inner->n_fields, 2);
	assert_int_equal(field(inner, "x")->list->n_values, 2);
	assert_int_equal(field(inner, "x")->list->values[1]->kind_case, RLS__VALUE__KIND_NULL);
	assert_true(field(inner, "y")->yes);
	rls__response__free_unpacked(got, NULL);
	rig.response.status[1].over = rig.response.status[2].over = true;
	got = response(grpc_call(SHOULD, &wire));
	assert_null(got->dynamic_metadata);
	rls__response__free_unpacked(got, NULL);
	for (int i = 0; i < 3; i++)
		json_decref(rule[i].metadata);
}

/* ------------------------------------------------------------------ errors, and refusals */

/* Decided, with OVER_LIMIT without statuses. */
static void refused_beyond(const struct rig_stream *stream, const char *asked)
{
	Rls__Response *got;

	assert_string_equal(rig.text, asked);
	got = response(stream);
	assert_int_equal(got->n_statuses, 0);
	rls__response__free_unpacked(got, NULL);
}

/* over 70 lines: a message each, in a row. */
TEST_WITH(test_malformed, rig_begin, rig_end)
{
	static struct wire wire, descriptor, source;
	static char name[300];

	memset(name, 'n', sizeof(name));
	rig_connect(true);
	/* Not protobuf; no domain; no descriptors. */
	wire.len = 0;
	wire_bytes(&wire, 1, "api", 3);
	wire.at[1] = 100;
	is_failed(grpc_call(SHOULD, &wire), GRPC_INVALID_ARGUMENT);
	wire.len = 0;
	wire_bytes(&wire, 2, "", 0);
	is_failed(grpc_call(SHOULD, &wire), GRPC_INVALID_ARGUMENT);
	wire.len = 0;
	wire_bytes(&wire, 1, "api", 3);
	is_failed(grpc_call(SHOULD, &wire), GRPC_INVALID_ARGUMENT);
	for (int i = 0; i < REQUEST_DESCRIPTORS_MAX; i++)
		wire_bytes(&wire, 2, "", 0);
	is_answered(grpc_call(SHOULD, &wire));
	assert_int_equal(rig.asked, 1);
	/* Requests beyond the bounds are decided, or refused as over the limit: Envoy lets pass on
	 * an error. */
	wire_bytes(&wire, 2, "", 0);
	refused_beyond(grpc_call(SHOULD, &wire), "api beyond: more than 32 descriptors");
	refused_beyond(grpc_call(CHECK, &wire), "api beyond: more than 32 descriptors");
	is_failed(grpc_call(REPORT, &wire), GRPC_INVALID_ARGUMENT);
	/* A descriptor of 17 entries, and one of 16 beside the source. */
	descriptor.len = wire.len = 0;
	wire_bytes(&wire, 1, "api", 3);
	for (int i = 0; i < REQUEST_ENTRIES_MAX; i++)
		wire_entry(&descriptor, "k", "", 0);
	source = descriptor;
	wire_entry(&source, "sluice_source", "192.0.2.7", 9);
	wire_entry(&descriptor, "", "", 0);
	wire_bytes(&wire, 2, descriptor.at, descriptor.len);
	wire_bytes(&wire, 2, source.at, source.len);
	is_answered(grpc_call(SHOULD, &wire));
	assert_true(rig.descriptor[0].beyond && !rig.descriptor[1].beyond);
	assert_true(rig.request.has_source && rig.descriptor[1].count == REQUEST_ENTRIES_MAX);
	/* A key and a domain that no rule can have, and no key at all. */
	descriptor.len = wire.len = 0;
	wire_bytes(&wire, 1, name, 256);
	name[256] = 0;
	wire_entry(&descriptor, name, "", 0);
	wire_entry(&descriptor, "", "v", 1);
	wire_bytes(&wire, 2, descriptor.at, descriptor.len);
	is_answered(grpc_call(SHOULD, &wire));
	assert_true(rig.request.domain.len == 256 && rig.descriptor[0].entry[0].key.len == 256);
	assert_int_equal(rig.descriptor[0].entry[1].key.len, 0);
	/* hits_addend, whole. */
	wire = *wire_user("bob");
	wire_number(&wire, 3, ~0U);
	is_answered(grpc_call(SHOULD, &wire));
	assert_int_equal(rig.descriptor[0].hits, ~0U);
	/* An unknown unit, and none. */
	for (u32 i = 0; i < 2; i++) {
		descriptor.len = wire.len = source.len = 0;
		wire_bytes(&wire, 1, "api", 3);
		wire_number(&source, 1, 20);
		wire_number(&source, 2, i ? REQUEST_UNIT_UNKNOWN : REQUEST_UNIT_COUNT);
		wire_bytes(&descriptor, 2, source.at, source.len);
		wire_bytes(&wire, 2, descriptor.at, descriptor.len);
		refused_beyond(grpc_call(SHOULD, &wire),
			       "api beyond: a limit with an unknown unit");
	}
	/* More than a stream has memory for: 100000 descriptors in 200 kB. */
	wire.len = 0;
	wire_bytes(&wire, 1, "api", 3);
	for (int i = 0; i < 100000; i++)
		wire_bytes(&wire, 2, "", 0);
	refused_beyond(grpc_call(SHOULD, &wire), " beyond: too much in a message");
	is_failed(grpc_call(REPORT, &wire), GRPC_INVALID_ARGUMENT);
}

static struct rig_stream *raw(const void *body, size_t len)
{
	s32 id = rig_raw(SHOULD, body, len, NULL, NULL);

	rig_pump();
	return &rig.stream[id];
}

TEST_WITH(test_messages, rig_begin, rig_end)
{
	const struct wire *wire = wire_user("bob");
	static u8 body[2000];
	s32 id;

	rig_connect(true);
	body[4] = wire->len;
	memcpy(body + 5, wire->at, wire->len);
	is_answered(raw(body, wire->len + 5));
	/* None; a part; two; compressed; larger than may be. */
	is_failed(raw(NULL, 0), GRPC_INVALID_ARGUMENT);
	is_failed(raw(body, 3), GRPC_INVALID_ARGUMENT);
	is_failed(raw(body, wire->len + 4), GRPC_INVALID_ARGUMENT);
	is_failed(raw(body, wire->len + 6), GRPC_INVALID_ARGUMENT);
	body[0] = 1;
	is_failed(raw(body, wire->len + 5), GRPC_UNIMPLEMENTED);
	assert_int_equal(rig.undecided[UNDECIDED_UNREADABLE], 5);
	memset(body, 0, 5);
	body[2] = 0x10;
	is_failed(raw(body, 5), GRPC_INVALID_ARGUMENT);
	body[4] = 1;
	refused_beyond(raw(body, 5), " beyond: a message of more than 1 MiB");
	id = rig_raw(CHECK, body, 5, NULL, NULL);
	rig_pump();
	refused_beyond(&rig.stream[id], " beyond: a message of more than 1 MiB");
	id = rig_raw(REPORT, body, 5, NULL, NULL);
	rig_pump();
	is_failed(&rig.stream[id], GRPC_RESOURCE_EXHAUSTED);
	/* Byte by byte. */
	body[2] = 0;
	body[4] = wire->len;
	id = rig_raw(SHOULD, body, 0, NULL, NULL);
	rig.stream[id].out_open = true;
	for (size_t i = 0; i < wire->len + 5; i++) {
		rig.stream[id].out_len = i + 1;
		rig.stream[id].out_open = i < wire->len + 4;
		nghttp2_session_resume_data(rig.client, id);
		rig_pump();
	}
	is_answered(&rig.stream[id]);
	assert_int_equal(rig.asked, 4);
}

TEST_WITH(test_methods_and_rights, rig_begin, rig_end)
{
	const struct wire *wire = wire_user("bob");
	s32 id;

	rig_connect(true);
	is_failed(grpc_call("/envoy.service.ratelimit.v3.RateLimitService/Other", wire),
		  GRPC_UNIMPLEMENTED);
	is_failed(grpc_call("/", wire), GRPC_UNIMPLEMENTED);
	assert_int_equal(rig.undecided[UNDECIDED_PATH], 2);
	id = rig_request(SHOULD, wire->at, wire->len, "authorization", "Bearer s3cret");
	rig_pump();
	is_answered(&rig.stream[id]);
	assert_string_equal(rig.token, "s3cret");
	id = rig_request(SHOULD, wire->at, wire->len, "x-sluice-token", "t0ken");
	rig_pump();
	is_answered(&rig.stream[id]);
	assert_string_equal(rig.token, "t0ken");
	rig.rights = MAY_REPORT;
	is_failed(grpc_call(SHOULD, wire), GRPC_PERMISSION_DENIED);
	is_failed(grpc_call(CHECK, wire), GRPC_PERMISSION_DENIED);
	is_answered(grpc_call(REPORT, wire));
	rig.rights = MAY_CHECK;
	is_failed(grpc_call(REPORT, wire), GRPC_PERMISSION_DENIED);
	rig.bad_token = true;
	is_failed(grpc_call(SHOULD, wire), GRPC_UNAUTHENTICATED);
	assert_int_equal(rig.asked, 3);
	/* Sent like an HTTP client. */
	id = rig_raw(SHOULD, NULL, 0, "content-type", "application/json");
	rig_pump();
	assert_true(rig.stream[id].closed);
}

TEST_WITH(test_content_types, rig_begin, rig_end)
{
	static const struct {
		const char *type;
		bool is_grpc;
	} rows[] = {
		{ "application/grpc+proto", true }, { "application/grpc;charset=utf-8", true },
		{ "Application/gRPC", true },	    { "application/grpc-web", false },
		{ "application/grpcx", false },	    { "application/grp", false },
	};
	const struct wire *wire = wire_user("bob");

	rig_connect(true);
	for (size_t i = 0; i < COUNT(rows); i++) {
		s32 id = rig_request(SHOULD, wire->at, wire->len, "content-type", rows[i].type);

		rig_pump();
		if (rows[i].is_grpc)
			is_answered(&rig.stream[id]);
		else
			assert_true(rig.stream[id].closed && rig.asked == 3);
	}
}

/* ------------------------------------------------------------------ delayed responses */

static void delays_for(const char *timeout, u64 ns)
{
	const struct wire *wire = wire_user("bob");

	rig_request(SHOULD, wire->at, wire->len, timeout ? "grpc-timeout" : NULL, timeout);
	rig_pump();
	assert_int_equal(rig.request.max_wait_ns, ns);
}

TEST_WITH(test_timeout, rig_begin, rig_end)
{
	rig_connect(true);
	delays_for(NULL, 0);
	rig.listener.has_max_wait = true;
	rig.listener.max_wait_ns = 3 * SEC;
	delays_for(NULL, 3 * SEC);
	delays_for("50m", 45 * MS);
	delays_for("2S", 1990 * MS);
	delays_for("1H", 3600 * SEC - 10 * MS);
	delays_for("99999999H", UINT64_MAX - 10 * MS); /* 11,000 years */
	delays_for("1000u", 900000);
	delays_for("10n", 9);
	delays_for("0m", 0);
	/* An invalid value: as without. */
	delays_for("5", 3 * SEC);
	delays_for("5x", 3 * SEC);
	delays_for("-5S", 3 * SEC);
	delays_for("123456789S", 3 * SEC);
}

TEST_MAIN
