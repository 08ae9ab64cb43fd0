/*
 * page.js - the status page: reads /status.json every two seconds and sets text. Nothing of a reply
 * is ever read as HTML.
 */
"use strict";

const SVG = "http://www.w3.org/2000/svg";

/* As lib/visible.h: no control of direction is obeyed, and what is not seen is written out. */
function visible(text) {
	return String(text).replace(/(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/gu, (c) => {
		const code = c.codePointAt(0), byte = code >= 0x10ff00 || code < 0x80;
		return (byte ? "\\x" : "\\u") + (byte ? code & 0xff : code).toString(16).padStart(byte ? 2 : 4, "0");
	});
}

function make(tag, text, style) {
	const node = document.createElement(tag);
	if (text !== undefined && text !== null)
		node.textContent = visible(text);
	if (style)
		node.className = style;
	return node;
}

function at(id) {
	return document.getElementById(id);
}

/* ------------------------------------------------------------------ values */

const whole = (n) => Number(n || 0).toLocaleString("en-US", { maximumFractionDigits: 0 });

function short(n) {
	const units = ["", "k", "M", "G", "T"];
	let i = 0;
	n = Number(n || 0);
	while (n >= 999.5 && i < units.length - 1) {
		n /= 1000;
		i++;
	}
	return (n >= 99.95 || i === 0 ? n.toFixed(n > 0 && n < 9.95 && i === 0 ? 1 : 0) : n.toFixed(1))
		.replace(/\.0$/, "") + units[i];
}

function time(ns) {
	const s = Math.round(Number(ns || 0) / 1e9);
	if (s < 60)
		return s + " s";
	if (s < 3600)
		return Math.floor(s / 60) + " min " + s % 60 + " s";
	if (s < 86400)
		return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
	return Math.floor(s / 86400) + " d " + Math.floor(s % 86400 / 3600) + " h";
}

/* Also what was above the limit and only tagged, or counted in shadow mode. */
const passed = (of) => of.pass + of.soft + of.tag + of.shadow;

/* ------------------------------------------------------------------ pictures */

const SECONDS = 120;

function draw(tag, attributes, text) {
	const node = document.createElementNS(SVG, tag);
	for (const [key, value] of Object.entries(attributes))
		node.setAttribute(key, value);
	if (text !== undefined)
		node.textContent = text;
	return node;
}

/* A frame of pixels: x of a second before now, y of a value up to `top`. */
const frame = (left, above, width, height, top) => ({
	x: (ago) => left + width * (1 - ago / (SECONDS - 1)),
	y: (value) => above + height * (1 - value / top),
});

function line(values, at, style) {
	return draw("polyline", { class: style, points: values.map((v, i) =>
		at.x(values.length - 1 - i).toFixed(1) + "," + at.y(v).toFixed(1)).join(" ") });
}

function picture(samples, width, height, at, style) {
	const most = Math.max(0, ...samples.passed, ...samples.refused);
	const svg = draw("svg", { viewBox: "0 0 " + width + " " + height, width, height, class: style, role: "img",
		"aria-label": "the last two minutes, at most " + short(most) + " a second" });
	svg.append(draw("line", { class: "axis", x1: at.x(SECONDS - 1), x2: at.x(0), y1: at.y(0), y2: at.y(0) }),
		line(samples.passed, at, "pass"), line(samples.refused, at, "drop"));
	return svg;
}

/* Passed and refused requests share one scale. */
function spark(samples) {
	const top = Math.max(1, ...samples.passed, ...samples.refused);
	return picture(samples, 120, 22, frame(0, 1, 120, 20, top), "spark");
}

/* Rounds up to 1, 2 or 5 with zeros. */
function round_up(n) {
	const unit = 10 ** Math.floor(Math.log10(Math.max(1, n)));
	return unit * [1, 2, 5, 10].find((step) => step * unit >= n);
}

/* With axes: packets a second, and the time before now. */
function chart(samples, width) {
	const top = round_up(Math.max(2, ...samples.passed, ...samples.refused));
	const left = 44, height = 130, at = frame(left, 8, width - left - 8, height - 30, top);
	const svg = picture(samples, width, height, at, "chart");
	for (const value of [0, top / 2, top])
		svg.prepend(draw("line", { class: "axis", x1: left, x2: at.x(0), y1: at.y(value), y2: at.y(value) }),
			draw("text", { x: left - 6, y: at.y(value) + 4, "text-anchor": "end" }, short(value)));
	for (const ago of width < 600 ? [120, 60, 0] : [120, 90, 60, 30, 0])
		svg.append(draw("text", { x: at.x(Math.min(ago, SECONDS - 1)), y: height - 6,
			"text-anchor": ago === 120 ? "start" : ago ? "middle" : "end" }, ago ? "-" + ago + " s" : "now"));
	return svg;
}

function fill(share) {
	const bar = make("span", null, "fill"), inside = make("i");
	inside.style.width = Math.min(100, Math.round(share * 100)) + "%";
	bar.title = Math.round(share * 100) + "% used";
	bar.append(inside);
	return bar;
}

/* ------------------------------------------------------------------ tables */

/* Columns: [heading, value of a row: text or a node, "n" for numbers]. The key names the row for tests. */
function table(id, rows, columns, none, more) {
	const place = at(id);
	at("s-" + id).hidden = !rows;
	if (!rows)
		return;
	if (!rows.length) {
		place.replaceChildren(make("span", none, "dim"));
		return;
	}
	const table = make("table"), head = make("tr");
	for (const [heading, , style] of columns)
		head.append(make("th", heading, style));
	table.append(head);
	for (const row of rows) {
		const tr = make("tr");
		for (const [heading, value, style] of columns) {
			const cell = make("td", null, style), content = value(row);
			cell.dataset.heading = heading;
			if (content instanceof Node)
				cell.append(content);
			else
				cell.textContent = cell.title = content === undefined || content === null ? "" :
					visible(content).replace(/\n/g, " ");
			tr.append(cell);
		}
		table.append(tr);
	}
	place.replaceChildren(table);
	/* A table that is too wide for its section shows each row as a card, so no column is cut off. */
	table.classList.toggle("cards", place.scrollWidth > place.clientWidth);
	if (more > 0)
		place.append(make("span", "and " + whole(more) + " more", "dim"));
}

function show_traffic(d) {
	const all = { passed: [], refused: [] };
	for (const of of d.traffic)
		for (const key of ["passed", "refused"])
			of.samples[key].forEach((v, i) => {
				const place = i + 120 - of.samples[key].length;
				all[key][place] = (all[key][place] || 0) + v;
			});
	for (const key of ["passed", "refused"])
		all[key] = Array.from(all[key]).filter((v) => v !== undefined);
	at("s-traffic").hidden = !d.traffic.length;
	const words = make("div", null, "dim");
	words.append(make("span", "passed", "good"), " and ", make("span", "dropped", "bad"),
		", two minutes; the highest is " + short(Math.max(0, ...all.passed, ...all.refused)) + "/s");
	at("traffic").replaceChildren(chart(all, at("traffic").clientWidth), words);
}

function show_limits(d) {
	/* A built-in limit is shown once a packet met it. */
	const met = d.limits.filter((l) => l.name[0] !== "@" || passed(l.packets) + l.packets.drop > 0);
	table("limits", d.status.packet_tier ? met : null, [
		["LIMIT", (l) => l.name], ["MODE", (l) => l.mode], ["RATE", (l) => l.rate],
		["LAST 2 MIN", (l) => spark(l.samples)],
		["PASSED/S", (l) => short(passed(l.per_second)), "n"],
		["DROPPED/S", (l) => short(l.per_second.drop), "n"],
		["PASSED", (l) => whole(passed(l.packets)), "n"], ["DROPPED", (l) => whole(l.packets.drop), "n"],
		["TAGGED", (l) => whole(l.packets.tag), "n"], ["SHADOW", (l) => whole(l.packets.shadow), "n"],
		["SOURCES", (l) => whole(l.sources.live), "n"], ["OVER", (l) => whole(l.sources.over), "n"],
	], "no limits", d.limits_count - d.limits.length);
	table("rules", d.status.http ? d.rules : null, [
		["RULE", (r) => r.rule], ["MODE", (r) => r.shadow ? "shadow" : "enforce"],
		["LAST 2 MIN", (r) => spark(r.samples)],
		["OK", (r) => whole(r.ok), "n"], ["OVER LIMIT", (r) => whole(r.over_limit), "n"],
		["SHADOW", (r) => whole(r.shadow_refused), "n"],
	], "no rules", d.status.http ? d.status.http.rules - d.rules.length : 0);
}

function show_sources(d) {
	const networks = d.sources && d.sources.networks || [];
	const about = (n, v) => (n.estimated && v > 0 ? "~" : "") + short(v);
	table("networks", networks.length ? networks : null, [
		["NETWORK", (n) => n.source], ["SOURCES", (n) => whole(n.sources) + (n.estimated ? "+" : ""), "n"],
		["DROPPED/S", (n) => about(n, n.dropped.per_second), "n"],
		["PASSED/S", (n) => about(n, n.passed.per_second), "n"],
		["BIT/S", (n) => about(n, n.bits_per_second), "n"],
		["OPENED/S", (n) => about(n, n.opened_per_second), "n"], ["STATE", (n) => n.state || ""],
		["TO BLOCK IT", (n) => n.block || "", "w"], ["TO LIMIT IT TO A TENTH", (n) => n.limit || "", "w"],
	]);
	table("sources", d.status.packet_tier && d.sources ? d.sources.sources : null, [
		["SOURCE", (s) => s.source], ["DROPPED/S", (s) => short(s.dropped.per_second), "n"],
		["PASSED/S", (s) => short(s.passed.per_second), "n"],
		["BIT/S", (s) => short(s.bits_per_second), "n"], ["BY", (s) => s.limit || s.reason],
		["BUCKET", (s) => s.capacity ? fill(s.used / s.capacity) : ""],
		["STATE", (s) => s.state || ""],
	], "no packets in the last seconds", d.sources ? (d.sources.more || 0) + (d.sources.light || 0) : 0);
	table("users", d.users && d.users.users, [
		["RULE", (u) => u.rule], ["VALUE", (u) => u.value, "w"], ["REFUSED", (u) => whole(u.refused), "n"],
		["LAST", (u) => u.last],
	], "no recent refusals");
	table("blocks", d.status.packet_tier ? d.blocks : null, [
		["PREFIX", (b) => b.prefix + (b.set ? ", " + whole(b.count) + " prefixes" : "")],
		["LEFT", (b) => b.left_ns ? time(b.left_ns) : "", "n"],
		["FROM", (b) => b.origin || (b.node ? "node " + b.node : b.set ? "set" : b.live ? "live" : "file")],
		["REASON", (b) => b.reason, "w"],
	], "nothing is blocked", d.status.block - d.blocks.reduce((n, b) => n + (b.set ? b.count : 1), 0));
	table("bans", d.status.packet_tier ? d.bans : null, [
		["SOURCE", (b) => b.source], ["LIMIT", (b) => b.limit || "(deleted)"],
		["LEFT", (b) => time(b.left_ns), "n"], ["LEVEL", (b) => whole(b.level), "n"],
		["DROPS", (b) => whole(b.drops), "n"],
	], "no source is banned", d.status.bans - d.bans.length);
	table("pushdowns", d.pushdowns, [
		["SOURCE", (p) => p.source], ["STEP", (p) => p.step], ["RULE", (p) => p.rule],
		["LEFT", (p) => time(p.left_ns), "n"], ["REFUSED", (p) => whole(p.refused), "n"],
	], "no push-downs");
}

/* Sets, and the origins of blocks: where they are from, and whether they are still looked after. */
function show_feeds(d) {
	const sets = d.feeds ? d.feeds.sets.map((s) => ({ ...s, shown: "@" + s.name })) : [];
	const all = sets.concat(d.feeds ? d.feeds.origins.map((o) => ({ ...o, shown: o.name })) : []);
	const ago = (ns) => ns === undefined ? "" : time(ns);
	table("feeds", all.length ? all.slice(0, d.rows) : null, [
		["SET", (f) => f.shown], ["PREFIXES", (f) => whole(f.count), "n"],
		["AGE", (f) => ago(f.age_ns), "n"], ["CHECKED", (f) => ago(f.checked_ns), "n"],
		["FROM", (f) => f.source || f.file || (f.live ? "live" : "")],
		["FAILED", (f) => f.error ? make("span", ago(f.failed_ns) + " ago: " + f.error, "bad") : "", "w"],
	], "", all.length - d.rows);
}

function show_interfaces(d) {
	const reasons = (d.reasons || []).flatMap((i) => i.reasons.map((r) => ({ name: i.name, ...r })));
	table("interfaces", d.status.packet_tier ? d.status.interfaces : null, [
		["INTERFACE", (i) => i.name], ["STATE", (i) => i.state],
		["PASSED/S", (i) => short(i.per_second.pass + i.per_second.tag), "n"],
		["DROPPED/S", (i) => short(i.per_second.drop), "n"],
		["PASSED", (i) => whole(i.packets.pass + i.packets.tag), "n"],
		["DROPPED", (i) => whole(i.packets.drop), "n"],
	], "no interface is configured");
	table("reasons", d.status.packet_tier ? reasons : null, [
		["INTERFACE", (r) => r.name], ["VERDICT", (r) => r.verdict], ["REASON", (r) => r.reason],
		["PACKETS", (r) => whole(r.packets), "n"],
	], "no packets yet");
}

function show_cluster(d) {
	const c = d.cluster;
	table("store", c && c.store ? c.store.servers : null, [
		["SERVER", (s) => s.server],
		["STATE", (s) => s.up ? make("span", "up", "good") : s.idle ? "not asked yet" : make("span", "down", "bad")],
		["ERROR", (s) => s.error || ""],
	], "no server is known yet");
	table("nodes", c && c.peers ? c.peers : null, [
		["NODE", (p) => p.node],
		["STATE", (p) => p.alive ? make("span", "alive", "good") : make("span", p.left ? "left" : "gone", "bad")],
		["LAG", (p) => p.alive ? (p.lag_ns / 1e6).toFixed(1) + " ms" : "", "n"],
		["SILENT", (p) => time(p.silent_ns), "n"],
	], "no message of another node was received");
}

/*
 * The newest first. A flood is a row: its sources, or users, are counted, and it has half of the rows, so that
 * changes of the state stay.
 */
const EVENT_ROWS = 20;
const of_many = (e) => ["drop", "over", "released", "refused"].includes(e.kind);
const several = (set, name) => set.size > 1 ? whole(set.size) + " " + name : [...set][0] || "";
function show_events(d) {
	const groups = new Map();
	for (const e of (d.events || []).slice().reverse()) {
		const who = of_many(e) ? null : [e.source, e.value];
		const key = JSON.stringify([e.kind, e.limit, e.rule, e.reason, e.detail, who]);
		const group = groups.get(key) || { ...e, times: 0, sources: new Set(), values: new Set() };
		group.times++;
		if (e.source)
			group.sources.add(e.source);
		if (e.value)
			group.values.add(e.value);
		groups.set(key, group);
	}
	const all = [...groups.values()], changes = all.filter((e) => !of_many(e)).length;
	let many = Math.max(EVENT_ROWS / 2, EVENT_ROWS - changes);
	const shown = all.filter((e) => !of_many(e) || many-- > 0).slice(0, EVENT_ROWS);
	table("events", d.events && shown, [
		["LAST", (e) => e.at], ["EVENT", (e) => e.kind], ["SOURCE", (e) => several(e.sources, "sources")],
		["BY", (e) => e.limit || e.rule || ""], ["USER", (e) => several(e.values, "users")],
		["WHY", (e) => e.reason || e.detail || "", "w"], ["TIMES", (e) => whole(e.times), "n"],
	], "no events yet");
}

/* Made again only where the rules changed: what a reader opened stays open. */
let running = "";
function show_running(d) {
	const all = d.limits.map((l) => [l.name, l.yaml]).concat(d.rules.map((r) => [r.rule, r.yaml]))
		.filter(([, yaml]) => yaml).sort((a, b) => a[0] < b[0] ? -1 : 1);
	const text = JSON.stringify(all);
	at("s-running").hidden = !all.length;
	if (text === running)
		return;
	running = text;
	at("running").replaceChildren(...all.map(([name, yaml]) => {
		const details = make("details");
		details.append(make("summary", name), make("pre", yaml));
		return details;
	}));
}

/* ------------------------------------------------------------------ the top of the page */

function show_head(d) {
	const s = d.status, state = [];
	at("daemon").textContent = s.version + ", up " + time(s.uptime_ns) + ", generation " + s.generation +
		", " + d.now.replace("T", " ").replace("Z", " UTC");
	state.push(s.reload.ok ? ["last reload good", "good"] : ["RELOAD FAILED: " + s.reload.error, "bad"]);
	if (s.http && !s.http.reload.ok)
		state.push(["HTTP RULES: RELOAD FAILED: " + s.http.reload.error, "bad"]);
	if (s.pending)
		state.push(["NOT CONFIRMED, reverts at " + s.pending.until, "warn"]);
	if (s.live_changes)
		state.push([s.live_changes + " live change" + (s.live_changes > 1 ? "s" : "") + " not saved", "warn"]);
	if (s.cluster)
		state.push(s.cluster.store_up ? ["store up", "good"] : ["STORE UNAVAILABLE", "bad"]);
	for (const i of s.interfaces)
		if (i.state !== "native" && i.state !== "generic")
			state.push([i.name + " NOT LIMITED: " + i.state, "bad"]);
	at("state").replaceChildren(...state.map(([text, style]) => make("span", text, style)));
}

function show_tiles(d) {
	const s = d.status, tiles = [];
	const sum = (list, value) => list.reduce((n, item) => n + value(item), 0);
	if (s.packet_tier) {
		tiles.push(["passed/s", short(sum(s.interfaces, (i) => i.per_second.pass + i.per_second.tag))],
			["dropped/s", short(sum(s.interfaces, (i) => i.per_second.drop))],
			["over a limit", whole(sum(d.limits, (l) => l.sources.over))],
			["banned", whole(s.bans)], ["blocked", whole(s.block)],
			["table used", (s.table.live / Math.max(1, s.table.ways) * 100).toFixed(1) + "%"]);
	}
	if (d.pushdowns)
		tiles.push(["push-downs", whole(d.pushdowns.length)]);
	if (s.http)
		tiles.push(["request rules", whole(s.http.rules)]);
	at("tiles").replaceChildren(...tiles.map(([name, value]) => {
		const tile = make("div", null, "tile");
		tile.append(make("b", value), make("span", name));
		return tile;
	}));
}

function show(d) {
	at("main").hidden = false;	/* what is hidden has no width */
	show_head(d);
	show_tiles(d);
	show_limits(d);
	show_sources(d);
	show_feeds(d);
	show_interfaces(d);
	show_cluster(d);
	show_events(d);
	show_running(d);
	show_traffic(d);	/* as wide as there is room now */
}

async function refresh() {
	try {
		const reply = await fetch("/status.json", { cache: "no-store" });
		if (!reply.ok)
			throw new Error("/status.json: " + reply.status);
		show(await reply.json());
		at("trouble").hidden = true;
	} catch (error) {
		at("trouble").textContent = "The daemon does not answer (" + error.message + "); what follows is old.";
		at("trouble").hidden = false;
	}
	setTimeout(refresh, document.hidden ? 10000 : 2000);
}
refresh();
