// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * grpc_headers.js ADDRESS - comes_true.js for each kind of limit of tests/http/kinds.yaml, over
 * response_headers_to_add of gRPC. All at once, each with a key of its own.
 */
'use strict';

const { comesTrue } = require('./comes_true');
const { Client, done, ok } = require('./rls');

const client = new Client(process.argv[2]);
const KINDS = ['token-bucket', 'leaky-bucket', 'fixed-window', 'first-request', 'sliding-window',
	'sliding-log', 'interval-bucket', 'window-counters', 'several', 'several-buckets', 'candidate', 'counted'];

async function ask(kind) {
	const answer = await client.ask('kinds', [{ [kind]: 'grpc' }]);
	const headers = {};

	for (const { key, value } of answer.response_headers_to_add || [])
		headers[key] = value;
	return { allowed: answer.overall_code === 'OK', headers };
}

(async () => {
	await Promise.all(KINDS.map(async (kind) => {
		const name = `what a ${kind} promises comes true`;

		try {
			await comesTrue(() => ask(kind), { name });
			ok(name, true);
		} catch (error) {
			ok(name, false, error.message);
		}
	}));
	client.close();
	done();
})();
