// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rls.js - a gRPC client of the rate limit service for the tests: @grpc/grpc-js as anybody would
 * use it, and what tests say.
 *
 *     const { Client, ok, is, done } = require('./rls');
 */
'use strict';

const { createRequire } = require('module');
const path = require('path');
// Packages are in build/js (scripts/js.sh).
const installed = createRequire(path.join(__dirname, '../../build/js/'));
const grpc = installed('@grpc/grpc-js');
const loader = installed('@grpc/proto-loader');
const { parseList } = installed('structured-headers');

const packages = grpc.loadPackageDefinition(loader.loadSync(
	['rls.proto', 'kuadrant.proto', 'health.proto'],
	{ includeDirs: [path.join(__dirname, 'proto')], longs: Number, enums: String,
	  keepCase: true, defaults: false }));

const name = path.basename(process.argv[1], '.js');
let failed = 0;

function ok(words, good, found) {
	if (good) {
		console.log(`ok - ${name}: ${words}`);
	} else {
		failed++;
		console.log(`not ok - ${name}: ${words}: ${JSON.stringify(found)}`);
	}
}

function is(words, found, expected) {
	ok(words, JSON.stringify(found) === JSON.stringify(expected), { found, expected });
}

// Ends the test; a promise that never settles fails it as well.
function done() {
	process.exit(failed ? 1 : 0);
}

// [{user: 'bob'}, {plan: 'free', path: '/'}] -> descriptors
function descriptors(list) {
	return list.map((entries) => ({
		entries: Object.entries(entries).map(([key, value]) => ({ key, value })),
	}));
}

class Client {
	constructor(address, credentials = grpc.credentials.createInsecure(), options = {}) {
		// Each client has a connection of its own.
		options = { 'grpc.use_local_subchannel_pool': 1, ...options };
		this.envoy = new packages.envoy.service.ratelimit.v3.RateLimitService(
			address, credentials, options);
		this.kuadrant = new packages.kuadrant.service.ratelimit.v1.RateLimitService(
			address, credentials, options);
		this.health = new packages.grpc.health.v1.Health(address, credentials, options);
	}

	// Resolves to the answer, or to {error: name of the status, details}.
	call(service, method, request, options = {}, metadata = new grpc.Metadata(), cancel = null) {
		return new Promise((resolve) => {
			const began = process.hrtime.bigint();
			const call = this[service][method](request, metadata, options, (error, answer) => {
				const ms = Number(process.hrtime.bigint() - began) / 1e6;

				if (error)
					resolve({ error: grpc.status[error.code], details: error.details, ms });
				else
					resolve({ ...answer, ms });
			});

			if (cancel)
				cancel.fire = () => call.cancel();
		});
	}

	ask(domain, list, more = {}, options = {}, cancel = null) {
		return this.call('envoy', 'ShouldRateLimit',
				 { domain, descriptors: descriptors(list), ...more }, options,
				 undefined, cancel);
	}

	close() {
		this.envoy.close();
		this.kuadrant.close();
		this.health.close();
	}
}

// Headers of an answer by name; ratelimit and ratelimit-policy as lists of {name, ...parameters}.
function headers(answer) {
	const all = {};

	for (const { key, value } of answer.response_headers_to_add || [])
		all[key] = value;
	for (const key of ['ratelimit', 'ratelimit-policy'])
		if (all[key])
			all[key] = parseList(all[key]).map(([item, parameters]) =>
				({ name: item, ...Object.fromEntries(parameters) }));
	return all;
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// google.protobuf.Struct as an object.
function plain({ fields }) {
	return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key,
		value.structValue ? plain(value.structValue) : Object.values(value).pop()]));
}

module.exports = { Client, descriptors, done, grpc, headers, is, ok, plain, sleep };
