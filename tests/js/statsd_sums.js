// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// statsd_sums.js - a backend of StatsD: the counters of each flush, as a line of JSON in sums_file of its configuration.
"use strict";
const fs = require("node:fs");

exports.init = (started, config, events) => {
	events.on("flush", (at, metrics) => fs.appendFileSync(config.sums_file, JSON.stringify(metrics.counters) + "\n"));
	return true;
};
