// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * api.js BASE PID REDIS - everything that docs/openapi.yaml says, asked of a sluiced with the rules and the
 * callers of tests/http/api.sh; on the way the process REDIS is killed, and at the end PID is sent SIGTERM. Prints "ok - " and "not ok - ".
 */
'use strict';
const assert = require('node:assert/strict');
const net = require('node:net');
const os = require('node:os');
const { openapi } = require('./openapi');

const [base, pid, redis] = process.argv.slice(2);
const api = openapi(base);
const call = (key, value, more = {}) => ({ domain: 'api', descriptors: [{ entries: [{ key, value }] }], ...more });
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let failed = 0, released;

async function test(words, run) {
	try {
		await run();
		console.log(`ok - ${words}`);
	} catch (error) {
		failed++;
		console.log(`not ok - ${words}: ${error.message.split('\n')[0]}`);
	}
}

const status = async (expected, ...args) => {
	const answer = await api.ask(...args);

	assert.equal(answer.status, expected, `${args[0]} ${args[1]}: ${answer.status}, not ${expected}: ${answer.body}`);
	return answer;
};

/* Sends `text` over a connection of its own; the answer, unchecked. */
const talk = (text) => new Promise((resolve, reject) => {
	const socket = net.connect(new URL(base).port, '127.0.0.1', () => socket.write(text));

	read(socket).then(resolve, reject);
});

function read(socket) {
	return new Promise((resolve, reject) => {
		let text = '';

		socket.on('data', (chunk) => { text += chunk; });
		socket.on('error', reject);
		socket.on('end', () => {
			const [head, body] = text.split('\r\n\r\n');
			const lines = head.split('\r\n');
			const headers = Object.fromEntries(lines.slice(1).map((line) => line.split(': ', 2)));

			resolve({ status: Number(lines[0].split(' ')[1]), headers, body });
		});
	});
}

async function document() {
	await test('the document is OpenAPI 3.1', api.valid);
	await test('what is not HTTP, on each path', async () => {
		const heads = [[431, 'X-Long: ' + 'x'.repeat(257 << 10)], [431, 'X-A: b\r\n'.repeat(130).trim()],
			[417, 'Expect: wonders'], [400, 'Host: another']];

		for (const [path, operations] of Object.entries(api.document.paths)) {
			const method = Object.keys(operations)[0].toUpperCase();

			for (const [expected, head] of heads) {
				const answer = await talk(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\n` +
					`Connection: close\r\n${head}\r\n\r\n`);

				assert.equal(answer.status, expected, `${path} ${head.slice(0, 20)}: ${answer.body}`);
				api.check(method, path, answer);
			}
		}
	});
	await test('a limit of the query: the document admits what the server reads', async () => {
		const texts = { '10/s': 204, '0/m': 403, '1K/h': 204, '1.5K/d': 204, '16M/w': 204, '0.5K/s': 204,
			'0.5/s': 500, '.5/s': 500, '1./s': 500, '1e3/s': 500, '10/min': 500, '10': 500, '/s': 500, '1T/s': 500, '': 500 };

		for (const [text, expected] of Object.entries(texts)) {
			const query = `domain=api&d=limited&limit=${text}`;

			await status(expected, 'GET', `/nginx/check?${query}`, { headers: { 'X-Sluice-V-limited': text } });
			assert.equal(api.admits('/nginx/check', query), expected !== 500, text);
		}
	});
	await test('too many large requests at once', async () => {
		const body = 'x'.repeat((4 << 20) - 1), sockets = [];

		/* 64 MiB are for each worker. */
		const first = await new Promise((resolve, reject) => {
			for (let i = 0; i < 20 * os.cpus().length; i++) {
				const socket = net.connect(new URL(base).port, '127.0.0.1', () => socket.write('POST /v1/check HTTP/1.1\r\n' +
					`Host: localhost\r\nContent-Length: ${4 << 20}\r\n\r\n${body}`));

				sockets.push(socket);
				read(socket).then(resolve, () => 0);
			}
			setTimeout(() => reject(new Error('none was refused')), 20000).unref();
		});

		sockets.forEach((socket) => socket.destroy());
		assert.equal(first.status, 503, first.body);
		api.check('POST', '/v1/check', first);
	});
}

async function checks() {
	await test('check: allowed, refused, and never', async () => {
		await status(200, 'POST', '/v1/check', { json: call('user', 'a', { source: '192.0.2.7', peek: false }) });
		await status(200, 'POST', '/v1/check', { json: { domain: 'api', source: null, descriptors: [
			{ entries: [{ key: 'user', value: 'a' }], hits: 2 },
			{ entries: [{ key: 'nothing', value: '' }], hits: 0 },
			{ entries: [{ key: 'free', value: 'x' }] }] } });
		const refused = await status(429, 'POST', '/v1/check', { json: call('user', 'a') });

		assert.deepEqual(JSON.parse(refused.body)['violated-policies'], ['user']);
		const never = await status(429, 'POST', '/v1/check', { json: { domain: 'api',
			descriptors: [{ entries: [{ key: 'user', value: 'b' }], hits: 4 }] } });

		assert.equal(never.headers['retry-after'], undefined);
		assert.equal(JSON.parse(never.body).statuses[0].retry_after_ms, null);
	});
	await test('check: shadow is in the response and refuses nothing', async () => {
		await status(200, 'POST', '/v1/check', { json: call('watched', 'a') });
		const over = JSON.parse((await status(200, 'POST', '/v1/check', { json: call('watched', 'a') })).body);

		assert.equal(over.statuses[0].shadow, true);
		assert.equal(over.statuses[0].code, 'OK');
		const names = '["api/watched"]', other = { headers: { 'X-Sluice-V-watched': 'b' } };

		assert.equal((await status(204, 'GET', '/nginx/check?domain=api&d=watched', other)).headers['x-sluice-shadow'], undefined);
		assert.equal((await status(204, 'GET', '/nginx/check?domain=api&d=watched', other)).headers['x-sluice-shadow'], names);
		assert.equal((await status(200, 'GET', '/forward-auth?domain=api&d=watched=a')).headers['x-sluice-shadow'], names);
		assert.equal(JSON.parse((await status(200, 'POST', '/json', { json: { domain: 'api',
			descriptors: [{ entries: [{ key: 'watched', value: 'a' }] }] } })).body).dynamicMetadata.shadow, names);
	});
	await test('check: a ban, and the limit of a whole domain', async () => {
		const whole = (expected, value) => status(expected, 'POST', '/v1/check', { json: { domain: 'whole',
			descriptors: [{ entries: [{ key: 'user', value }] }] } });
		let answer = JSON.parse((await whole(200, 'a')).body);

		assert.equal(answer.domain.remaining, 2);
		for (let i = 0; i < 3; i++)
			answer = JSON.parse((await whole(429, 'a')).body);
		assert.ok(answer.statuses[0].banned_ms > 500000, JSON.stringify(answer));
		await whole(200, 'b');
		await whole(200, 'c');
		assert.equal(JSON.parse((await whole(429, 'd')).body).domain.code, 'OVER_LIMIT');
	});
	await test('check: a peek charges nothing', async () => {
		for (let i = 0; i < 5; i++)
			await status(200, 'POST', '/v1/check', { json: call('user', 'peeked', { peek: true }) });
		const answer = await status(200, 'POST', '/v1/check', { json: call('user', 'peeked') });

		assert.equal(JSON.parse(answer.body).statuses[0].remaining, 2);
	});
	await test('check: what is none', async () => {
		for (const body of ['', '{', '[]', '{"domain":"api"}', '{"domain":"api","descriptors":[],"x":1}',
			JSON.stringify(call('user', 5)), JSON.stringify(call('user', 'x', { hits: 1 }))])
			await status(400, 'POST', '/v1/check', { body });
		await status(400, 'POST', '/v1/check', { json: call('user', 'x'), headers: { 'X-Sluice-Wait': 'soon' } });
		await status(429, 'POST', '/v1/check', { body: ' '.repeat((4 << 20) + 1) });
		await status(405, 'GET', '/v1/check');
	});
	await test('check: text of any kind, 64 KiB of it, is a value', async () => {
		for (const value of ['', '\0', '\ufffd\u{1f600}', '\udc80', 'x'.repeat(65536), '"\\\n'])
			await status(200, 'POST', '/v1/check', { json: call('user', value) });
		const raw = Buffer.from(JSON.stringify(call('user', 'RAW')).replace('RAW', 'b\xff\xfe'), 'latin1');

		for (let i = 0; i < 4; i++)
			await status(i < 3 ? 200 : 429, 'POST', '/v1/check', { body: raw });
		/* Python's way to say the same bytes, and nginx's. */
		await status(429, 'POST', '/v1/check', { body: JSON.stringify(call('user', 'RAW')).replace('RAW', 'b\\udcff\\udcfe') });
		await status(403, 'GET', '/nginx/check?domain=api&d=user', { headers: { 'X-Sluice-V-user': 'b\xff\xfe' } });
	});
}

async function reports() {
	const item = (more) => call('user', 'reported', more);
	const left = async () => JSON.parse((await api.ask('POST', '/v1/check', { json: item({ peek: true }) })).body)
		.statuses[0].remaining;
	const hits = (n) => ({ descriptors: [{ entries: [{ key: 'user', value: 'reported' }], hits: n }] });
	const send = async (...items) => JSON.parse((await status(202, 'POST', '/v1/report', { json: items })).body);

	await test('report: charged, given back, never below empty', async () => {
		assert.deepEqual(await send(item({ status: 200, source: '192.0.2.7', latency: 0.25,
			at: Date.now() / 1000 }), item({ latency_ms: 12 })),
			{ accepted: 2, rejected: [], not_charged: [] });
		assert.equal(await left(), 1);
		await send(item(hits(-1)));
		assert.equal(await left(), 2);
		await send(item(hits(-100)));
		assert.equal(await left(), 3);
	});
	await test('report: an id is charged once, a 429 not at all', async () => {
		const twice = await send(item({ id: 'one' }), item({ id: 'one' }));
		await send(item({ id: 'one', at: new Date().toISOString() }));
		const refused = await send(item({ status: 429 }), item({ status: 429 }), item({ status: 429 }));
		assert.equal(await left(), 2);
		assert.deepEqual(twice, { accepted: 2, rejected: [], not_charged: [{ index: 1, detail: 'its id was reported before' }] });
		assert.deepEqual(refused.not_charged.map((u) => u.index), [0, 1, 2]);
	});
	await test('report: what met no rule is named', async () => {
		const answer = await send(call('user', 'named'), { domain: 'api', descriptors: [
			{ entries: [{ key: 'user', value: 'named' }] }, { entries: [{ key: 'usr', value: 'named' }] }] },
		call('nothing', 'x'), call('nothing', 'x', { descriptors: [{ entries: [{ key: 'nothing', value: 'x' }], hits: 0 }] }));

		assert.equal(answer.accepted, 4);
		assert.deepEqual(answer.not_charged.map((u) => [u.index, u.descriptor]), [[1, 1], [2, 0]]);
		assert.match(answer.not_charged[0].detail, /no rule/);
	});
	await test('report: above the limit, a debt of one capacity at most', async () => {
		for (let i = 0; i < 20; i++)
			await send(item());
		assert.equal(await left(), 0);
		/* Of the window that is running; what a debt is depends on the algorithm. */
		await status(429, 'POST', '/v1/check', { json: item() });
	});
	await test('report: an invalid one is reported by its index and affects no other', async () => {
		const answer = await status(202, 'POST', '/v1/report', { body: JSON.stringify([call('user', 'good'), 7,
			call('user', 'good', { at: 'never' }), call('user', 'good')]) });
		const { accepted, rejected } = JSON.parse(answer.body);

		assert.equal(accepted, 2);
		assert.deepEqual(rejected.map((r) => r.index), [1, 2]);
	});
	await test('report: 10000, and one more', async () => {
		const many = Array.from({ length: 10000 }, (_, i) => call('nothing', String(i)));

		assert.equal((await send(...many)).accepted, 10000);
		await status(413, 'POST', '/v1/report', { body: JSON.stringify([...many, 1]) });
		await status(400, 'POST', '/v1/report', { body: '{}' });
		await status(405, 'PUT', '/v1/report', { body: '' });
	});
}

async function rls() {
	const ask = async (expected, descriptor, more = {}) => JSON.parse((await status(expected, 'POST', '/json',
		{ json: { domain: 'api', descriptors: [descriptor], ...more } })).body);

	await test('json: envoyproxy/ratelimit\'s members, both spellings', async () => {
		const first = await ask(200, { entries: [{ key: 'named', value: 'r' }], hitsAddend: 1, limit: null });

		assert.deepEqual(first.statuses[0].currentLimit, { requestsPerUnit: 3, unit: 'DAY', name: 'three' });
		assert.equal(first.statuses[0].limitRemaining, 2);
		assert.deepEqual(first.dynamicMetadata, { metadata: { plan: 'free' } });
		await ask(200, { entries: [{ key: 'named', value: 'r' }], hits_addend: '2', isNegativeHits: false });
		assert.equal((await ask(429, { entries: [{ key: 'named', value: 'r' }], is_negative_hits: false })).overallCode,
			'OVER_LIMIT');
		await ask(200, { entries: [{ key: 'named', value: null }] }, { hitsAddend: '1' });
		await ask(200, { entries: [{ key: 'named' }] }, { hits_addend: 1 });
	});
	await test('json: a limit of the request\'s own', async () => {
		const own = { entries: [{ key: 'named', value: 'own' }], limit: { requestsPerUnit: 1, unit: 'HOUR' } };

		await ask(200, own);
		await ask(429, own);
		await ask(200, { ...own, limit: { requests_per_unit: '5', unit: 4 } });
	});
	await test('json: what is none', async () => {
		await status(400, 'POST', '/json', { body: '{"domain":"api","descriptors":[]}' });
		await status(429, 'POST', '/json', { body: ' '.repeat((4 << 20) + 1) });
		await status(405, 'GET', '/json');
	});
}

async function proxies() {
	await test('nginx: 204, 403, and 500 for the administrator\'s mistakes', async () => {
		const headers = { 'X-Sluice-V-user': 'n', 'X-Sluice-Source': '192.0.2.7' };

		for (let i = 0; i < 4; i++)
			await status(i < 3 ? 204 : 403, 'GET', '/nginx/check?domain=api&d=user', { headers });
		await status(204, 'GET', '/nginx/check?domain=api&d=user&hits=0', { headers });
		for (let i = 0; i < 3; i++)
			await status(i < 2 ? 204 : 403, 'GET', '/nginx/check?domain=api&d=user&limit=2/d', { headers });
		await status(500, 'GET', '/nginx/check?domain=api&d=user&hit=1', { headers });
		await status(500, 'GET', '/nginx/check?d=user', { headers });
		await status(405, 'POST', '/nginx/check?domain=api&d=user');
	});
	await test('a request in flight, and its end', async () => {
		const json = call('flight', 'x');
		const { permit } = JSON.parse((await status(200, 'POST', '/v1/check', { json })).body);

		await status(429, 'POST', '/v1/check', { json });
		await status(202, 'POST', '/v1/report', { json: [{ domain: 'api', release: permit }] });
		assert.match(JSON.parse((await status(200, 'GET', '/forward-auth?domain=api&d=flight=x')).body).permit, /^[0-9a-f]{32}$/);
		assert.match((await status(204, 'GET', '/nginx/check?domain=api&d=flight=y')).headers['x-sluice-permit'], /^[0-9a-f]{32}$/);
	});
	await test('forward-auth: 200, 429, and 500', async () => {
		for (let i = 0; i < 4; i++)
			await status(i < 3 ? 200 : 429, 'GET', '/forward-auth?domain=api&d=user:header(X-User)', { headers: { 'X-User': 'f' } });
		await status(500, 'GET', '/forward-auth?domain=api&d=user');
		await status(405, 'POST', '/forward-auth?domain=api&d=path');
	});
	await test('health', async () => {
		for (const path of ['/healthz', '/readyz', '/healthcheck']) {
			await status(200, 'GET', path);
			await status(405, 'POST', path);
		}
	});
}

async function callers() {
	const web = { Origin: 'http://a.example' };

	await test('who may not: a web page, and a token that nobody has', async () => {
		for (const path of ['/healthz', '/readyz', '/healthcheck'])
			await status(403, 'GET', path, { headers: web });
		for (const path of ['/v1/check', '/v1/report', '/json']) {
			const json = path === '/v1/report' ? [call('user', 'x')] : call('user', 'x');

			await status(403, 'POST', path, { json, headers: web });
			await status(401, 'POST', path, { json, headers: { Authorization: 'Bearer wrong' } });
			await status(401, 'POST', path, { json, headers: { 'X-Sluice-Token': 'wrong' } });
		}
		for (const path of ['/nginx/check?domain=api&d=user', '/forward-auth?domain=api&d=path']) {
			await status(500, 'GET', path, { headers: web });
			await status(500, 'GET', path, { headers: { 'X-Sluice-Token': 'wrong' } });
			/* That is the client's. */
			assert.notEqual((await api.ask('GET', path, { headers: { Authorization: 'Bearer wrong' } })).status, 500);
		}
	});
}

async function deferred() {
	const later = (key, reference) => api.ask('POST', '/v1/check', { json: call(key, 'x', { reference }) });
	const defer = async (key) => {
		let answer;

		for (let i = 0; i < 5 && (!answer || answer.status === 200); i++)
			answer = await later(key, '/report');
		assert.equal(answer.status, 202, answer.body);
		return JSON.parse(answer.body).ticket;
	};

	await test('deferred: a ticket, looked up and cancelled', async () => {
		const ticket = await defer('later'), path = `/v1/defer/${ticket}`;
		const looked = await status(200, 'GET', path);

		assert.deepEqual(JSON.parse(looked.body), { ticket, state: 'waiting', position: 1 });
		const nginx = await status(403, 'GET', '/nginx/check?domain=api&d=later&defer=on',
			{ headers: { 'X-Sluice-V-later': 'x', 'X-Sluice-Reference': '/report' } });

		assert.equal(nginx.headers['x-sluice-position'], '2');
		assert.equal(JSON.parse((await status(200, 'DELETE', path)).body).state, 'cancelled');
		await status(404, 'GET', path);
		await status(404, 'DELETE', path);
		await status(405, 'POST', path);
		await status(403, 'GET', path, { headers: { Origin: 'http://a.example' } });
		await status(401, 'GET', path, { headers: { 'X-Sluice-Token': 'wrong' } });
	});
	await test('deferred: what was released cannot be cancelled', async () => {
		const path = released = `/v1/defer/${await defer('soon')}`;
		let state;

		for (let i = 0; i < 100 && state !== 'released'; i++) {
			await sleep(100);
			state = JSON.parse((await status(200, 'GET', path)).body).state;
		}
		await status(409, 'DELETE', path);
	});
}

/* Redis is killed, and the rules say closed or error. */
async function unavailable() {
	process.kill(Number(redis), 'SIGKILL');
	await test('no store: tickets', async () => {
		let answer;

		for (let i = 0; i < 100 && (!answer || answer.status !== 503); i++) {
			answer = await api.ask('GET', released);
			await sleep(20);
		}
		assert.equal(answer.status, 503);
		await status(503, 'DELETE', released);
	});
	await test('no store: closed and error, with the limits that were looked at', async () => {
		for (const [key, code] of [['closed', 'CLOSED'], ['error', 'ERROR']]) {
			const headers = { 'X-Sluice-V-user': `${key}-nginx`, [`X-Sluice-V-${key}`]: 'x', 'X-User': `${key}-forward`, 'X-Key': 'x' };
			const both = (value) => ({ domain: 'api', descriptors: [{ entries: [{ key: 'user', value }] },
				{ entries: [{ key, value: 'x' }] }] });
			const check = await status(503, 'POST', '/v1/check', { json: both(key) });

			assert.equal(JSON.parse(check.body).code, code);
			assert.match(check.headers.ratelimit, /"user";r=3/);
			assert.equal((await status(503, 'GET', `/forward-auth?domain=api&d=user:header(X-User)&d=${key}:header(X-Key)`,
				{ headers })).headers['x-sluice-violated-policies'], '[]');
			const nginx = await status(code === 'ERROR' ? 500 : 403, 'GET', `/nginx/check?domain=api&d=user&d=${key}`, { headers });

			assert.match(nginx.headers.ratelimit, /"user";r=3/);
			await status(code === 'ERROR' ? 503 : 429, 'POST', '/json', { json: both(`${key}-json`) });
		}
	});
}

/* The state is full of those at their limit, and the rules say closed. */
async function full() {
	await test('full: closed is 503, 429 and 403', async () => {
		let answer;

		for (let i = 0; i < 40000; i++) {
			answer = await api.ask('POST', '/v1/check', { json: call('once', `x${i}`) });
			if (answer.status !== 200)
				break;
		}
		assert.equal(answer.status, 503);
		assert.equal(JSON.parse(answer.body).code, 'CLOSED');
		const seen = { json: 0, nginx: 0, auth: 0 };

		for (let i = 0; i < 2000 && (!seen.json || !seen.nginx || !seen.auth); i++) {
			seen.json += (await api.ask('POST', '/json', { json: call('once', `j${i}`) })).status === 429;
			seen.nginx += (await api.ask('GET', '/nginx/check?domain=api&d=once',
				{ headers: { 'X-Sluice-V-once': `n${i}` } })).status === 403;
			seen.auth += (await api.ask('GET', '/forward-auth?domain=api&d=once:header(X-Once)',
				{ headers: { 'X-Once': `f${i}` } })).status === 503;
		}
		assert.ok(seen.json && seen.nginx && seen.auth, JSON.stringify(seen));
	});
}

/* Requests that have begun when the server gets SIGTERM. */
async function draining() {
	const { port } = new URL(base);
	const begin = (path) => new Promise((resolve) => {
		const socket = net.connect(port, '127.0.0.1', () => {
			socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n`, () => resolve({ path, socket }));
		});
	});
	const finish = async ({ path, socket }) => {
		const answer = read(socket);

		socket.write('\r\n');
		return { path, answer: await answer };
	};

	await test('draining: requests are decided until the end', async () => {
		const begun = await Promise.all(['/readyz', '/healthcheck'].map(begin));
		const late = await begin('/healthz'), unfinished = read(late.socket).then((answer) => ({ answer }));

		await sleep(100);
		process.kill(Number(pid), 'SIGTERM');
		await sleep(200);
		for (const { path, answer } of await Promise.all(begun.map(finish))) {
			assert.equal(answer.status, 200, path);
			api.check('GET', path, answer);
		}
		const { answer } = await unfinished;

		assert.equal(answer.status, 408, answer.body);
		api.check('GET', '/healthz', answer);
	});
}

async function main() {
	for (const part of [document, checks, reports, rls, proxies, callers, deferred, unavailable, full, draining])
		await part();
	const missing = api.missing();

	await test('every path, status, header and member of docs/openapi.yaml was seen',
		() => assert.deepEqual(missing, [], `never seen: ${missing.join('; ')}`));
	process.exit(failed ? 1 : 0);
}

main();
