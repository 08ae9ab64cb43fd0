// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * grpc.js ADDRESS... - rls.proto as @grpc/grpc-js speaks it, against a live daemon with the rules
 * of tests/http/grpc.sh.
 *
 *     grpc.js 127.0.0.1:PORT /run/grpc.sock localhost:TLSPORT CA.pem
 */
'use strict';

const fs = require('fs');
const http2 = require('http2');
const { Client, descriptors, done, grpc, headers, is, ok, plain, sleep } = require('./rls');

const [address, unix, tls, ca] = process.argv.slice(2);
const client = new Client(address);

async function statuses() {
	let answer = await client.ask('api', [{ user: 'bob' }, { none: 'x' }, { plan: 'free', path: '/' }]);

	is('OK', answer.overall_code, 'OK');
	is('a status for each descriptor', answer.statuses.length, 3);
	is('in the order of the request', answer.statuses.map((status) =>
		(status.current_limit || {}).requests_per_unit || 0), [5, 0, 7]);
	is('current_limit is N per one unit', answer.statuses[0].current_limit,
	   { requests_per_unit: 5, unit: 'DAY', name: 'user' });
	is('limit_remaining', answer.statuses[0].limit_remaining, 4);
	const reset = Number(answer.statuses[0].duration_until_reset.seconds);
	ok('duration_until_reset is within the day', reset >= 0 && reset <= 86400, reset);
	for (let n = 3; n >= 0; n--) {
		answer = await client.ask('api', [{ user: 'bob' }]);
		if ((answer.statuses[0].limit_remaining || 0) !== n)
			is('limit_remaining counts down', answer.statuses[0].limit_remaining, n);
	}
	answer = await client.ask('api', [{ user: 'bob' }, { plan: 'free', path: '/' }]);
	is('the sixth is OVER_LIMIT', answer.overall_code, 'OVER_LIMIT');
	is('and only the limit that refuses says so', answer.statuses.map((status) => status.code),
	   ['OVER_LIMIT', 'OK']);
	is('which charged nothing elsewhere', answer.statuses[1].limit_remaining, 6);
	ok('Retry-After is there', headers(answer)['retry-after'] > 0, headers(answer));
	answer = await client.ask('api', [{ user: 'alice' }]);
	is('another user has his own', [answer.overall_code, answer.statuses[0].limit_remaining], ['OK', 4]);
	answer = await client.ask('other', [{ user: 'bob' }]);
	is('another domain has no rules', answer.overall_code, 'OK');
}

async function hits() {
	let answer = await client.ask('api', [{ user: 'carol' }], { hits_addend: 4 });

	is('hits_addend is charged', answer.statuses[0].limit_remaining, 1);
	answer = await client.ask('api', [{ user: 'carol' }], { hits_addend: 2 });
	is('all of it or nothing', [answer.overall_code, answer.statuses[0].limit_remaining],
	   ['OVER_LIMIT', 1]);
	const own = descriptors([{ user: 'carol' }]);
	own[0].hits_addend = { value: 0 };
	answer = await client.call('envoy', 'ShouldRateLimit',
				   { domain: 'api', descriptors: own, hits_addend: 9 });
	is('a descriptor\'s own 0 looks', [answer.overall_code, answer.statuses[0].limit_remaining],
	   ['OK', 1]);
	own[0] = { ...descriptors([{ user: 'dave' }])[0], limit: { requests_per_unit: 2, unit: 'HOUR' } };
	const codes = [];
	for (let i = 0; i < 3; i++) {
		answer = await client.call('envoy', 'ShouldRateLimit', { domain: 'api', descriptors: own });
		codes.push(answer.overall_code);
	}
	is('a limit of the request\'s own', codes, ['OK', 'OK', 'OVER_LIMIT']);
	is('which the answer tells', answer.statuses[0].current_limit.requests_per_unit, 2);
}

// Which backend has quota left: metadata of the rules that pass.
async function quota() {
	const verdicts = [];

	for (let i = 0; i < 3; i++) {
		const answer = await client.ask('quota', [{ backend: 'a' }, { backend: 'b' }]);

		verdicts.push([answer.overall_code, answer.dynamic_metadata && plain(answer.dynamic_metadata).metadata]);
	}
	is('both have quota, the first one is named', verdicts[0],
	   ['OK', { name: 'a', region: { eu: true, us: true }, weight: 2.5 }]);
	is('then the other one', verdicts[1], ['OK', { name: 'b', weight: 2.5, region: { us: true } }]);
	is('then none', verdicts[2], ['OVER_LIMIT', undefined]);
	for (let i = 0; i < 3; i++) {
		const answer = await client.ask('api', [{ watched: 'a' }]);

		is('a rule in shadow mode that would refuse is in the metadata', [answer.overall_code,
			answer.dynamic_metadata && plain(answer.dynamic_metadata).shadow], ['OK', i < 2 ? undefined : '["api/watched"]']);
	}
}

async function kuadrant() {
	const request = { domain: 'api', descriptors: descriptors([{ user: 'erin' }]) };
	let answer;

	for (let i = 0; i < 9; i++)
		answer = await client.call('kuadrant', 'CheckRateLimit', request);
	is('CheckRateLimit charges nothing', answer.overall_code, 'OK');
	answer = await client.call('kuadrant', 'Report', { ...request, hits_addend: 5 });
	is('Report is OK', answer.overall_code, 'OK');
	answer = await client.call('kuadrant', 'CheckRateLimit', request);
	is('and was charged', answer.overall_code, 'OVER_LIMIT');
}

// What the headers promise comes true: r more pass, then none until Retry-After is over.
async function comesTrue() {
	let answer = await client.ask('api', [{ burst: 'x' }]);
	const first = headers(answer);
	let passed = 0;

	is('RateLimit-Policy of a token bucket', first['ratelimit-policy'], [{ name: 'burst', q: 6, w: 3 }]);
	is('X-RateLimit-Limit and -Remaining', [first['x-ratelimit-limit'], first['x-ratelimit-remaining']],
	   ['6', '5']);
	for (;;) {
		answer = await client.ask('api', [{ burst: 'x' }]);
		if (answer.overall_code !== 'OK')
			break;
		passed++;
	}
	const remaining = first.ratelimit[0].r;
	ok('with r=n n more pass', passed >= remaining && passed <= remaining + 1, { passed, remaining });
	const wait = Number(headers(answer)['retry-after']);
	ok('Retry-After is a second at most, and some jitter', wait >= 1 && wait <= 2, wait);
	await sleep(wait * 1000);
	is('after Retry-After one passes', (await client.ask('api', [{ burst: 'x' }])).overall_code, 'OK');
}

async function parallel() {
	const one = await Promise.all(Array.from({ length: 100 }, () => client.ask('api', [{ many: 'x' }])));
	const passed = one.filter((answer) => answer.overall_code === 'OK').length;

	is('of 100 at once on one connection 40 pass', passed, 40);
	is('and 60 are refused', one.filter((answer) => answer.overall_code === 'OVER_LIMIT').length, 60);
	const left = one.filter((answer) => answer.overall_code === 'OK')
		.map((answer) => answer.statuses[0].limit_remaining || 0).sort((a, b) => a - b);
	is('each of them counted once', left, Array.from({ length: 40 }, (_, i) => i));
}

async function errors() {
	const fails = async (words, promise, status) => is(words, (await promise).error, status);

	await fails('an unknown method', client.call('envoy', 'NoSuchMethod', { domain: 'api' }), 'UNIMPLEMENTED');
	await fails('no domain', client.ask('', [{ user: 'bob' }]), 'INVALID_ARGUMENT');
	await fails('no descriptors', client.ask('api', []), 'INVALID_ARGUMENT');
	is('a value of 60 KiB is one', (await client.ask('api', [{ user: 'x'.repeat(61440) }])).overall_code, 'OK');
	const gzip = new Client(address, undefined, { 'grpc.default_compression_algorithm': 2 });
	await fails('gzip', gzip.ask('api', [{ user: 'x'.repeat(1000) }]), 'UNIMPLEMENTED');
	gzip.close();
	const metadata = new grpc.Metadata();
	metadata.set('authorization', 'Bearer wrong');
	await fails('a token nobody has', client.call('envoy', 'ShouldRateLimit',
		{ domain: 'api', descriptors: descriptors([{ user: 'bob' }]) }, {}, metadata), 'UNAUTHENTICATED');
}

/*
 * More than can be decided is decided as one that no rule matches, or refused; Envoy would let pass on
 * an error. Each time with the one that is just within beside it.
 */
async function bounds() {
	const key = (n) => ({ entries: [{ key: 'k'.repeat(n), value: 'v' }] });
	const deep = (n, more = []) => ({ entries: [...Array.from({ length: n },
		(_, i) => ({ key: `k${i}`, value: 'v' })), ...more] });
	const ask = async (descriptors, more = {}, domain = 'api') => {
		const answer = await client.call('envoy', 'ShouldRateLimit', { domain, descriptors, ...more });

		return answer.error || [answer.overall_code, (answer.statuses || []).length];
	};
	const user = (name) => descriptors([{ user: name }])[0];

	is('32 descriptors are decided', await ask(Array(32).fill(user('many32'))), ['OVER_LIMIT', 32]);
	is('of one that has room', await ask(Array(32).fill(user('many32')), { hits_addend: 0,
		descriptors: Array(32).fill({ ...user('many32'), hits_addend: { value: 0 } }) }), ['OK', 32]);
	is('33 are refused', await ask(Array(33).fill({ entries: [{ key: 'none', value: 'x' }] })),
	   ['OVER_LIMIT', 0]);
	is('1000 of nothing, too', await ask(Array(1000).fill({})), ['OVER_LIMIT', 0]);
	is('200000, too', await ask(Array(200000).fill({})), ['OVER_LIMIT', 0]);
	is('16 entries', await ask([deep(16)]), ['OK', 1]);
	is('17 match no rule', await ask([deep(17), user('beside17')]), ['OK', 2]);
	is('and those beside them are counted', (await client.ask('api', [{ user: 'beside17' }]))
		.statuses[0].limit_remaining, 3);
	is('a key of 300 bytes', await ask([key(300)]), ['OK', 1]);
	is('an empty key', await ask([key(0)]), ['OK', 1]);
	is('a descriptor without entries', await ask([{}]), ['OK', 1]);
	is('a domain of 300 bytes', await ask([user('bob')], {}, 'd'.repeat(300)), ['OK', 1]);
	is('4294967295 hits', await ask([user('hits')], { hits_addend: 4294967295 }), ['OVER_LIMIT', 1]);
	is('where no rule is, they are over no limit',
	   await ask(descriptors([{ none: 'x' }]), { hits_addend: 4294967295 }), ['OK', 1]);
	is('the most that a descriptor can say', await ask([{ ...user('hits'), hits_addend: {
		value: '18446744073709551615' } }]), ['OVER_LIMIT', 1]);
	is('and nothing was charged', (await client.ask('api', [{ user: 'hits' }])).statuses[0].limit_remaining,
	   4);
	const huge = (value) => ask([{ ...descriptors([{ huge: 'x' }])[0], hits_addend: { value } }]);
	is('a terabyte that fits a large limit', await huge('1099511627776'), ['OK', 1]);
	is('hits beyond are over it all the same', await huge('1099511627777'), ['OVER_LIMIT', 1]);
	is('a value of 900 KB', await ask([user('x'.repeat(9e5))]), ['OK', 1]);
	is('another one of it', (await client.ask('api', [{ user: `${'x'.repeat(9e5)}y` }]))
		.statuses[0].limit_remaining, 4);
	is('a message of 2 MB', await ask([user('x'.repeat(2e6))]), ['OVER_LIMIT', 0]);
	is('of CheckRateLimit as well', (await client.call('kuadrant', 'CheckRateLimit',
		{ domain: 'api', descriptors: [user('x'.repeat(2e6))] })).overall_code, 'OVER_LIMIT');
	is('the connection goes on', await ask([user('after')]), ['OK', 1]);
}

// Bytes that no gRPC library would send. Resolves to grpc-status.
function raw(session, body, length = body.length) {
	return new Promise((resolve) => {
		const request = session.request({
			':method': 'POST', ':path': '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
			'content-type': 'application/grpc', te: 'trailers',
		});
		const prefix = Buffer.alloc(5);
		let status;

		prefix.writeUInt32BE(length, 1);
		request.on('response', (got) => { status = got['grpc-status'] || status; });
		request.on('trailers', (got) => { status = got['grpc-status'] || status; });
		request.on('error', () => resolve('reset'));
		request.on('close', () => resolve(status));
		request.resume();
		request.end(Buffer.concat([prefix, body]));
	});
}

async function malformed() {
	const session = http2.connect(`http://${address}`);

	session.on('error', () => {});
	is('what is no protobuf', await raw(session, Buffer.from([0x0a, 0x64, 0x61])), '3');
	is('a message cut short', await raw(session, Buffer.from([0x0a]), 10), '3');
	is('an endless varint', await raw(session, Buffer.alloc(64, 0xff)), '3');
	is('field 0', await raw(session, Buffer.from([0x00, 0x01])), '3');
	// user=b\0b and user=b\xff in api: bytes, and not the same user.
	const entry = (value) => Buffer.from([0x0a, 3, 0x61, 0x70, 0x69, 0x12, 6 + 2 + value.length + 2,
		0x0a, 6 + 2 + value.length, 0x0a, 4, 0x75, 0x73, 0x65, 0x72, 0x12, value.length, ...value]);
	is('a NUL in a value', await raw(session, entry([0x62, 0, 0x62])), '0');
	is('bad UTF-8 in a value', await raw(session, entry([0x62, 0xff, 0xfe])), '0');
	session.close();
	const answer = await client.ask('api', [{ user: 'b' }]);
	is('and neither was charged to its beginning', answer.statuses[0].limit_remaining, 4);
}

async function health() {
	is('health', (await client.call('health', 'Check', {})).status, 'SERVING');
	is('health of the service', (await client.call('health', 'Check',
		{ service: 'envoy.service.ratelimit.v3.RateLimitService' })).status, 'SERVING');
	is('health by the name of envoyproxy/ratelimit', (await client.call('health', 'Check',
		{ service: 'ratelimit' })).status, 'SERVING');
	is('health of another', (await client.call('health', 'Check', { service: 'x' })).error, 'NOT_FOUND');
}

async function elsewhere() {
	const socket = new Client(`unix:${unix}`);

	is('a Unix socket asks the same core', (await socket.ask('api', [{ user: 'bob' }])).overall_code,
	   'OVER_LIMIT');
	socket.close();
	const secure = new Client(tls, grpc.credentials.createSsl(fs.readFileSync(ca)));
	is('TLS does, too', (await secure.ask('api', [{ user: 'bob' }])).overall_code, 'OVER_LIMIT');
	const many = await Promise.all(Array.from({ length: 50 }, (_, i) =>
		secure.ask('api', [{ user: `tls${i}`, }])));
	is('50 at once over TLS', many.filter((answer) => answer.overall_code === 'OK').length, 50);
	secure.close();
}

(async () => {
	for (const step of [statuses, hits, quota, kuadrant, comesTrue, parallel, errors, bounds, malformed, health,
			    elsewhere])
		await step();
	client.close();
	done();
})();
