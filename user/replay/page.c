// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* page.c - see page.h. */
#include "replay/page.h"

#include <stdbool.h>
#include <string.h>

#include "lib/units.h"

#define CHART_WIDTH 1200
#define CHART_HEIGHT 190
#define AXIS 24 /* below the chart */

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<title>sluice replay</title>\n<style>\n"
	":root { color-scheme: light dark; --paper: #ffffff; --ink: #1f2328; --soft: #57606a; --line: #d0d7de;\n"
	"  --box: #f6f8fa; --passed: #2b7a46; --refused: #c0392b; --tagged: #b7791f; --other: #2f62b5 }\n"
	"@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #f0f3f6; --soft: #b5bdc6;\n"
	"  --line: #3d444d; --box: #161b22; --passed: #4fbf77; --refused: #f2786d; --tagged: #e0b050; --other: #78a9f7 } }\n"
	"* { box-sizing: border-box }\n"
	"body { margin: 0 auto; padding: 16px 24px; max-width: 1280px; background: var(--paper); color: var(--ink);\n"
	"  font: 14px/1.45 system-ui, -apple-system, \"Segoe UI\", \"DejaVu Sans\", sans-serif }\n"
	"h1 { font-size: 20px; margin: 0 0 2px; overflow-wrap: anywhere }\n"
	"h2 { font-size: 15px; margin: 20px 0 6px }\n"
	"p { margin: 2px 0; color: var(--soft); overflow-wrap: anywhere }\n"
	".damage { color: var(--refused); font-weight: 600 }\n"
	".tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px; margin: 12px 0 4px }\n"
	".tile { background: var(--box); border: 1px solid var(--line); border-radius: 6px; padding: 6px 12px }\n"
	".tile b { display: block; font-size: 20px; font-variant-numeric: tabular-nums }\n"
	".grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 0 28px }\n"
	".grid > div { min-width: 0; overflow-x: auto }\n"
	"svg { display: block; width: 100%; height: auto }\n"
	"svg text { font-size: 12px; fill: var(--soft) }\n"
	".passed { fill: var(--passed) } .refused { fill: var(--refused) } .tagged { fill: var(--tagged) }\n"
	".base { stroke: var(--line) } .compared { fill: none; stroke: var(--other); stroke-width: 2 }\n"
	"table { border-collapse: collapse; width: 100% }\n"
	"th, td { padding: 3px 8px 3px 0; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap;\n"
	"  font-variant-numeric: tabular-nums }\n"
	"th { color: var(--soft); font-weight: 600 }\n"
	"th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere }\n"
	".bar { width: 150px; padding-right: 0 } .bar svg { height: 12px }\n"
	".key { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin: 0 5px 0 12px }\n"
	"</style>\n</head>\n<body>\n";

/* ------------------------------------------------------------------ values */

/* Text from the input: never markup. */
static void put(FILE *out, const char *text)
{
	for (; text && *text; text++)
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			putc(*text, out);
		}
}

static const char *text_at(const json_t *json, const char *key)
{
	const char *text = json_string_value(json_object_get(json, key));

	return text ? text : "";
}

static double number_at(const json_t *json, const char *key)
{
	return json_number_value(json_object_get(json, key));
}

/* 1234567 -> 1,234,567 */
static void put_number(FILE *out, double number)
{
	char digits[320]; /* of any double */
	int len = snprintf(digits, sizeof(digits), "%.0f", number);

	for (int i = 0; i < len; i++)
		fprintf(out, "%s%c", i && digits[i - 1] != '-' && (len - i) % 3 == 0 ? "," : "",
			digits[i]);
}

static void put_time(FILE *out, double ns)
{
	char text[64];

	if (!(ns >= 0 && ns < 1e19)) /* more than a number of nanoseconds can be */
		ns = 0;
	put(out,
	    duration_format(ns > 1e9 ? (u64)(ns / 1e6) * 1000000 : (u64)ns, text, sizeof(text)));
}

/* ------------------------------------------------------------------ the head */

static void tile(FILE *out, const char *name, double number, double of)
{
	fprintf(out, "<div class=\"tile\">%s<b>", name);
	put_number(out, number);
	fputs("</b>", out);
	if (of > 0)
		fprintf(out, "<p>%.1f %%</p>", 100 * number / of);
	fputs("</div>\n", out);
}

static void put_head(const json_t *report, FILE *out)
{
	const json_t *totals = json_object_get(report, "totals");
	double count = number_at(report, "count");

	fputs("<h1>", out);
	put(out, text_at(report, "input"));
	fputs("</h1>\n<p>judged by ", out);
	put(out, text_at(report, "config"));
	fputs(": ", out);
	put_number(out, count);
	fprintf(out, " %s in ", text_at(report, "unit"));
	put_time(out, number_at(report, "span_ns"));
	fputs(" from ", out);
	put(out, text_at(report, "from"));
	fputs("</p>\n", out);
	if (text_at(report, "damage")[0]) {
		fputs("<p class=\"damage\">", out);
		put(out, text_at(report, "damage"));
		fputs("</p>\n", out);
	}
	fputs("<div class=\"tiles\">\n", out);
	tile(out, "passed", number_at(totals, "passed"), count);
	tile(out, "refused", number_at(totals, "refused"), count);
	if (json_object_get(totals, "tagged"))
		tile(out, "tagged", number_at(totals, "tagged"), count);
	if (json_object_get(totals, "delayed"))
		tile(out, "delayed", number_at(totals, "delayed"), count);
	if (json_object_get(report, "compare_totals"))
		tile(out, "refused with the other",
		     number_at(json_object_get(report, "compare_totals"), "refused"), count);
	tile(out, strcmp(text_at(report, "unit"), "packets") ? "values" : "sources",
	     number_at(report, "subjects"), 0);
	fputs("</div>\n", out);
}

/* ------------------------------------------------------------------ the timeline */

static double bin_sum(const json_t *bin)
{
	return number_at(bin, "passed") + number_at(bin, "tagged") + number_at(bin, "delayed") +
	       number_at(bin, "refused");
}

static void rect(FILE *out, const char *class, double x, double width, double *y, double height)
{
	if (height <= 0)
		return;
	*y -= height;
	fprintf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
		class, x, *y, width, height);
}

static void put_bars(const json_t *bins, double most, FILE *out)
{
	double width = (double)CHART_WIDTH / (double)json_array_size(bins);
	const json_t *bin;
	size_t i;

	json_array_foreach(bins, i, bin) {
		double y = CHART_HEIGHT, scale = (CHART_HEIGHT - 16) / most;

		fputs("<g>", out);
		rect(out, "passed", i * width, width * 0.9, &y, scale * number_at(bin, "passed"));
		rect(out, "tagged", i * width, width * 0.9, &y,
		     scale * (number_at(bin, "tagged") + number_at(bin, "delayed")));
		rect(out, "refused", i * width, width * 0.9, &y, scale * number_at(bin, "refused"));
		fprintf(out, "<title>%.0f passed, %.0f refused</title></g>\n",
			number_at(bin, "passed"), number_at(bin, "refused"));
	}
}

/* What the other configuration would refuse, as a line. */
static void put_compared(const json_t *bins, double most, FILE *out)
{
	double width = (double)CHART_WIDTH / (double)json_array_size(bins);
	const json_t *bin;
	size_t i;

	fputs("<polyline class=\"compared\" points=\"", out);
	json_array_foreach(bins, i, bin)
		fprintf(out, "%.1f,%.1f ", (i + 0.45) * width,
			CHART_HEIGHT -
				(CHART_HEIGHT - 16) / most *
					number_at(json_object_get(bin, "compare"), "refused"));
	fputs("\"/>\n", out);
}

static void put_timeline(const json_t *report, FILE *out)
{
	const json_t *line = json_object_get(report, "timeline"),
		     *bins = json_object_get(line, "bins"), *bin;
	bool compares = json_object_get(report, "compare_totals");
	double most = 1, step = number_at(line, "step_ns");
	size_t i, count = json_array_size(bins);

	if (!count)
		return;
	json_array_foreach(bins, i, bin)
		most = bin_sum(bin) > most ? bin_sum(bin) : most;
	fputs("<h2>Over time<span class=\"key\" style=\"background: var(--passed)\"></span>passed"
	      "<span class=\"key\" style=\"background: var(--refused)\"></span>refused",
	      out);
	if (compares)
		fputs("<span class=\"key\" style=\"background: var(--other)\"></span>refused with the other",
		      out);
	fprintf(out,
		"</h2>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s over time\">\n",
		CHART_WIDTH, CHART_HEIGHT + AXIS, text_at(report, "unit"));
	put_bars(bins, most, out);
	if (compares)
		put_compared(bins, most, out);
	fprintf(out,
		"<line class=\"base\" x1=\"0\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n<text x=\"0\" y=\"11\">",
		CHART_HEIGHT, CHART_WIDTH, CHART_HEIGHT);
	put_number(out, most * 1e9 / step);
	fprintf(out, " %s/s; a bar is ", text_at(report, "unit"));
	put_time(out, step);
	fprintf(out,
		"</text>\n<text x=\"0\" y=\"%d\">0s</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">",
		CHART_HEIGHT + 17, CHART_WIDTH, CHART_HEIGHT + 17);
	put_time(out, step * count);
	fputs("</text>\n</svg>\n", out);
}

/* ------------------------------------------------------------------ tables */

static void cell(FILE *out, double number)
{
	fputs("<td>", out);
	put_number(out, number);
	fputs("</td>", out);
}

static void parts_bar(FILE *out, double passed, double refused)
{
	double sum = passed + refused, part = sum > 0 ? 150 * passed / sum : 0;

	fprintf(out,
		"<td class=\"bar\"><svg viewBox=\"0 0 150 12\" preserveAspectRatio=\"none\"><rect class=\"passed\" "
		"width=\"%.1f\" height=\"12\"/><rect class=\"refused\" x=\"%.1f\" width=\"%.1f\" height=\"12\"/></svg></td>",
		part, part, sum > 0 ? 150 - part : 0);
}

/* False: the column would be of zeros. */
static bool has_some(const json_t *list, const char *of, const char *member)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(list, i, entry)
		if (number_at(of ? json_object_get(entry, of) : entry, member) > 0)
			return true;
	return false;
}

static void put_limits(const json_t *list, const char *title, FILE *out)
{
	static const char *const figures[] = { "passed", "refused", "tagged",
					       "shadow", "delayed", "bans" };
	const size_t count = sizeof(figures) / sizeof(figures[0]);
	bool shown[sizeof(figures) / sizeof(figures[0])];
	const json_t *limit;
	size_t i;

	if (!json_array_size(list))
		return;
	fprintf(out, "<h2>%s</h2>\n<table><tr><th>limit</th><th>rate</th><th>mode</th>", title);
	for (size_t k = 0; k < count; k++) {
		shown[k] = has_some(list, NULL, figures[k]);
		if (shown[k])
			fprintf(out, "<th>%s</th>", figures[k]);
	}
	fputs("<th></th></tr>\n", out);
	json_array_foreach(list, i, limit) {
		fputs("<tr><td>", out);
		put(out, text_at(limit, "name"));
		fputs("</td><td>", out);
		put(out, text_at(limit, "rate"));
		fputs("</td><td>", out);
		put(out, text_at(limit, "mode"));
		fputs("</td>", out);
		for (size_t k = 0; k < count; k++)
			if (shown[k])
				cell(out, number_at(limit, figures[k]));
		parts_bar(out, number_at(limit, "passed"),
			  number_at(limit, "refused") + number_at(limit, "tagged") +
				  number_at(limit, "shadow"));
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

/* A column of figures of an entry: its `member`, or that of its object `of`. */
struct column {
	const char *title, *of, *member;
	bool percent;
};

static void put_table(const json_t *list, const char *title, const char *none,
		      const struct column *column, size_t columns, FILE *out)
{
	const json_t *entry;
	size_t i;

	fprintf(out, "<div><h2>%s</h2>\n", title);
	if (!json_array_size(list)) {
		fprintf(out, "<p>%s</p></div>\n", none);
		return;
	}
	fputs("<table><tr><th></th>", out);
	for (size_t k = 0; k < columns; k++)
		if (has_some(list, column[k].of, column[k].member))
			fprintf(out, "<th>%s</th>", column[k].title);
	fputs("</tr>\n", out);
	json_array_foreach(list, i, entry) {
		fputs("<tr><td>", out);
		put(out, text_at(entry, "who"));
		fputs("</td>", out);
		for (size_t k = 0; k < columns; k++) {
			const json_t *of =
				column[k].of ? json_object_get(entry, column[k].of) : entry;
			double value = number_at(of, column[k].member);

			if (!has_some(list, column[k].of, column[k].member))
				continue;
			if (column[k].percent)
				fprintf(out, "<td>%.1f %%</td>", 100 * value);
			else
				cell(out, value);
		}
		fputs("</tr>\n", out);
	}
	fputs("</table></div>\n", out);
}

static void put_top(const json_t *list, const char *title, const char *none, FILE *out)
{
	static const struct column columns[] = {
		{ .title = "count", .member = "count" },
		{ .title = "peak/s", .member = "peak_per_second" },
		{ .title = "passed", .member = "passed" },
		{ .title = "refused", .member = "refused" },
		{ .title = "used", .member = "used", .percent = true },
	};

	put_table(list, title, none, columns, sizeof(columns) / sizeof(columns[0]), out);
}

static void put_compare(const json_t *list, const char *title, FILE *out)
{
	static const struct column columns[] = {
		{ .title = "count", .member = "count" },
		{ .title = "refused", .member = "refused" },
		{ .title = "with the other", .of = "compare", .member = "refused" },
	};

	put_table(list, title, "none", columns, sizeof(columns) / sizeof(columns[0]), out);
}

void replay_page(const json_t *report, FILE *out)
{
	const json_t *notes = json_object_get(report, "notes"), *note;
	size_t i;

	fputs(head, out);
	put_head(report, out);
	put_timeline(report, out);
	put_limits(json_object_get(report, "limits"), "What each limit does", out);
	if (json_object_get(report, "compare_totals")) {
		put_limits(json_object_get(report, "compare_limits"),
			   "What each limit of the other does", out);
		fputs("<div class=\"grid\">\n", out);
		put_compare(json_object_get(report, "hurt"), "Refused more with the other", out);
		put_compare(json_object_get(report, "spared"), "Refused less with it", out);
		fputs("</div>\n", out);
	}
	fputs("<div class=\"grid\">\n", out);
	put_top(json_object_get(report, "heaviest"), "The heaviest", "none", out);
	put_top(json_object_get(report, "refused"), "Refused most", "None was refused.", out);
	put_top(json_object_get(report, "nearest"), "Never refused, and nearest to a limit",
		"None came near one.", out);
	fputs("</div>\n", out);
	json_array_foreach(notes, i, note) {
		fputs("<p>", out);
		put(out, json_string_value(note));
		fputs("</p>\n", out);
	}
	fputs("</body>\n</html>\n", out);
}
