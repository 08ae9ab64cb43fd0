// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ratelimit.js ADDRESS - what is different from envoyproxy/ratelimit, and what beside it is the same,
 * with the rules of tests/http/ratelimit.sh.
 */
'use strict';

const { Client, descriptors, done, headers, is, ok } = require('./rls');

const client = new Client(process.argv[2]);
const ask = (list, more, domain = 'diff') => client.ask(domain, list, more);
const own = (entries, requests, unit = 'DAY') =>
	({ ...descriptors([entries])[0], limit: { requests_per_unit: requests, unit } });

async function charges() {
	await ask([{ user: 'bob' }], { hits_addend: 3 });
	let answer = await ask([{ user: 'bob' }, { path: '/a' }], { hits_addend: 3 });

	is('3 hits where 2 are left', answer.statuses.map((status) => status.code), ['OVER_LIMIT', 'OK']);
	is('limit_remaining of what refuses is what fits (there 0)', answer.statuses[0].limit_remaining, 2);
	is('nothing is charged to the others (there 3 are)', answer.statuses[1].limit_remaining, 5);
	answer = await ask([{ user: 'bob' }, { path: '/a' }], { hits_addend: 2 });
	is('so what fits passes (there it is over already)', answer.overall_code, 'OK');
}

async function values() {
	const codes = [];

	for (const address of ['2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8:0:1::1'])
		codes.push((await ask([{ address }])).overall_code);
	is('IPv6 values of a /64 are one', codes, ['OK', 'OK', 'OVER_LIMIT', 'OK']);
	is('of IPv4 each is one', (await ask([{ address: '192.0.2.1' }, { address: '192.0.2.2' }],
		{ hits_addend: 2 })).overall_code, 'OK');
}

async function statuses() {
	const answer = await ask([{ user: 'al' }, { none: 'x' }, { no: 'rule' }]);
	const [user, none, other] = answer.statuses;

	is('current_limit has a name always', user.current_limit,
	   { requests_per_unit: 5, unit: 'DAY', name: 'user' });
	is('duration_until_reset is whole seconds, as there', (await ask([{ user: 'al' }]))
		.statuses[0].duration_until_reset.nanos || 0, 0);
	is('a limit of 0 is in the response, as there', [none.code, none.current_limit.unit], ['OVER_LIMIT', 'DAY']);
	is('no rule: no current_limit, as there', [other.code, other.current_limit || null], ['OK', null]);
	const names = Object.keys(headers(await ask([{ user: 'carl' }]))).sort();
	is('headers are there unasked', names,
	   ['ratelimit', 'ratelimit-policy', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']);
	ok('and Retry-After on a refusal', headers(answer)['retry-after'] === undefined &&
	   headers(await ask([{ user: 'dora' }], { hits_addend: 5 }))['x-ratelimit-remaining'] === '0' &&
	   headers(await ask([{ user: 'dora' }]))['retry-after'] > 0, headers(answer));
}

async function overrides() {
	const request = { domain: 'nowhere', descriptors: [own({ user: 'bob' }, 1)] };
	const codes = [];

	for (let i = 0; i < 2; i++)
		codes.push((await client.call('envoy', 'ShouldRateLimit', request)).overall_code);
	is('a limit of the request holds in a domain without rules, too (there it does not)', codes,
	   ['OK', 'OVER_LIMIT']);
}

async function quota() {
	const codes = [];

	for (let i = 0; i < 2; i++)
		codes.push((await ask([{ backend_name: 'a', tenant: 'x' }, { backend_name: 'a', pool: 'y' }]))
			.overall_code);
	is('each descriptor is a quota of its own (there those of a backend_name are one)', codes, ['OK', 'OK']);
}

(async () => {
	for (const step of [charges, values, statuses, overrides, quota])
		await step();
	is('hits are charged', (await ask([{ counted: 'x' }], { hits_addend: 3 })).statuses[0].limit_remaining, 97);
	client.close();
	done();
})();
