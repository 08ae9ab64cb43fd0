// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A client that waits as long as a limited API asks, and a random time more.

// fetch()'s response, once the API allows the request
async function api(url, options, tries = 10) {
	for (let attempt = 0; ; attempt++) {
		const response = await fetch(url, options);
		const after = response.headers.get('Retry-After');

		if (![429, 503].includes(response.status) || after === null || attempt === tries - 1)
			return response;
		await response.arrayBuffer();
		// and up to 1, 2, 4... 32 s more
		const seconds = Number(after) + Math.random() * 2 ** Math.min(attempt, 5);
		await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
	}
}
