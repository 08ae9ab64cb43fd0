/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* dp_bpf_pins.c - the pins under pin_dir, and the messages of libbpf and libxdp. */
#include <dirent.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "packet/dataplane/dp_attach_mark.h"
#include "packet/dataplane/dp_bpf.h"

#define LOCKDOWN "/sys/kernel/security/lockdown"

/* ------------------------------------------------------------------ messages of the libraries */

static __thread char libbpf_log[384];
static __thread bool is_kernels; /* libbpf_log is the kernel's own reason */

#define KERNEL_SAYS "Kernel error message: "

/*
 * The first warning names the cause; later ones repeat it. Exceptions are the kernel's own reason,
 * which replaces what the libraries wrote before, and a rejected program: there the end of the
 * verifier's log is what a reader needs.
 */
static void listen_to(const char *format, va_list args)
{
	size_t used = strlen(libbpf_log), room = sizeof(libbpf_log) - used, length;
	char *line, *kernel;

	if (vasprintf(&line, format, args) < 0)
		return;
	length = strlen(line);
	kernel = strstr(line, KERNEL_SAYS);
	is_kernels |= kernel != NULL;
	if (kernel)
		snprintf(libbpf_log, sizeof(libbpf_log), "%.*s",
			 (int)strcspn(kernel + strlen(KERNEL_SAYS), "\n"),
			 kernel + strlen(KERNEL_SAYS));
	else if (strstr(line, "BEGIN PROG LOAD LOG"))
		snprintf(libbpf_log + used, room, "%s",
			 length < room ? line : line + length - room + 1);
	else if (!used)
		snprintf(libbpf_log, sizeof(libbpf_log), "%.300s", line);
	free(line);
	for (char *c = libbpf_log; *c; c++)
		if (*c == '\n')
			*c = ' ';
}

static int libbpf_says(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_WARN)
		listen_to(format, args);
	return 0;
}

static int libxdp_says(enum libxdp_print_level level, const char *format, va_list args)
{
	if (level == LIBXDP_WARN)
		listen_to(format, args);
	return 0;
}

void bpf_listen(void)
{
	libbpf_set_print(libbpf_says);
	libxdp_set_print(libxdp_says);
	libbpf_log[0] = '\0';
	is_kernels = false;
}

/* Only confidentiality refuses bpf(), or helpers of it; integrity, which Secure Boot sets, does
 * not. */
static bool is_locked_down(void)
{
	char text[128] = "";
	FILE *file = fopen(LOCKDOWN, "re");

	if (!file)
		return false;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	return strstr(text, "[confidentiality]");
}

const char *bpf_advice(int code)
{
	bool may_be_lockdown = code == -EPERM || code == -EACCES || code == -EINVAL;

	if (may_be_lockdown && is_locked_down())
		return " (the kernel is locked down, which may refuse parts of bpf() to root, too: " LOCKDOWN
		       " has "
		       "[confidentiality]; boot with lockdown=integrity, or without lockdown=; if that does not help: a "
		       "container's seccomp profile; limits that are in force stay)";
	switch (-code) {
	case EPERM:
		return " (bpf() is forbidden: by a container's seccomp profile, or a security module; the kernel's lockdown "
		       "is not what refuses it)";
	case ENOSYS:
		return " (the kernel is built without bpf(): CONFIG_BPF_SYSCALL; or a container's seccomp profile refuses it)";
	case ENOMEM:
		return " (no memory, or the cgroup's limit: a smaller table.buckets needs less)";
	case EACCES:
	case EINVAL:
	case E2BIG:
		return " (its verifier refuses a program that this version was tested with: please report it with "
		       "'uname -r' and the output of sluiced -v; limits that are in force stay)";
	default:
		return "";
	}
}

const char *bpf_said(void)
{
	return libbpf_log;
}

const char *kernel_said(void)
{
	return is_kernels ? libbpf_log : NULL;
}

/* ------------------------------------------------------------------ pins */

const char *pin_path(const char *pin_dir, const char *name, char *buf)
{
	snprintf(buf, PATH_MAX, "%s/%s", pin_dir, name);
	return buf;
}

int unpin_all(const char *pin_dir, struct sl_err *err)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir = opendir(pin_dir);

	if (!dir)
		return sl_err_set(err, errno, "cannot open %s: %s", pin_dir, strerror(errno));
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlink(pin_path(pin_dir, entry->d_name, path));
	closedir(dir);
	if (rmdir(pin_dir) < 0)
		return sl_err_set(err, errno, "cannot remove %s: %s", pin_dir, strerror(errno));
	return 0;
}

static bool is_bpffs(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == BPF_FS_MAGIC;
}

int pin_dir_make(const char *pin_dir, bool *ret_made, struct sl_err *err)
{
	char parent[PATH_MAX];
	struct statvfs fs;
	char *slash;

	if (strlen(pin_dir) >= PIN_DIR_MAX)
		return sl_err_set(err, ENAMETOOLONG, "pin_dir is too long: %s", pin_dir);
	snprintf(parent, sizeof(parent), "%s", pin_dir);
	slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return sl_err_set(
			err, EINVAL,
			"pin_dir must be an absolute path below a BPF file system, not %s",
			pin_dir);
	*slash = '\0';
	if (!is_bpffs(is_bpffs(pin_dir) ? pin_dir : parent))
		return sl_err_set(
			err, ENODEV,
			"no BPF file system at %s: mount one (mount -t bpf bpf /sys/fs/bpf); 'ip netns exec' hides it, 'nsenter --net' does not",
			parent);
	if (statvfs(is_bpffs(pin_dir) ? pin_dir : parent, &fs) == 0 && fs.f_flag & ST_RDONLY)
		return sl_err_set(
			err, EROFS,
			"the BPF file system at %s is read-only: mount -o remount,rw %s (in a "
			"container, mount it writable)",
			parent, parent);
	*ret_made = mkdir(pin_dir, 0700) == 0;
	if (!*ret_made && errno != EEXIST)
		return sl_err_set(err, errno, "cannot make %s: %s%s", pin_dir, strerror(errno),
				  strchr(pin_dir + (slash - parent) + 1, '.')
					  ? ": a BPF file system takes no name with a dot"
					  : "");
	return pin_dir_check(pin_dir, err);
}

static bool is_roots(const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid();
}

int pin_dir_check(const char *pin_dir, struct sl_err *err)
{
	char parent[PATH_MAX];
	struct stat st;
	char *slash;

	if (lstat(pin_dir, &st) < 0)
		return sl_err_set(err, errno, "cannot open pin_dir %s: %s", pin_dir,
				  strerror(errno));
	if (!S_ISDIR(st.st_mode) || !is_bpffs(pin_dir))
		return sl_err_set(err, ENOTDIR,
				  "pin_dir %s is not a directory of a BPF file system", pin_dir);
	if (!is_roots(&st) || st.st_mode & (S_IWGRP | S_IWOTH))
		return sl_err_set(
			err, EPERM,
			"pin_dir %s: its owner is uid %u, its mode %04o: it must be root's, and "
			"nobody else may write there; remove it, or choose another pin_dir",
			pin_dir, st.st_uid, st.st_mode & 07777);
	snprintf(parent, sizeof(parent), "%s", pin_dir);
	slash = strrchr(parent, '/');
	if (slash && slash != parent)
		*slash = '\0';
	if (stat(parent, &st) < 0 || !is_roots(&st) ||
	    (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX)))
		return sl_err_set(
			err, EPERM,
			"pin_dir %s: others than root can replace it, since %s is not root's, or "
			"writable without the sticky bit; choose another pin_dir",
			pin_dir, parent);
	return 0;
}

/* What it holds is computed again. */
static bool is_cache(const char *map)
{
	return !strcmp(map, "refused") || !strcmp(map, "passed") || !strcmp(map, "lease_hints");
}

int map_info(int fd, struct bpf_map_info *ret)
{
	u32 size = sizeof(*ret);

	memset(ret, 0, sizeof(*ret));
	return bpf_obj_get_info_by_fd(fd, ret, &size);
}

/* A pinned map's info. -ENOENT if there is no such pin. */
int pinned_info(const char *pin_dir, const char *name, struct bpf_map_info *ret)
{
	char path[PATH_MAX];
	int fd = bpf_obj_get(pin_path(pin_dir, name, path));
	int rc;

	if (fd < 0)
		return -errno;
	rc = map_info(fd, ret);
	close(fd);
	return rc;
}

static const struct {
	const char *name;
	enum bpf_map_type type;
	u32 value_size, entries;
} own[] = {
	[OWN_PROGS] = { "progs", BPF_MAP_TYPE_PROG_ARRAY, sizeof(u32), SL_IFACES_MAX },
	[OWN_ATTACHED] = { "attached", BPF_MAP_TYPE_ARRAY, sizeof(struct sl_attached),
			   SL_IFACES_MAX },
	[OWN_STAGES] = { "stages", BPF_MAP_TYPE_PROG_ARRAY, sizeof(u32), SL_STAGES_MAX },
};

/* The kernel copies as many bytes as the map's values have, whatever room there is. */
int own_map_open(const char *pin_dir, enum own_map which, int *ret_fd, struct sl_err *err)
{
	struct bpf_map_info info = { .type = 0 };
	char path[PATH_MAX];
	int fd = bpf_obj_get(pin_path(pin_dir, own[which].name, path)), rc = 0;

	if (fd < 0)
		return sl_err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	if (map_info(fd, &info) < 0)
		rc = sl_err_set(err, errno, "cannot look at %s: %s", path, strerror(errno));
	else if (info.type != own[which].type || info.key_size != sizeof(u32) ||
		 info.value_size != own[which].value_size || info.max_entries != own[which].entries)
		rc = sl_err_set(
			err, EPROTO,
			"%s has another version's layout (type %u, %u x %u bytes, this version's: type %u, %u x %u): with that version, run sluiced --purge",
			path, info.type, info.max_entries, info.value_size, own[which].type,
			own[which].entries, own[which].value_size);
	if (rc < 0)
		close(fd);
	else
		*ret_fd = fd;
	return rc;
}

int own_map_make(const char *pin_dir, enum own_map which, int *ret_fd, struct sl_err *err)
{
	const char *name = own[which].name;
	char path[PATH_MAX];
	int fd, rc = own_map_open(pin_dir, which, ret_fd, err);

	if (rc != -ENOENT)
		return rc;
	pin_path(pin_dir, name, path);
	fd = bpf_map_create(own[which].type, name, sizeof(u32), own[which].value_size,
			    own[which].entries, NULL);
	if (fd < 0)
		return sl_err_set(err, errno, "cannot make the map '%s': %s", name,
				  strerror(errno));
	if (bpf_obj_pin(fd, path) < 0) {
		rc = sl_err_set(err, errno, "cannot pin %s: %s", path, strerror(errno));
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

/*
 * Maps whose content may be lost are made again in this layout: counters, and first fragments,
 * whose later fragments are then judged as those of unseen ones. An attached program keeps the old
 * map until it is replaced.
 */
static bool begins_anew(const char *map)
{
	return !strcmp(map, "iface_stats") || !strcmp(map, "fragments") || !strcmp(map, "heavy") ||
	       !strcmp(map, "events") || !strcmp(map, "event_switch") ||
	       !strcmp(map, "event_stats");
}

/* Whether the map is pinned in another layout, and its content is needed. */
static bool is_others(const struct bpf_map *map, const char *pin_dir)
{
	struct bpf_map_info info;
	const char *name = bpf_map__name(map);
	char path[PATH_MAX];

	if (pinned_info(pin_dir, name, &info) < 0)
		return false;
	if (info.type == bpf_map__type(map) && info.key_size == bpf_map__key_size(map) &&
	    info.value_size == bpf_map__value_size(map) &&
	    (info.max_entries == bpf_map__max_entries(map) || !strcmp(name, "table")) &&
	    info.map_flags == bpf_map__map_flags(map))
		return false;
	return !((begins_anew(name) || is_cache(name)) && !unlink(pin_path(pin_dir, name, path)));
}

/* Whether the state is of another version: a layout of the same sizes may still mean something
 * else. */
static bool is_others_version(const char *pin_dir)
{
	struct bpf_map_info info;
	struct sl_state state;
	char path[PATH_MAX];
	u32 zero = 0;
	bool other;
	int fd = bpf_obj_get(pin_path(pin_dir, "state", path));

	if (fd < 0)
		return false;
	other = map_info(fd, &info) == 0 && info.type == BPF_MAP_TYPE_ARRAY &&
		info.key_size == sizeof(zero) && info.value_size == sizeof(state) &&
		bpf_map_lookup_elem(fd, &zero, &state) == 0 && state.abi_version &&
		state.abi_version != SL_ABI_VERSION;
	close(fd);
	return other;
}

static bool is_own(const char *name)
{
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!strcmp(name, own[i].name))
			return true;
	return false;
}

/* `state` last: until then it shows that the pins are another version's. */
static int unpin_others(const char *pin_dir, struct sl_err *err)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir = opendir(pin_dir);
	int rc = 0;

	if (!dir)
		return sl_err_set(err, errno, "cannot open %s: %s", pin_dir, strerror(errno));
	while (!rc && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, "state") != 0 &&
		    !is_own(entry->d_name) && !is_mark_reader_pin(entry->d_name) &&
		    unlink(pin_path(pin_dir, entry->d_name, path)) < 0)
			rc = sl_err_set(err, errno, "cannot remove %s: %s", path, strerror(errno));
	closedir(dir);
	if (!rc && unlink(pin_path(pin_dir, "state", path)) < 0 && errno != ENOENT)
		rc = sl_err_set(err, errno, "cannot remove %s: %s", path, strerror(errno));
	return rc;
}

int pins_take_over(const struct bpf_object *object, const char *pin_dir, bool *ret_other,
		   struct sl_err *err)
{
	struct bpf_map *map;
	bool other;

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		int fd, rc = own_map_open(pin_dir, i, &fd, err);

		if (rc == 0)
			close(fd);
		else if (rc == -EPROTO)
			return rc;
	}
	other = is_others_version(pin_dir);
	bpf_object__for_each_map(map, object)
		if (!bpf_map__is_internal(map))
			other |= is_others(map, pin_dir);
	*ret_other = other;
	return other ? unpin_others(pin_dir, err) : 0;
}

/* ------------------------------------------------------------------ memory */

static size_t mapped_size(size_t value_size, u64 entries)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return (value_size * entries + page - 1) / page * page;
}

/* Maps an array of BPF_F_MMAPABLE; value_size is a multiple of 8. NULL with errno. */
void *map_memory(int fd, size_t value_size, u64 entries, int prot)
{
	void *memory = mmap(NULL, mapped_size(value_size, entries), prot, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void unmap_memory(const void *memory, size_t value_size, u64 entries)
{
	if (memory)
		munmap((void *)memory, mapped_size(value_size, entries));
}
