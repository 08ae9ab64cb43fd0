// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* type_text.c - keys whose value is a text of the model, or an address; see key.h. */
#include "conf/key.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts of their own memory ---- */

static char **text_of(const struct key *key, void *section)
{
	return key_field(key, section);
}

static const char *text_in(const struct key *key, const void *section)
{
	return *(const char *const *)key_field_of(key, section);
}

int type_text_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	if ((key->most && strlen(text) > key->most) ||
	    (key->characters && strspn(text, key->characters) != strlen(text)))
		return key_refuse_text(r, key);
	return read_copy(r, text, text_of(key, section));
}

void type_text_write(struct writer *w, const struct key *key, const void *section)
{
	write_text(w->out, text_in(key, section));
}

void type_text_copy(const struct key *key, void *section, int *rc)
{
	char **text = text_of(key, section);

	if (*text)
		*text = array_copy(*text, strlen(*text) + 1, 1, rc);
}

void type_text_clear(const struct key *key, void *section)
{
	char **text = text_of(key, section);

	free(*text);
	*text = NULL;
}

bool type_text_equal(const struct key *key, const void *a, const void *b)
{
	const char *x = text_in(key, a), *y = text_in(key, b);

	return x && y ? !strcmp(x, y) : x == y;
}

const struct key_type type_text = TYPE_TEXT("text", .text = type_text_read);

#define PATH_MOST 3500 /* the daemon creates files below some: leaves room for their names */

static int path_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	u64 most = key->most ? key->most : PATH_MOST;

	if (text[0] != '/')
		return key_refuse_text(r, key);
	if (strlen(text) > most)
		return read_fail(r, r->at, EINVAL,
				 "found a path of %zu bytes; accepted: up to %llu", strlen(text),
				 most);
	return read_copy(r, text, text_of(key, section));
}

const struct key_type type_path =
	TYPE_TEXT("path", .text = path_read, .accepts = "an absolute path");

static int address_port_read(struct reader *r, const char *text, const struct key *key,
			     void *section)
{
	if (!is_listen_address(text))
		return key_refuse_text(r, key);
	return read_copy(r, text, text_of(key, section));
}

const struct key_type type_address_port = TYPE_TEXT("address", .text = address_port_read,
						    .accepts = "ADDRESS:PORT, as 127.0.0.1:9810 or "
							       "'[::1]:9810'");

/* ---- texts within the struct ---- */

static void inline_write(struct writer *w, const struct key *key, const void *section)
{
	write_text(w->out, key_field_of(key, section));
}

static bool inline_equal(const struct key *key, const void *a, const void *b)
{
	return !strcmp(key_field_of(key, a), key_field_of(key, b));
}

static int identifier_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	return read_identifier(r, text, key_field(key, section));
}

const struct key_type type_identifier = {
	.name = "identifier",
	.null = true,
	.size = SL_NAME_MAX,
	.text = identifier_read,
	.accepts = "1 to 63 characters of a-z, 0-9 and -",
	.write = inline_write,
	.equal = inline_equal,
};

static int interface_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	return read_interface_name(r, text, key_field(key, section));
}

const struct key_type type_interface = {
	.name = "interface",
	.accepts = INTERFACE_NAMES,
	.size = 16,
	.text = interface_read,
	.write = inline_write,
	.equal = inline_equal,
};

/* ---- addresses ---- */

static int prefix_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	return read_prefix(r, text, key_field(key, section));
}

static void prefix_write(struct writer *w, const struct key *key, const void *section)
{
	char text[SL_PREFIX_TEXT];

	write_text(w->out, sl_prefix_format(key_field_of(key, section), text, sizeof(text)));
}

static bool prefix_equal(const struct key *key, const void *a, const void *b)
{
	return sl_prefix_equal(key_field_of(key, a), key_field_of(key, b));
}

const struct key_type type_prefix = {
	.name = "address",
	.size = sizeof(struct sl_prefix),
	.text = prefix_read,
	.write = prefix_write,
	.equal = prefix_equal,
	.accepts = "an address or a prefix, as 192.0.2.0/24",
};
