// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * scrape                          prints the metrics page of 127.0.0.1:9810
 * scrape NAME [LABEL=VALUE...]    prints the sum of the series that have all these labels
 *
 * One process in place of a shell, cat, tr and awk: scenarios call it hundreds of times.
 */
#include <unistd.h>

#include "tool.h"

/* The whole response, NUL-terminated; the caller frees it. */
static char *fetch(void)
{
	static const char request[] = "GET /metrics HTTP/1.0\r\nHost: lab\r\n\r\n";
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(9810),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	size_t size = 1 << 16, used = 0;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char *page = malloc(size);
	ssize_t n;

	if (fd < 0 || !page || connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		die("scrape: 127.0.0.1:9810");
	if (write(fd, request, sizeof(request) - 1) != sizeof(request) - 1)
		die("scrape: write");
	while ((n = read(fd, page + used, size - used - 1)) > 0) {
		used += n;
		if (size - used < 2) {
			page = realloc(page, size *= 2);
			if (!page)
				die("scrape");
		}
	}
	if (n < 0)
		die("scrape: read");
	close(fd);
	page[used] = 0;
	return page;
}

/* Whether `series` (NAME{K="V",...}) has LABEL=VALUE. */
static int has_label(const char *series, const char *label)
{
	const char *value = strchr(label, '=');
	char want[512];
	const char *at = series;
	size_t len;

	if (!value)
		return 0;
	len = snprintf(want, sizeof(want), "%.*s=\"%s\"", (int)(value - label), label, value + 1);
	if (len >= sizeof(want))
		return 0;
	while ((at = strstr(at, want))) {
		if ((at[-1] == '{' || at[-1] == ',') && (at[len] == ',' || at[len] == '}'))
			return 1;
		at++;
	}
	return 0;
}

static int is_wanted(const char *series, int argc, char **argv)
{
	size_t len = strlen(argv[1]);

	if (strncmp(series, argv[1], len) || (series[len] && series[len] != '{'))
		return 0;
	for (int i = 2; i < argc; i++)
		if (!has_label(series, argv[i]))
			return 0;
	return 1;
}

int main(int argc, char **argv)
{
	char *page = fetch(), *line, *rest = page;
	double sum = 0;

	while ((line = strsep(&rest, "\n"))) {
		char *value;

		line[strcspn(line, "\r")] = 0;
		if (argc == 1) {
			puts(line);
			continue;
		}
		value = strrchr(line, ' ');
		if (!value || *line == '#')
			continue;
		*value = 0;
		if (is_wanted(line, argc, argv))
			sum += atof(value + 1);
	}
	if (argc > 1)
		printf("%.0f\n", sum);
	free(page);
	return 0;
}
