// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * envoy.js CONFIG.json RUNNING|STOPPED|CONCURRENCY - what Envoy would ask under one of our example
 * configurations, request for request, and what its client would get. Envoy itself is not to be
 * had here, so its part is played: header mutations, a route, rate limit actions as its
 * documentation has them, and the question over gRPC.
 */
'use strict';

const fs = require('fs');
const { Client, headers, is, ok, done, plain, sleep } = require('./rls');

const config = JSON.parse(fs.readFileSync(process.argv[2]));
const manager = config.static_resources.listeners[0].filter_chains[0].filters[0].typed_config;
const filter = (name) => manager.http_filters.find((one) =>
	one.name === `envoy.filters.http.${name}`).typed_config;
const limit = filter('ratelimit');
const cluster = config.static_resources.clusters.find((one) =>
	one.name === limit.rate_limit_service.grpc_service.envoy_grpc.cluster_name);
const { address, port_value } =
	cluster.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address;
const client = new Client(`${address}:${port_value}`);

// One action: an entry, or null: the descriptor is left out.
function entry(action, request) {
	const [kind, of] = Object.entries(action)[0];

	switch (kind) {
	case 'header_value_match': {
		const [{ name, present_match }] = of.headers;
		const match = (name in request.headers) === present_match;

		return match === (of.expect_match ?? true) ? { key: of.descriptor_key, value: of.descriptor_value } : null;
	}
	case 'request_headers':
		return of.header_name in request.headers ?
			{ key: of.descriptor_key, value: request.headers[of.header_name] } : null;
	case 'metadata': {
		const value = of.metadata_key.path.reduce((at, { key }) => at && at[key],
			(request.metadata || {})[of.metadata_key.key]);

		return value ? { key: of.descriptor_key, value } : null;
	}
	case 'generic_key':
		return { key: of.descriptor_key || 'generic_key', value: of.descriptor_value };
	default:
		throw new Error(`an action that is not played here: ${kind}`);
	}
}

function question(request, done = false) {
	const host = manager.route_config.virtual_hosts[0];
	const { pathname } = new URL(request.path, 'http://a');
	const { route } = host.routes.find(({ match }) => match.prefix ? pathname.startsWith(match.prefix) :
		pathname === match.path_separated_prefix ||
		pathname.startsWith(`${match.path_separated_prefix}/`));
	const limits = [...route.rate_limits || []];

	if (!route.rate_limits || route.include_vh_rate_limits)
		limits.push(...host.rate_limits);
	return {
		domain: limit.domain,
		descriptors: limits.filter((one) => !!one.apply_on_stream_done === done).map(({ actions }) =>
			({ entries: actions.map((action) => entry(action, request)) }))
			.filter(({ entries }) => !entries.includes(null)),
	};
}

// A client's request through it, which the filter between has verified as of `user`: {status, headers, asked}.
async function send(peer, path, sent, user) {
	const request = { path, headers: { ...sent } };

	for (const { append, remove } of filter('header_mutation').mutations.request_mutations)
		if (remove)
			delete request.headers[remove];
		else
			request.headers[append.header.key] = append.header.value
				.replace('%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%', peer);
	if (user)
		request.headers['x-user'] = user;
	const asked = question(request);
	// Envoy waits for limit.timeout; a machine that tests may stand still for longer.
	const answer = await client.call('envoy', 'ShouldRateLimit', asked,
					 { deadline: Date.now() + 3000 });

	if (answer.error)
		return { asked, answer, status: !limit.failure_mode_deny ? 200 :
			 limit.status_on_error.code === 'ServiceUnavailable' ? 503 : 500 };
	if (answer.dynamic_metadata)
		request.metadata = { 'envoy.filters.http.ratelimit': plain(answer.dynamic_metadata) };
	return { request, asked, answer, headers: headers(answer),
		 status: answer.overall_code === 'OVER_LIMIT' ? 429 : 200 };
}

const passed = (all) => all.filter(({ status }) => status === 200).length;

async function many(count, peer, path, user) {
	const all = [];

	for (let i = 0; i < count; i++)
		all.push(await send(peer, path, {}, user));
	return all;
}

async function serve() {
	let one;

	one = await send('192.0.2.1', '/', {});
	is('without a name the source is asked about, and as a guest', one.asked.descriptors.map((descriptor) =>
		descriptor.entries.map(({ key }) => key).join()), ['sluice_source', 'source', 'guest,source']);
	is('and allowed', one.status, 200);
	is('a status for each', one.answer.statuses.length, 3);
	one = await send('192.0.2.1', '/x', { 'x-sluice-source': '203.0.113.9' });
	is('a client cannot say what its source is', one.asked.descriptors[1].entries[0].value, '192.0.2.1');

	is('gRPC clients get RESOURCE_EXHAUSTED', limit.rate_limited_as_resource_exhausted, true);

	// 10 requests/s, windows of UTC: within a second or so at least 10 pass and at most 20.
	let all = await many(25, '192.0.2.2', '/', 'k1');
	ok('of 25 requests of a user 10 to 20 pass', passed(all) >= 10 && passed(all) <= 20, passed(all));
	one = all.find(({ status }) => status === 429);
	ok('429 has Retry-After and RateLimit-Policy', one && one.headers['retry-after'] >= 1 &&
	   one.headers['ratelimit-policy'].length >= 2, one && one.headers);
	all = await many(8, '192.0.2.2', '/', 'k2');
	is('another user has their own', passed(all), 8);
	all = [];
	for (let i = 0; i < 25; i++)
		all.push(await send('192.0.2.4', '/', { 'x-api-key': `invented${i}`, 'x-user': `invented${i}` }));
	ok('of 25 invented names of an address 10 to 20 pass', passed(all) >= 10 && passed(all) <= 20, passed(all));
	is('which another address does not notice', (await send('192.0.2.5', '/', {})).status, 200);

	// 30 a minute of searches, whatever stands behind the question mark.
	let searches = 0;
	for (let i = 0; i < 6; i++) {
		searches += passed(await many(9, '192.0.2.3', `/search?q=${i}`, 'k3'));
		if (searches < 30)
			await sleep(1050);
	}
	is('30 searches a minute pass', searches, 30);
	is('and other pages still do', (await send('192.0.2.3', '/', {}, 'k3')).status, 200);
}

// The stream of a request is done: the second call, if the configuration has one, and its descriptors.
async function end({ request }) {
	const asked = question(request, true);

	if (asked.descriptors.length)
		await client.call('envoy', 'ShouldRateLimit', asked, { deadline: Date.now() + 3000 });
	return asked.descriptors.length;
}

// At most 20 of a user's requests at once, 30 of all.
async function concurrency() {
	const first = await many(30, '192.0.2.1', '/', 'slow');
	const of = (one) => one.filter(({ status }) => status === 200);

	is('of 30 streams of a user 20 are open', of(first).length, 20);
	is('another user has the 10 that are left of all', of(await many(15, '192.0.2.1', '/', 'other')).length, 10);
	is('a stream that was refused has no end to report', await end(first.find(({ status }) => status === 429)), 0);
	is('a stream that is done', await end(of(first)[0]), 1);
	is('lets one more begin', of(await many(3, '192.0.2.1', '/', 'slow')).length, 1);
	for (const one of of(first).slice(1, 6))
		await end(one);
	await end(of(first)[5]);
	is('5 ends, one of them twice, let 5 more begin', of(await many(9, '192.0.2.1', '/', 'slow')).length, 5);
}

async function stopped() {
	const one = await send('192.0.2.1', '/', { 'x-api-key': 'k1' });

	ok('nothing answers', one.answer.error, one.answer);
	is(limit.failure_mode_deny ? 'requests are refused' : 'requests pass', one.status,
	   limit.failure_mode_deny ? 503 : 200);
}

(async () => {
	await { RUNNING: serve, STOPPED: stopped, CONCURRENCY: concurrency }[process.argv[3]]();
	client.close();
	done();
})();
