// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * wait.js WAY ADDRESS - held answers: a leaky bucket of 5 requests/s, wait 2s, queue 10, for each
 * user (tests/http/wait.sh). WAY: check (/v1/check), nginx (a page behind auth_request), grpc.
 *
 * Who comes at the same time may come in any order to a machine that stands still for a moment,
 * so what is about order and times has five tries, each with a user of its own; a limiter that
 * gets it wrong gets it wrong each time.
 */
'use strict';

const http = require('http');
const { Client, headers, ok, done, sleep } = require('./rls');

const [way, address] = process.argv.slice(2);
const [host, port] = address.split(':');
const MS = 200;			// between two requests of a bucket
let clients = 0;

// One request on a connection of its own. Its answer: {code, at, ms, retryAfter, waited}.
function httpRequest(user, wait, cancel) {
	const body = JSON.stringify({ domain: 'api', descriptors: [{ entries: [{ key: 'user', value: user }] }] });
	const options = way === 'nginx' ?
		{ method: 'GET', path: '/page', headers: { 'x-user': user } } :
		{ method: 'POST', path: '/v1/check',
		  headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) } };
	const began = Date.now();

	if (wait !== null && way === 'check')
		options.headers['x-sluice-wait'] = wait;
	return new Promise((resolve) => {
		const request = http.request({ host, port, agent: false, ...options }, (response) => {
			let text = '';

			response.on('data', (data) => { text += data; });
			response.on('end', () => resolve({
				code: response.statusCode, at: Date.now(), ms: Date.now() - began,
				retryAfter: Number(response.headers['retry-after'] || 0),
				delayed: way === 'check' ? JSON.parse(text).delayed_ms : undefined,
			}));
		});

		request.on('error', () => resolve({ code: 'gone', at: Date.now(), ms: Date.now() - began }));
		if (cancel)
			cancel.fire = () => request.destroy();
		request.end(way === 'nginx' ? undefined : body);
	});
}

// Over gRPC the deadline is what the caller waits. Half of them share a connection.
const shared = way === 'grpc' ? [new Client(address), new Client(address)] : [];
async function grpcRequest(user, wait, cancel) {
	const options = wait === null ? {} : { deadline: Date.now() + wait };
	const answer = await shared[clients++ % 2].ask('api', [{ user }], {}, options, cancel);

	return { code: answer.error || (answer.overall_code === 'OK' ? 200 : 429), at: Date.now(),
		 ms: answer.ms, retryAfter: Number(headers(answer)['retry-after'] || 0) };
}

const LONG = way === 'grpc' ? 10000 : '5s';
function ask(user, wait = LONG, cancel = null) {
	return way === 'grpc' ? grpcRequest(user, wait, cancel) : httpRequest(user, wait, cancel);
}

// So many at once, in this order.
async function burst(user, count, cancels = []) {
	const all = [];

	for (let i = 0; i < count; i++) {
		all.push(ask(user, LONG, cancels[i]));
		await sleep(8);
	}
	return all;
}

// The k-th after k x 200 ms, give or take what a busy machine needs. NULL: good.
function wrongTimes(answers) {
	const first = answers[0].at;

	for (let k = 0; k < answers.length; k++) {
		const after = answers[k].at - first;

		if (answers[k].code !== 200 || after < k * MS - 60 || after > k * MS + 180)
			return { k, after, code: answers[k].code };
	}
	return null;
}

async function fiveTries(words, run) {
	let wrong;

	for (let i = 0; i < 5; i++) {
		wrong = await run(`${way}-${words.replace(/ /g, '-')}-${i}`);
		if (!wrong)
			break;
	}
	ok(`${way}: ${words}`, !wrong, wrong);
}

// Eleven are served in their order; the one beyond the queue is refused at once.
async function inOrder(user) {
	const all = await burst(user, 12);
	const refused = await all.pop();
	const neighbour = await ask(`${user}-neighbour`);
	const answers = await Promise.all(all);

	if (refused.code !== 429 || refused.ms > 150)
		return { refused };
	// Eleven are before it and each takes 200 ms; jitter adds a tenth.
	if (way !== 'nginx' && (refused.retryAfter < 2 || refused.retryAfter > 3))
		return { refused };
	if (neighbour.code !== 200 || neighbour.ms > 150)
		return { neighbour };
	if (way === 'check' && answers.some((answer, k) => Math.abs(answer.delayed - k * MS) > 120))
		return { delayed: answers.map((answer) => answer.delayed) };
	return wrongTimes(answers);
}

async function cancelled(user) {
	const cancels = Array.from({ length: 11 }, () => ({}));
	const all = await burst(user, 11, cancels);

	for (const i of [2, 5, 8])
		cancels[i].fire();
	const stay = (await Promise.all(all)).filter((answer) => answer.code === 200);

	return stay.length === 8 ? wrongTimes(stay) : { served: stay.length };
}

// A deadline that the wait would miss is refused before it, not after.
async function deadline(user) {
	const patience = way === 'grpc' ? 320 : '320ms';
	await ask(user);
	const first = ask(user, patience);
	await sleep(8);
	const second = ask(user, patience);
	const [soon, late] = [await first, await second];
	const none = await ask(user, way === 'grpc' ? null : '0');

	if (soon.code !== 200 || soon.ms > 320)
		return { soon };
	if (late.code !== 429 || late.ms > 150)
		return { late };
	return none.code === 429 && none.ms < 150 ? null : { none };
}

(async () => {
	await fiveTries('the k-th is answered after k x 200 ms, one beyond the queue is not held', inOrder);
	await fiveTries('three go and the others move up', cancelled);
	if (way !== 'nginx')
		await fiveTries('the caller\'s own deadline', deadline);
	done();
})();
