// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * grpc_drain.js ADDRESS PID - the daemon gets SIGTERM while requests are under way: those it
 * has taken are answered, and who watches its health hears of it.
 */
'use strict';

const { Client, done, is, ok, sleep } = require('./rls');

const [address, pid] = process.argv.slice(2);

(async () => {
	const client = new Client(address);
	const watch = client.health.Watch({ service: '' });
	const heard = [];
	const ended = new Promise((resolve) => {
		watch.on('data', (data) => heard.push(data.status));
		watch.on('end', resolve);
		watch.on('error', resolve);
	});
	const results = [];
	let going = true;

	while (!heard.length)
		await sleep(10);
	const asking = (async () => {
		while (going) {
			const batch = Array.from({ length: 20 }, () => client.ask('api', [{ many: 'y' }]));

			results.push(...await Promise.all(batch));
		}
	})();
	await sleep(100);
	process.kill(Number(pid), 'SIGTERM');
	await ended;
	await sleep(200);
	going = false;
	await asking;
	is('who watches hears SERVING, then NOT_SERVING', heard, ['SERVING', 'NOT_SERVING']);
	ok('requests were answered', results.filter((answer) => answer.overall_code).length >= 20,
	   results.length);
	// Refused connections are somebody else's test; a stream that was taken is not dropped.
	is('none that was taken is lost', results.filter((answer) => answer.error &&
		!/ECONNREFUSED|No connection established|name resolution/i.test(answer.details))
		.map((answer) => answer.details).slice(0, 3), []);
	client.close();
	done();
})();
