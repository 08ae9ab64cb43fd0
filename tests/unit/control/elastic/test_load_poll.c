// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The value in what a polled endpoint sends; the connections are in tests/http/polls.sh. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "lib/test.h"
#include "control/elastic/load_poll.h"

static char url[] = "http://x", query[] = "q", path[] = "a.b.1.c";
static const struct load_signal_def prometheus = { .prometheus = url, .query = query, .full = 2 },
				    json = { .json = url, .path = path, .full = 2 };

#define VECTOR(result) "{\"data\":{\"resultType\":\"vector\",\"result\":" result "}}"

TEST(test_values)
{
	static const struct {
		const struct load_signal_def *def;
		const char *body;
		double value;
	} rows[] = {
		{ &prometheus, VECTOR("[{\"metric\":{},\"value\":[1.5,\"0.5\"]}]"), 0.25 },
		{ &prometheus, VECTOR("[{\"value\":[1.5,\"1e3\"]}]"), 500 },
		{ &prometheus, VECTOR("[{\"value\":[1.5,0]}]"), 0 },
		{ &prometheus, "{\"data\":{\"resultType\":\"scalar\",\"result\":[1.5,\"3\"]}}",
		  1.5 },
		{ &json, "{\"a\":{\"b\":[0,{\"c\":5}]}}", 2.5 },
		{ &json, "{\"a\":{\"b\":{\"1\":{\"c\":\"5\"}}}}", 2.5 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct sl_err err;
		double value = -1;

		if (load_poll_value(rows[i].def, rows[i].body, strlen(rows[i].body), &value, &err))
			fail_msg("%s: %s", rows[i].body, err.message);
		if (fabs(value - rows[i].value) > 1e-12)
			fail_msg("%s: %g", rows[i].body, value);
	}
}

TEST(test_no_values)
{
	static const struct {
		const struct load_signal_def *def;
		const char *body, *words;
	} rows[] = {
		{ &prometheus, "", "not JSON" },
		{ &prometheus, "[", "not JSON" },
		{ &prometheus, "7", "neither a vector" },
		{ &prometheus, "{\"data\":[]}", "neither" },
		{ &prometheus, "{\"data\":{\"resultType\":\"matrix\",\"result\":[]}}", "neither" },
		{ &prometheus, "{\"data\":{\"resultType\":\"scalar\"}}",
		  "no number at data.result" },
		{ &prometheus, VECTOR("[]"), "0 values" },
		{ &prometheus, VECTOR("{}"), "0 values" },
		{ &prometheus, VECTOR("[1,2]"), "2 values" },
		{ &prometheus, VECTOR("[1]"), "no number" },
		{ &prometheus, VECTOR("[{\"value\":[1]}]"), "no number" },
		{ &prometheus, VECTOR("[{\"value\":[1,\"\"]}]"), "no number" },
		{ &prometheus, VECTOR("[{\"value\":[1,\"5 \"]}]"), "no number" },
		{ &prometheus, VECTOR("[{\"value\":[1,\"NaN\"]}]"), "the value is nan" },
		{ &prometheus, VECTOR("[{\"value\":[1,\"+Inf\"]}]"), "the value is inf" },
		{ &prometheus, VECTOR("[{\"value\":[1,\"-0.1\"]}]"), "the value is -0.1" },
		{ &prometheus, VECTOR("[{\"value\":[1,\"2.1e6\"]}]"), "from 0 to 2e+06" },
		{ &json, "{}", "no number at a.b.1.c" },
		{ &json, "{\"a\":{\"b\":[0]}}", "no number" },
		{ &json, "{\"a\":{\"b\":[0,{\"c\":true}]}}", "no number" },
		{ &json, "{\"a\":{\"b\":[0,{\"c\":null}]}}", "no number" },
		{ &json, "\"a\"", "no number" },
		{ &json, "{\"a\":1} x", "not JSON" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct sl_err err = { .line = 0 };
		double value = -1;

		assert_int_equal(load_poll_value(rows[i].def, rows[i].body, strlen(rows[i].body),
						 &value, &err),
				 -EINVAL);
		assert_true(value == -1);
		if (!strstr(err.message, rows[i].words))
			fail_msg("%s: %s", rows[i].body, err.message);
	}
}

TEST_MAIN
