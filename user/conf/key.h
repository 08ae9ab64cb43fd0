/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * key.h - a key of the configuration is one row of one table: its name, type, place in the model,
 * default, range and meaning. From the row come reading, the default, writing, copying, freeing,
 * comparing, and its line in the documents.
 *
 *     static const struct key table_rows[] = {
 *             { "buckets", KEY(struct policy, table_buckets), &type_count, .least = 1,
 *               .most = 1000000000, .usual = "1M", .flags = KEY_RESTART, .help = "..." },
 *     };
 *     const struct keys table_keys = KEYS(struct policy, table_rows);
 *
 * Conditions between keys are code: `check` of a table, called after its keys were read.
 */
#ifndef SLUICE_CONF_KEY_H
#define SLUICE_CONF_KEY_H

#include "conf/read.h"
#include "conf/write.h"

struct key;
struct key_type;
struct keys;

/* Reads a text, which is not empty unless the row has KEY_EMPTY, into a field of the struct. */
typedef int read_text(struct reader *r, const char *text, const struct key *key, void *section);

enum key_flag {
	KEY_NEEDED = 1,	  /* missing is an error */
	KEY_RESTART = 2,  /* a change takes effect when the daemon is restarted */
	KEY_FIRST = 8,	  /* read before the other keys, which depend on it */
	KEY_FLOW = 16,	  /* a mapping is written on one line */
	KEY_UNIQUE = 4,	  /* each mapping of a list has another value */
	KEY_OWN = 32,	  /* of a meaning that the table gives it */
	KEY_EMPTY = 64,	  /* what is no text reaches `text` as an empty one, to be refused there */
	KEY_COMMAS = 128, /* items of the list have commas themselves, also in KEY=VALUE */
	KEY_ROOT = 256,	  /* names files or rights: only root's configuration may change it */
};

struct key {
	const char *name;
	size_t offset, size;	     /* of the field in the struct: KEY() */
	const struct key_type *type; /* NULL: `text` and `read` do */
	read_text *text;	     /* without a type: as key_type.text, key_type.read */
	int (*read)(struct reader *r, const struct yaml_node *value, void *into);
	void (*write)(struct writer *w,
		      const void *section); /* without a type; NULL: not written */
	size_t count;			    /* of a list: the offset of its number of elements */
	size_t given;	   /* the offset of a bool that is set if the key is given; 0: none */
	u64 least, most;   /* the range; of a text or path bytes, of a list elements */
	const char *usual; /* the default, as in a file; NULL: zeros */
	union {
		const struct name *names; /* of an enumeration, or of flags */
		const struct keys *keys;  /* of a mapping */
		const struct key *item;	  /* of a list: an element */
		const char *characters;	  /* of a text: the accepted ones; NULL: all */
	};
	const char *unset;    /* in the documents: the effect without the key */
	const char *accepted; /* in errors; NULL: from the type and the range */
	const char *word;     /* of type_optional_map: the value that means zeros, or NULL */
	u32 flags;	      /* enum key_flag, or-ed */
	const char *help;     /* for the documents: document.h */
};

/* clang-format off */
#define KEY(of, field) .offset = offsetof(of, field), .size = sizeof(((of *)0)->field)
/* clang-format on */
/* An array, and the number of its elements. */
#define KEY_LIST(of, field, number)                                                                \
	KEY(of, field), .type = &type_list, .count = offsetof(of, number)

/* A key that a mapping does not have, though a similar one does: the reason, and what to use
 * instead. */
struct key_elsewhere {
	const char *name, *reason;
};

/* The keys of a mapping, in the order in which they are read and written (but KEY_FIRST). */
struct keys {
	const struct key *key;
	size_t count;
	size_t size;	     /* of the struct */
	const char *alone;   /* the key of a value given instead of the mapping, or NULL */
	size_t given;	     /* the offset of a u64: bit i is set if row i was given; 0: none */
	const char *example; /* in errors of pair.h: an example of a pair */
	const struct key_elsewhere *elsewhere; /* ends with a name of NULL; or NULL */
	/* Sets defaults that cannot be written as text; 0 or -ENOMEM. May be NULL. */
	int (*init)(void *section);
	/*
	 * Checks conditions between the keys, after all were read. `node` is the mapping, or the
	 * value alone.
	 */
	int (*check)(struct reader *r, const struct yaml_node *node, void *section);
};

/* clang-format off */
#define KEYS(type, rows, ...) \
	{ .key = rows, .count = ARRAY_SIZE(rows), .size = sizeof(type), ##__VA_ARGS__ }
/* clang-format on */

/* Fails if the mapping has a key of keys->elsewhere. */
int keys_refuse_elsewhere(struct reader *r, const struct yaml_node *map, const struct keys *keys);

/*
 * The functions get the row and the struct that has the field. NULL: a field without pointers,
 * compared byte by byte.
 */
struct key_type {
	const char *name; /* for the documents */
	size_t size;	  /* of an element, in a list */
	int variant;
	/* Texts: the value, or each item of the list with `items`, which is called before. */
	read_text *text;
	/* Begins a list of so many items; of a value alone 1. NULL: no list. */
	int (*items)(struct reader *r, size_t count, const struct key *key, void *section);
	/* Values and items that are no text, and without `text` all. NULL: refused. */
	int (*read)(struct reader *r, const struct yaml_node *node, const struct key *key,
		    void *section);
	/* The value on one line; `lines`: the key and its value on lines of their own. */
	void (*write)(struct writer *w, const struct key *key, const void *section);
	void (*lines)(struct writer *w, const struct key *key, const void *section);
	/*
	 * Replaces pointers of another section by copies; by NULL if *rc is set, or gets -ENOMEM.
	 */
	void (*copy)(const struct key *key, void *section, int *rc);
	void (*clear)(const struct key *key, void *section); /* also sets zeros */
	bool (*equal)(const struct key *key, const void *a, const void *b);
	const char *accepts; /* the accepted values as text; NULL: `accepted` */
	/* The same, from the row; returns buf. */
	const char *(*accepted)(const struct key *key, char *buf, size_t size);
	bool null; /* the text null without quotes is text, too */
};

/* type.c */
extern const struct key_type type_bool, /* bool: true, false, yes, no */
	type_count,			/* unsigned integer: 2000, 10K, 1.5M */
	type_number,	    /* unsigned integer: digits, 0x and hexadecimal digits, or of `names` */
	type_hex,	    /* the same, written in hexadecimal digits */
	type_mode,	    /* u32: octal permissions */
	type_duration,	    /* u64 in ns */
	type_percent,	    /* u32 in permille */
	type_whole_percent, /* unsigned integer in percent */
	type_enum,	    /* integer: one of `names` */
	type_flags;	    /* integer: any of `names`, or-ed */
/* type_text.c */
extern const struct key_type type_text, /* char * */
	type_path,			/* char *: an absolute path */
	type_address_port,		/* char *: ADDRESS:PORT */
	type_identifier,		/* char [SL_NAME_MAX] */
	type_interface,			/* char [16]: an interface's name */
	type_prefix;			/* struct sl_prefix without sets */
/* A type like type_text, except for its name and the functions given here, as `text`. */
/* clang-format off */
#define TYPE_TEXT(what, ...)                                                             \
	{ .name = what, .size = sizeof(char *), .write = type_text_write,                 \
	  .copy = type_text_copy, .clear = type_text_clear, .equal = type_text_equal,     \
	  ##__VA_ARGS__ }
/* clang-format on */
read_text type_text_read;
void type_text_write(struct writer *w, const struct key *key, const void *section);
void type_text_copy(const struct key *key, void *section, int *rc);
void type_text_clear(const struct key *key, void *section);
bool type_text_equal(const struct key *key, const void *a, const void *b);

/* type_nested.c */
extern const struct key_type type_list, /* an array of `item`, and its count */
	type_map,			/* a struct of `keys` within this one */
	/* The same, which has the defaults of `keys` if it is given, else zeros: `word`, or
	 * nothing. */
	type_optional_map, type_section; /* a pointer to one; NULL if the key is not given */
/* Types like type_map and type_list, except for the functions given here, as `read`. */
/* clang-format off */
#define TYPE_MAP(what, ...)                                                              \
	{ .name = what, .copy = type_map_copy, .clear = type_map_clear,                   \
	  .equal = type_map_equal, ##__VA_ARGS__ }
#define TYPE_LIST(what, ...)                                                             \
	{ .name = what, .copy = type_list_copy, .clear = type_list_clear,                 \
	  .equal = type_list_equal, ##__VA_ARGS__ }
/* clang-format on */
void type_map_lines(struct writer *w, const struct key *key, const void *section);
void type_map_copy(const struct key *key, void *section, int *rc);
void type_map_clear(const struct key *key, void *section);
bool type_map_equal(const struct key *key, const void *a, const void *b);
/* Reads items behind those that are there. */
int type_list_append(struct reader *r, const struct yaml_node *node, const struct key *key,
		     void *section);
/* An item has lines of its own if its type has `lines`; of type_map it is on one line. */
void type_list_lines(struct writer *w, const struct key *key, const void *section);
void type_list_copy(const struct key *key, void *section, int *rc);
void type_list_clear(const struct key *key, void *section);
bool type_list_equal(const struct key *key, const void *a, const void *b);

/* ---- a whole table; `section` is a struct of keys->size bytes ---- */

/* Sets the defaults in a zeroed struct. 0 or -ENOMEM; also then free it with keys_clear(). */
int keys_init(const struct keys *keys, void *section);
/* Reads a mapping, or a value alone; also on failure free it with keys_clear(). */
int keys_read(struct reader *r, const struct yaml_node *node, const struct keys *keys,
	      void *section);
/* Lines "key: value" of the keys with a bit in `given`; the same on one line, within braces. */
void keys_write_given(struct writer *w, const struct keys *keys, const void *section, u64 given);
void keys_write_flow(struct writer *w, const struct keys *keys, const void *section, u64 given);
/*
 * The bits of the keys that differ from `usual`, or with NULL from their defaults: then w->failed
 * is set if out of memory.
 */
u64 keys_unlike(struct writer *w, const struct keys *keys, const void *section, const void *usual);
/* Lines of the keys that have not their default. */
void keys_write(struct writer *w, const struct keys *keys, const void *section);
/* `section` is a byte-wise copy: gives it pointers of its own. As key_type.copy. */
void keys_copy(const struct keys *keys, void *section, int *rc);
void keys_clear(const struct keys *keys, void *section);
/*
 * A copy in newly allocated memory; NULL: out of memory. The second function frees it; NULL is
 * fine.
 */
void *keys_clone(const struct keys *keys, const void *from);
void keys_free(const struct keys *keys, void *section);
bool keys_equal(const struct keys *keys, const void *a, const void *b);
/* Whether a key was given, by keys->given; false for an unknown name. */
bool keys_given(const struct keys *keys, const void *section, const char *name);
/* Copies the fields of keys that were not given (bits of `given`) from a struct of defaults. */
void keys_inherit(const struct keys *keys, u64 given, void *section, const void *from);
/* Reports "http.state.users" for each key with one of `flags` that differs. */
void keys_changed(const struct keys *keys, const void *was, const void *now, u32 flags,
		  const char *path, void (*report)(const char *path, void *arg), void *arg);

/* ---- one key ---- */

int key_read(struct reader *r, const struct yaml_node *node, const struct key *key, void *section);
/* The same of a text beside the file; commas separate the items of a list. Only if
 * key_is_text(). */
int key_read_text(struct reader *r, const char *text, const struct key *key, void *section);
bool key_is_text(const struct key *key);
/* Notes in keys->given whether the i-th key is given. */
void key_note(const struct keys *keys, size_t i, bool given, void *section);
/* Sets the default. 0 or -ENOMEM. */
int key_reset(const struct key *key, void *section);
bool key_equal(const struct key *key, const void *a, const void *b);
void key_copy(const struct key *key, void *section, int *rc);
void key_clear(const struct key *key, void *section);
/* A value as in the file; returns buf. */
const char *type_format(const struct key_type *type, const void *value, char *buf, size_t size);
const char *key_accepted(const struct key *key, char *buf, size_t size);
/* An error of key_accepted(), of a node and of the text being read. */
int key_refuse(struct reader *r, const struct yaml_node *node, const struct key *key);
int key_refuse_text(struct reader *r, const struct key *key);

static inline void *key_field(const struct key *key, void *section)
{
	return (char *)section + key->offset;
}

static inline const void *key_field_of(const struct key *key, const void *section)
{
	return (const char *)section + key->offset;
}

#endif
