// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * comes_true.js - what the headers of an answer say, and whether it comes true, through whatever way
 * one asks. The fields are parsed by structured-headers, which is not ours.
 *
 *     const { comesTrue } = require('./comes_true');
 *     await comesTrue(async () => ({ allowed, headers }), { name: 'fixed-window over gRPC' });
 *
 * `headers` maps lower case names to values. With r=n exactly n more pass and then one is refused;
 * after Retry-After seconds one passes. The key must be used by nobody else. Throws where
 * something is not so. Where a window ends in the middle of it, or the machine stood still for
 * more than `patience` ms, requests come back in between: what does not hold then is tried again,
 * and has to hold in one of ten tries.
 */
'use strict';
const assert = require('node:assert/strict');
const { createRequire } = require('node:module');
const path = require('node:path');
/* Packages are in build/js (scripts/js.sh). */
const { parseList } = createRequire(path.join(__dirname, '../../build/js/'))('structured-headers');

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/* "RateLimit" or "RateLimit-Policy" as [{name, ...parameters}]. */
function list(text) {
	assert.equal(typeof text, 'string', 'the field is there');
	return parseList(text).map(([item, parameters]) => {
		assert.equal(typeof item, 'string', 'a policy is a string');
		return { name: item, ...Object.fromEntries(parameters) };
	});
}

const whole = (value, least, what) =>
	assert.ok(Number.isInteger(value) && value >= least, `${what}: ${value}`);

/* Everything that can be said of one answer's headers; returns { r, t, names }. */
function check(answer) {
	const { headers, allowed } = answer;
	const limits = list(headers.ratelimit);
	const policies = list(headers['ratelimit-policy']);

	assert.ok(limits.length >= 1 && limits.length <= 8, 'one to eight limits');
	assert.deepEqual(limits.map((l) => l.name), policies.map((p) => p.name), 'the same policies');
	assert.equal(new Set(limits.map((l) => l.name)).size, limits.length, 'each once');
	limits.forEach((limit, i) => {
		whole(limit.r, 0, 'r');
		if (limit.t !== undefined || limit.r < policies[i].q)
			whole(limit.t, 0, 't');
		whole(policies[i].q, 1, 'q');
		whole(policies[i].w, 1, 'w');
		assert.ok(limit.r <= policies[i].q, `r ${limit.r} <= q ${policies[i].q}`);
	});
	assert.equal(headers['x-ratelimit-limit'], String(policies[0].q));
	assert.equal(headers['x-ratelimit-remaining'], String(limits[0].r));
	assert.match(headers['x-ratelimit-reset'], /^[0-9]+$/);
	if (allowed) {
		assert.equal(headers['retry-after'], undefined, 'Retry-After on refusals only');
		assert.equal(headers['x-ratelimit-retry-after'], undefined);
		/* The binding one: of it the smallest share is left. */
		const share = limits.map((l, i) => l.r / policies[i].q);
		assert.ok(share.every((s) => s >= share[0]), `the binding one is first: ${headers.ratelimit}`);
	} else {
		assert.match(headers['retry-after'], /^[1-9][0-9]*$/);
		assert.equal(headers['x-ratelimit-retry-after'], headers['retry-after']);
		/* Of what refuses, more is there when Retry-After is over: not before, nor when all is there. */
		assert.equal(Math.max(...limits.filter((l) => l.r === 0).map((l) => l.t)), Number(headers['retry-after']),
			     `t is Retry-After: ${headers.ratelimit}`);
	}
	return { r: Math.min(...limits.map((l) => l.r)), names: limits.map((l) => l.name), policies };
}

/*
 * As many as r says, then a refusal. Returns {refusal}, or {again: why} where more passed than was
 * promised: time may have passed, too.
 */
async function spend(ask, patience) {
	const began = Date.now();
	let answer = await ask();
	const promised = answer.allowed ? check(answer).r : 0;

	for (let n = 0; n < promised; n++) {
		answer = await ask();
		if (Date.now() - began > patience)
			return { again: 'the machine never had the time' };
		assert.ok(answer.allowed, `r=${promised}, but only ${n} passed`);
		if (check(answer).r > promised - n - 1)
			return { again: 'r does not go down' };
	}
	if (answer.allowed)
		answer = await ask();
	if (answer.allowed)
		return { again: `r=${promised}, and one more passed` };
	check(answer);
	return { refusal: answer };
}

async function comesTrue(ask, { name, patience = 400, rounds = 2, longest = 10 } = {}) {
	try {
		for (let round = 0; round < rounds; round++) {
			let refusal, again;

			for (let tries = 0; !refusal; tries++) {
				assert.ok(tries < 10, again);
				({ refusal, again } = await spend(ask, patience));
				if (!refusal)
					await sleep(300);
			}
			const seconds = Number(refusal.headers['retry-after']);

			assert.ok(seconds <= longest, `Retry-After ${seconds} is at most ${longest}`);
			await sleep(seconds * 1000 + 5);	/* timers may be early by some */
			const answer = await ask();

			assert.ok(answer.allowed, `after Retry-After ${seconds} none passed`);
			check(answer);
		}
	} catch (error) {
		error.message = `${name}: ${error.message}`;
		throw error;
	}
}

module.exports = { comesTrue, check, list, sleep };
