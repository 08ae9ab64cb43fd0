// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// otlp_receiver.js PORT FILE - a receiver of OTLP/HTTP metrics (JSON), by the messages that OpenTelemetry's own
// package is generated from. What they do not know, or know as another type, is refused. Each request becomes a
// line of FILE: as it came out of the binary encoding.
"use strict";
const assert = require("node:assert");
const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");

const modules = path.join(__dirname, "../../build/js/node_modules/@opentelemetry/otlp-transformer");
const proto = require(path.join(modules, "build/src/generated/root.js")).opentelemetry.proto;
const Metrics = proto.collector.metrics.v1.ExportMetricsServiceRequest;
const [port, file] = process.argv.slice(2);

function decode(text) {
	const sent = JSON.parse(text), message = Metrics.fromObject(sent), wrong = Metrics.verify(message);
	if (wrong)
		throw new Error(wrong);
	const got = Metrics.toObject(Metrics.decode(Metrics.encode(message).finish()), { longs: String, enums: Number });
	// Empty lists and texts are not in the encoding.
	const full = (value) => Array.isArray(value) ? value.map(full) : value && typeof value === "object" ?
		Object.fromEntries(Object.entries(value).map(([name, of]) => [name, full(of)])
			.filter(([, of]) => of !== "" && !(Array.isArray(of) && !of.length))) : value;
	assert.deepStrictEqual(full(got), full(sent));
	return full(got);
}

http.createServer((request, response) => {
	let text = "";
	request.on("data", (part) => text += part);
	request.on("end", () => {
		let status = 200, answer = {};
		try {
			assert.equal(request.method + request.url, "POST/v1/metrics");
			assert.equal(request.headers["content-type"], "application/json");
			fs.appendFileSync(file, JSON.stringify(decode(text)) + "\n");
		} catch (error) {
			status = 400;
			answer = { message: error.message };
		}
		response.writeHead(status, { "Content-Type": "application/json" });
		response.end(JSON.stringify(answer));
	});
}).listen(Number(port), "127.0.0.1");
