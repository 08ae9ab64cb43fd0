// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * headers.js BASE [WAY...] - comes_true.js for each kind of limit of tests/http/headers.sh's
 * rules, over each way to ask by HTTP/1.1: v1, json, nginx, forward-auth; and spoe, where BASE is a
 * HAProxy that asks about a key KIND whose value is in the header X-KIND. All at once, each with a key
 * of its own. Prints "ok - " and "not ok - ".
 */
'use strict';
const http = require('node:http');
const { comesTrue } = require('./comes_true');

const [base, ...ways] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
const KINDS = ['token-bucket', 'leaky-bucket', 'fixed-window', 'first-request', 'sliding-window',
	'sliding-log', 'interval-bucket', 'window-counters', 'several', 'several-buckets', 'candidate', 'counted',
	'two-descriptors'];

function call(method, path, headers, body) {
	return new Promise((resolve, reject) => {
		const request = http.request(base + path, { method, headers, agent }, (response) => {
			const chunks = [];

			response.on('data', (chunk) => chunks.push(chunk));
			response.on('end', () => resolve({ status: response.statusCode, headers: response.headers,
				body: Buffer.concat(chunks).toString() }));
		});

		request.on('error', reject);
		request.end(body);
	});
}

/* The keys that a kind asks about: one descriptor each. */
const keys = (kind) => (kind === 'two-descriptors' ? ['fixed-window', 'token-bucket'] : [kind]);
const json = (body) => ['POST', { 'content-type': 'application/json' }, JSON.stringify(body)];

const ASK = {
	v1: async (kind, value) => {
		const [method, headers, body] = json({ domain: 'kinds',
			descriptors: keys(kind).map((key) => ({ entries: [{ key, value }] })) });
		const answer = await call(method, '/v1/check', headers, body);

		return { allowed: answer.status === 200, refused: answer.status === 429, ...answer };
	},
	json: async (kind, value) => {
		const [method, headers, body] = json({ domain: 'kinds',
			descriptors: keys(kind).map((key) => ({ entries: [{ key, value }] })) });
		const answer = await call(method, '/json', headers, body);
		/* The client's headers are those that the body says to add. */
		const add = JSON.parse(answer.body).responseHeadersToAdd || [];

		return { allowed: answer.status === 200, refused: answer.status === 429,
			headers: Object.fromEntries(add.map((h) => [h.key.toLowerCase(), h.value])) };
	},
	nginx: async (kind, value) => {
		const headers = {};

		for (const key of keys(kind))
			headers[`X-Sluice-V-${key}`] = value;
		const answer = await call('GET', `/nginx/check?domain=kinds${keys(kind).map((k) => `&d=${k}`).join('')}`,
			headers);

		return { allowed: answer.status === 204, refused: answer.status === 403, ...answer };
	},
	'forward-auth': async (kind, value) => {
		const query = keys(kind).map((key) => `&d=${key}:header(X-Key)`).join('');
		const answer = await call('GET', `/forward-auth?domain=kinds${query}`, { 'X-Key': value });

		return { allowed: answer.status === 200, refused: answer.status === 429, ...answer };
	},
	spoe: async (kind, value) => {
		const headers = Object.fromEntries(keys(kind).map((key) => [`X-${key}`, value]));
		const answer = await call('GET', '/', headers);

		return { allowed: answer.status === 200, refused: answer.status === 429, ...answer };
	},
};
const PLAIN = ['v1', 'json', 'nginx', 'forward-auth'];

async function main() {
	let failed = 0;

	await Promise.all((ways.length ? ways : PLAIN).flatMap((way) => KINDS.map(async (kind) => {
		const name = `${kind} over ${way}`;
		const ask = async () => {
			const answer = await ASK[way](kind, `${way}-${kind}`);

			if (!answer.allowed && !answer.refused)
				throw new Error(`neither allowed nor refused: ${answer.status} ${answer.body}`);
			return answer;
		};

		try {
			await comesTrue(ask, { name });
			console.log(`ok - headers come true: ${name}`);
		} catch (error) {
			failed++;
			console.log(`not ok - headers: ${error.message.split('\n')[0]}`);
		}
	})));
	agent.destroy();
	process.exit(failed ? 1 : 0);
}

main();
