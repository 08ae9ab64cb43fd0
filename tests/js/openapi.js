// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * openapi.js - docs/openapi.yaml held against a server, both ways: whatever is asked and answered is as
 * it says, and whatever it says was asked and answered at least once.
 *
 *     const api = openapi(base);
 *     await api.valid()  the document is OpenAPI 3.1, by a validator of others
 *     const answer = await api.ask('POST', '/v1/check', { json: {...} });
 *     api.missing()      what of the document was never seen
 */
'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const http = require('node:http');
const { createRequire } = require('node:module');
const path = require('node:path');
const packages = createRequire(path.join(__dirname, '../../build/js/'));
const Ajv = packages('ajv/dist/2020');
const YAML = packages('yaml');

/* {$ref} becomes what it names: the same object everywhere, so that seeing it once is enough. */
function inline(document) {
	const done = new Map();
	const target = (ref) => ref.slice(2).split('/').reduce((node, key) => node[key], document);

	return (function walk(node) {
		if (typeof node !== 'object' || node === null)
			return node;
		if (node.$ref)
			return walk(target(node.$ref));
		if (!done.has(node)) {
			const copy = Array.isArray(node) ? [] : {};

			done.set(node, copy);
			for (const key of Object.keys(node))
				copy[key] = walk(node[key]);
		}
		return done.get(node);
	})(document);
}

/* Calls see(property's schema, its path) for each member; with `data` only for those in it. */
function members(schema, where, see, data) {
	const given = data !== undefined;

	for (const one of schema.oneOf || [])
		members(one, where, see, data);
	if (schema.items && (!given || Array.isArray(data))) {
		for (const item of given ? data : [undefined])
			members(schema.items, where, see, item);
	}
	for (const [name, property] of Object.entries(schema.properties || {})) {
		if (given && (typeof data !== 'object' || data === null || !(name in data)))
			continue;
		see(schema, name, `${where}.${name}`);
		members(property, `${where}.${name}`, see, given ? data[name] : undefined);
	}
}

function openapi(base) {
	const text = fs.readFileSync(path.join(__dirname, '../../docs/openapi.yaml'), 'utf8');
	const document = inline(YAML.parse(text));
	const ajv = new Ajv({ allErrors: true, strict: false });
	const compiled = new Map();
	const seen = new Set();		/* "METHOD path status", and schema objects' members */
	const seenMembers = new Map();

	const compile = (schema) => {
		if (!compiled.has(schema))
			compiled.set(schema, ajv.compile(schema));
		return compiled.get(schema);
	};
	const valid = (schema, data, what) => {
		const validate = compile(schema);

		assert.ok(validate(data), `${what}: ${ajv.errorsText(validate.errors)}: ${JSON.stringify(data).slice(0, 300)}`);
		members(schema, '', (owner, name) => {
			if (!seenMembers.has(owner))
				seenMembers.set(owner, new Set());
			seenMembers.get(owner).add(name);
		}, data);
	};

	const documented = (where) => where.replace(/^\/v1\/defer\/.*/, '/v1/defer/{ticket}');
	const operationsOf = (where) => document.paths[documented(where)];

	/* What came back is as documented. */
	const check = (method, where, answer) => {
		const operations = operationsOf(where);
		/* Another method's answer is the path's. */
		const name = method.toLowerCase() in operations ? method.toLowerCase() : Object.keys(operations)[0];
		const operation = operations[name];
		const listed = answer.status in operation.responses ? answer.status : 'default';
		const response = operation.responses[listed];
		const what = `${method} ${where}: ${answer.status}`;

		assert.ok(response, `${what} is not documented: ${answer.body}`);
		seen.add(`${name} ${documented(where)} ${listed}`);
		for (const [name, header] of Object.entries(response.headers || {})) {
			const value = answer.headers[name.toLowerCase()];

			if (value === undefined)
				continue;
			valid(header.schema, value, `${what}, ${name}`);
			seen.add(`${documented(where)} ${listed} ${name}`);
		}
		for (const name of Object.keys(answer.headers)) {
			if (/ratelimit|retry-after|authenticate|allow|^x-/.test(name))
				assert.ok(Object.keys(response.headers || {}).some((n) => n.toLowerCase() === name),
					`${what}: ${name} is not documented`);
		}
		if (!response.content) {
			assert.equal(answer.body, '', `${what}: no body`);
			return;
		}
		const type = (answer.headers['content-type'] || '').split(';')[0];

		assert.ok(response.content[type], `${what}: ${type} is not documented`);
		valid(response.content[type].schema,
			type.endsWith('json') ? JSON.parse(answer.body) : answer.body, what);
	};

	/* Whether the document admits this query. */
	const admits = (where, query) => {
		const accepted = document.paths[where].get.parameters.filter((p) => p.in === 'query');
		const given = new URLSearchParams(query);
		const one = (p, value) => compile(p.schema)(p.schema.type === 'array' ? given.getAll(p.name) :
			p.schema.type === 'integer' ? Number(value) : value);

		return accepted.every((p) => !p.required || given.has(p.name)) &&
			[...given].every(([name, value]) => accepted.some((p) => p.name === name && one(p, value)));
	};

	/* `json`: a good request, checked as well. `body`: any other. */
	const ask = (method, target, { json, body, headers = {} } = {}) => new Promise((resolve, reject) => {
		const where = target.split('?')[0];
		const text = json === undefined ? body : JSON.stringify(json);

		if (json !== undefined)
			valid(document.paths[where].post.requestBody.content['application/json'].schema, json,
				`the request to ${where}`);
		const request = http.request(base + target, { method, headers }, (response) => {
			const chunks = [];

			response.on('data', (chunk) => chunks.push(chunk));
			response.on('end', () => {
				const answer = { status: response.statusCode, headers: response.headers,
					body: Buffer.concat(chunks).toString() };

				try {
					if (method === 'GET' && answer.status < 500 && answer.status !== 405 && target.includes('?'))
						assert.ok(admits(where, target.split('?')[1]), `${target}: answered, but not documented`);
					check(method, where, answer);
					resolve(answer);
				} catch (error) {
					reject(error);
				}
			});
		});

		request.on('error', reject);
		request.end(text);
	});

	const missing = () => {
		const list = [];
		const look = (schema, what) => members(schema, what, (owner, name, at) => {
			if (!seenMembers.has(owner) || !seenMembers.get(owner).has(name))
				list.push(at);
		});

		for (const [where, operations] of Object.entries(document.paths)) {
			for (const [method, operation] of Object.entries(operations)) {
				for (const [status, response] of Object.entries(operation.responses)) {
					if (!seen.has(`${method} ${where} ${status}`))
						list.push(`${method} ${where} ${status}`);
					for (const name of Object.keys(response.headers || {})) {
						if (!seen.has(`${where} ${status} ${name}`))
							list.push(`${where} ${status}: ${name}`);
					}
					for (const content of Object.values(response.content || {}))
						look(content.schema, `${where} ${status}`);
				}
				for (const content of Object.values((operation.requestBody || {}).content || {}))
					look(content.schema, `${where} request`);
			}
		}
		return list;
	};

	const isOpenapi = async () => {
		/* A module of ECMAScript: require() of Debian's node does not take it. */
		const { Validator } = await import(packages.resolve('@seriousme/openapi-schema-validator'));
		const result = await new Validator().validate(text);

		assert.ok(result.valid, JSON.stringify(result.errors));
	};

	return { ask, check, admits, missing, valid: isOpenapi, document };
}

module.exports = { openapi };
