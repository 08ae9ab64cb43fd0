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

static int text_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		     void *section)
{
	char buf[400];
	const char *text, *accepted = key_accepted(key, buf, sizeof(buf));
	int rc = read_text(r, node, accepted, &text);

	if (rc)
		return rc;
	if ((key->most && strlen(text) > key->most) ||
	    (key->characters && strspn(text, key->characters) != strlen(text)))
		return read_refuse(r, node, accepted);
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

const struct key_type type_text = TYPE_TEXT("text", .read = text_read);

#define PATH_MOST 3500	/* the daemon creates files below some: leaves room for their names */

static int path_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		     void *section)
{
	return read_path(r, node, key->most ? key->most : PATH_MOST, text_of(key, section));
}

static const char *path_accepted(const struct key *key, char *buf, size_t size)
{
	return "an absolute path";
}

const struct key_type type_path = TYPE_TEXT("path", .read = path_read,
					    .accepted = path_accepted);

static int address_port_read(struct reader *r, const struct yaml_node *node,
			     const struct key *key, void *section)
{
	const char *text;
	char buf[128];
	int rc = read_text(r, node, key_accepted(key, buf, sizeof(buf)), &text);

	if (rc)
		return rc;
	if (!is_listen_address(text))
		return key_refuse(r, node, key);
	return read_copy(r, text, text_of(key, section));
}

static const char *address_port_accepted(const struct key *key, char *buf, size_t size)
{
	return "ADDRESS:PORT, as 127.0.0.1:9810 or '[::1]:9810'";
}

const struct key_type type_address_port = TYPE_TEXT("address", .read = address_port_read,
						    .accepted = address_port_accepted);

/* ---- texts within the struct ---- */

static void inline_write(struct writer *w, const struct key *key, const void *section)
{
	write_text(w->out, key_field_of(key, section));
}

static bool inline_equal(const struct key *key, const void *a, const void *b)
{
	return !strcmp(key_field_of(key, a), key_field_of(key, b));
}

static int identifier_read(struct reader *r, const struct yaml_node *node, const struct key *key,
			   void *section)
{
	return read_identifier(r, node, key_field(key, section));
}

const struct key_type type_identifier = {
	.name = "identifier", .size = SL_NAME_MAX, .read = identifier_read,
	.write = inline_write, .equal = inline_equal,
};

static int interface_read(struct reader *r, const struct yaml_node *node, const struct key *key,
			  void *section)
{
	return read_interface_name(r, node, key_field(key, section));
}

const struct key_type type_interface = {
	.name = "interface", .size = 16, .read = interface_read, .write = inline_write,
	.equal = inline_equal,
};

/* ---- addresses ---- */

static int prefix_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		       void *section)
{
	const char *text, *reason;
	char buf[128];
	int rc = read_text(r, node, key_accepted(key, buf, sizeof(buf)), &text);

	if (rc)
		return rc;
	if (sl_prefix_parse(text, key_field(key, section), &reason))
		return read_fail(r, node, EINVAL, "found %s: %s", read_found(r, node), reason);
	return 0;
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

static const char *prefix_accepted(const struct key *key, char *buf, size_t size)
{
	return "an address or a prefix, as 192.0.2.0/24";
}

const struct key_type type_prefix = {
	.name = "address", .size = sizeof(struct sl_prefix), .read = prefix_read,
	.write = prefix_write, .equal = prefix_equal, .accepted = prefix_accepted,
};
