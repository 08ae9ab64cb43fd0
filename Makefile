# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make            builds build/sluiced and build/sluicectl; V=1 shows the command lines
# sudo make run   the lab; with IFACE=eth0 the same on a real interface
# sudo make test  installs what is missing, builds, runs every test
# The rest is listed in docs/contributing.md.

PREFIX  ?= /usr
DESTDIR ?=
ifeq ($(origin CC),default)
CC := gcc
endif
CLANG   ?= clang
PKG_CONFIG ?= pkg-config
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)

B := build
VERSION := 0.1.0

# As many jobs as there are processors, if make was not told how many. A -j of the command line is not in
# MAKEFLAGS while this is read, but goes before what is added here; one of the environment does not.
JOBS ?= $(shell nproc)
ifeq ($(filter -j% --jobs%,$(MAKEFLAGS) $(shell echo "$$MAKEFLAGS")),)
MAKEFLAGS += -j$(JOBS)
endif
# "make clean all" is one after the other.
ifneq ($(and $(filter clean,$(MAKECMDGOALS)),$(filter-out clean,$(MAKECMDGOALS))),)
.NOTPARALLEL:
endif

# $(call say,CC,FILE) before a command: shows that instead of the command line; V=1 shows this.
silent = $(findstring s,$(firstword -$(MAKEFLAGS)))
say = $(if $(filter-out 0,$(V)),,@$(if $(silent),,printf '%-7s %s\n' '$1' '$2';))

PKGS := libbpf libxdp libevent libevent_pthreads libevent_openssl openssl yaml-0.1 jansson libsystemd \
	libcap libseccomp liburcu libnghttp2 libprotobuf-c hiredis sqlite3
CFLAGS   ?= -O2 -g
SL_CFLAGS := $(CFLAGS) -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Werror=implicit -Werror=incompatible-pointer-types -MMD -MP
# A warning is an error where CI=true or WERROR=1; elsewhere a newer compiler may have new ones.
WERROR   ?= $(filter true,$(CI))
WERROR_FLAG := $(if $(filter-out 0,$(WERROR)),-Werror)
# What an overrun meets. FORTIFY needs optimization; sanitizers have checks of their own.
HARDEN := -fPIE -fstack-protector-strong -fstack-clash-protection
ifeq ($(findstring -fsanitize,$(CFLAGS)),)
HARDEN += $(if $(findstring -O,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
# -fstack-clash-protection touches all pages of a frame at each call of its function: large ones cost time.
$(B)/user/%.o: WARN_FRAME := -Wframe-larger-than=65536
endif
HARDEN_LINK := -pie -Wl,-z,relro,-z,now
SL_CPPFLAGS := $(CPPFLAGS) -D_GNU_SOURCE -Iinclude -Iuser -I. -I$(B) $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
LIBS     := $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null) -lhttp_parser -lz -lm -lpthread

BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 -Wall -Wextra -Wno-unused-parameter -Wno-unused-function \
	-Iinclude -I. -I/usr/include/$(shell uname -m)-linux-gnu -MMD -MP

# Everything but the two mains is one archive; a main links what it uses.
# Rooms that only the daemon has; all others but the CLI's are the library.
D_SRC    := $(wildcard user/control/*/*.c user/daemon/*.c)
CTL_SRC  := $(wildcard user/cli/*.c)
LIB_SRC  := $(filter-out $(D_SRC) $(CTL_SRC),$(sort $(shell find user -name '*.c')))
PROTO_DIR := user/request/frontends/grpc/proto
PROTO    := $(patsubst $(PROTO_DIR)/%.proto,$(B)/proto/%.pb-c,$(wildcard $(PROTO_DIR)/*.proto))
LIB_OBJ  := $(LIB_SRC:%.c=$(B)/%.o) $(PROTO:%=%.o)
D_OBJ    := $(D_SRC:%.c=$(B)/%.o)
D_MAIN   := $(B)/user/daemon/main.o
CTL_OBJ  := $(CTL_SRC:%.c=$(B)/%.o)
BPF_SRC  := $(wildcard bpf/*.bpf.c)
SKEL     := $(patsubst bpf/%.bpf.c,$(B)/bpf/%.skel.h,$(BPF_SRC))

# A test is test_NAME.c in tests/{prop,bpf}, or in the folder under tests/unit of the room that it tests.
# Its program has the same path under build.
TEST_SRC := $(sort $(shell find tests/unit tests/prop tests/bpf -name 'test_*.c'))
TEST_BIN := $(patsubst tests/%.c,$(B)/tests/%,$(TEST_SRC))
TEST_LIB := $(B)/tests/libtests.a
TEST_LIB_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard tests/lib/*.c))
# Tools of the tests: tests/{bench,netns,http,cluster,escape}/*.c are programs of their own
TOOL_SRC := $(wildcard tests/bench/*.c tests/netns/*.c tests/http/*.c tests/cluster/*.c tests/escape/*.c)
TOOL_BIN := $(patsubst tests/%.c,$(B)/tests/%,$(TOOL_SRC))
TEST_SKEL := $(patsubst tests/%.bpf.c,$(B)/tests/%.skel.h,$(wildcard tests/*/*.bpf.c))
TOOL_BIN := $(filter-out %.bpf,$(TOOL_BIN))
# What the labs of make run send and count packets with: they need none of the tests' libraries.
RUN_BIN := $(addprefix $(B)/tests/netns/,blast sink scrape)
RUN_OBJ := $(RUN_BIN:%=%.o)
TEST_OBJ := $(filter-out $(RUN_OBJ),$(TEST_BIN:%=%.o) $(TOOL_BIN:%=%.o) $(TEST_LIB_OBJ))

.DELETE_ON_ERROR:
.SECONDARY: $(PROTO:%=%.c) $(PROTO:%=%.h) $(TEST_SRC:%.c=$(B)/%.o) $(TOOL_SRC:%.c=$(B)/%.o) $(TEST_LIB_OBJ)
.PHONY: all tests clean needs needs-tests FORCE
# The BPF programs first: clang needs longest for them.
all: $(SKEL) $(B)/sluiced $(B)/sluicectl $(B)/client/libsluice.so.0 $(B)/client/libsluice.a

# Before anything is compiled: the packages that are missing, all of them, by name.
DEPS := CC='$(CC)' CLANG='$(CLANG)' BPFTOOL='$(BPFTOOL)' PKG_CONFIG='$(PKG_CONFIG)' CPPFLAGS='$(CPPFLAGS)' scripts/deps.sh
needs:
	@$(DEPS) check build
needs-tests:
	@$(DEPS) check tests

# SLUICE_VERSION, in a header of its own: only what names it is compiled again for a new version.
# (Every object needs one of the files of flags, and so finds this header made.)
$(B)/version.h: FORCE
	+@mkdir -p $(@D)
	+@echo '#define SLUICE_VERSION "$(VERSION)"' | cmp -s - $@ || echo '#define SLUICE_VERSION "$(VERSION)"' > $@

# The flags that objects (cc), BPF objects (bpf), programs (ld) and fuzzers are made with, in a file each, written only
# where they changed: then these are made again. Not part of it is what changes no object. (The + is for make -n, which
# takes a file for changed whose recipe it does not run; "private" elsewhere keeps the libraries of one program out.)
FLAGS_cc  = $(filter-out ccache,$(CC)) $(SL_CPPFLAGS) $(SL_CFLAGS) $(HARDEN)
FLAGS_bpf = $(CLANG) $(BPF_CFLAGS)
FLAGS_fuzz = $(CLANG) $(SL_CPPFLAGS) $(FUZZ_CFLAGS)
FLAGS_ld  = $(filter-out ccache,$(CC)) $(SL_CFLAGS) $(HARDEN_LINK) $(LDFLAGS) $(LIBS)
quoted = '$(subst ','\'',$1)'
$(addprefix $(B)/flags.,cc bpf ld fuzz): $(B)/flags.%: FORCE | needs $(B)/version.h
	+@mkdir -p $(@D)
	+@printf '%s\n' $(call quoted,$(FLAGS_$*)) | cmp -s - $@ || printf '%s\n' $(call quoted,$(FLAGS_$*)) > $@

$(B)/sluiced: $(D_MAIN) $(B)/libsluiced.a $(B)/libsluice.a $(B)/flags.ld
	$(call say,LD,$@)$(CC) $(HARDEN_LINK) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LIBS)

# The daemon without its main: tests have it over a simulated data plane.
$(B)/libsluiced.a: $(filter-out $(D_MAIN),$(D_OBJ))
	@rm -f $@
	$(call say,AR,$@)$(AR) rcs $@ $^

$(B)/sluicectl: private LIBS += $(shell $(PKG_CONFIG) --libs ncursesw 2>/dev/null || echo -lncursesw -ltinfo) -lpcap
$(B)/sluicectl: $(CTL_OBJ) $(B)/libsluice.a $(B)/flags.ld
	$(call say,LD,$@)$(CC) $(HARDEN_LINK) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LIBS)

$(B)/libsluice.a: $(LIB_OBJ)
	@rm -f $@
	$(call say,AR,$@)$(AR) rcs $@ $^

$(B)/%.o: %.c $(B)/flags.cc
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(SL_CPPFLAGS) $(SL_CFLAGS) $(WARN_FRAME) $(WERROR_FLAG) $(HARDEN) -c -o $@ $<

# libsluice, the library for programs: the limiter, a client, and of lib/ what they use. Only sluice_* is visible, also in the archive.
CLIENT_SRC := $(wildcard user/client/*.c user/limiter/*.c) $(addprefix user/lib/,err.c units.c block_check.c out.c zone.c)
.PHONY: client-sources
client-sources:
	@echo $(CLIENT_SRC)
CLIENT_OBJ := $(CLIENT_SRC:%.c=$(B)/pic/%.o)
$(B)/pic/%.o: %.c $(B)/flags.cc
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(SL_CPPFLAGS) $(SL_CFLAGS) $(WERROR_FLAG) $(filter-out -fPIE,$(HARDEN)) -fPIC -ffunction-sections -c -o $@ $<

$(B)/client/libsluice.so.0: $(CLIENT_OBJ) user/client/libsluice.map $(B)/flags.ld
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(SL_CFLAGS) -shared -Wl,-soname,libsluice.so.0 -Wl,--version-script=user/client/libsluice.map \
		-Wl,-z,relro,-z,now -Wl,--gc-sections -Wl,--no-undefined $(LDFLAGS) -o $@ $(CLIENT_OBJ) -lm -lpthread

# What is not reached from these names is left out, and with it libraries that a program would need.
$(B)/client/libsluice.a: $(CLIENT_OBJ) user/client/libsluice.map
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR,$@)$(LD) -r --gc-sections $$(sed -n 's/^\t\(sluice_.*\);/-u \1/p' user/client/libsluice.map) \
		-o $(@D)/sluice.o $(CLIENT_OBJ) && \
		objcopy -w --keep-global-symbol='sluice_*' --strip-unneeded $(@D)/sluice.o && \
		$(AR) rcs $@ $(@D)/sluice.o

# What must be generated first, by who includes it (scripts/lint.sh); later the .d files know.
$(patsubst %.c,$(B)/%.o,$(wildcard user/packet/dataplane/*.c)): | $(SKEL)
$(patsubst %.c,$(B)/%.o,$(wildcard $(PROTO_DIR:/proto=)/*.c)): | $(PROTO:%=%.h)

# $(call as_string,NAME): the file $< as a C string.
as_string = { echo 'static const char $1[] ='; sed 's/\\/&&/g; s/"/\\"/g; s/.*/"&\\n"/' $<; echo ';'; } > $@

# The status page: build/page/page_js.h has user/daemon/page/page.js as the string page_js.
PAGE     := $(foreach part,html css js,$(B)/page/page_$(part).h)
$(B)/page/page_%.h: user/daemon/page/page.%
	@mkdir -p $(@D)
	$(call say,GEN,$@)$(call as_string,page_$*)
$(B)/user/daemon/status_page.o: $(PAGE)

# Scripts that run in Redis: build/lua/NAME.h has user/cluster/quota/NAME.lua as the string NAME_lua.
LUA      := $(patsubst user/cluster/quota/%.lua,$(B)/lua/%.h,$(wildcard user/cluster/quota/*.lua))
$(B)/lua/%.h: user/cluster/quota/%.lua
	@mkdir -p $(@D)
	$(call say,GEN,$@)$(call as_string,$*_lua)
$(patsubst %.c,$(B)/%.o,$(wildcard user/cluster/quota/*.c)): $(LUA)

# rls.proto -> rls.pb-c.c and rls.pb-c.h, both by one run of protoc-c
$(B)/proto/%.pb-c.c $(B)/proto/%.pb-c.h: $(PROTO_DIR)/%.proto | needs
	@mkdir -p $(@D)
	$(call say,GEN,$(B)/proto/$*.pb-c.c)protoc-c --proto_path=$(<D) --c_out=$(@D) $(<F) $(unless_fails)

$(B)/proto/%.pb-c.o: $(B)/proto/%.pb-c.c $(B)/flags.cc
	$(call say,CC,$<)$(CC) $(SL_CPPFLAGS) $(SL_CFLAGS) $(WERROR_FLAG) $(HARDEN) -c -o $@ $<

$(B)/bpf/%.bpf.o: bpf/%.bpf.c $(B)/flags.bpf
	@mkdir -p $(@D)
	$(call say,CLANG,$<)$(CLANG) $(BPF_CFLAGS) $(WERROR_FLAG) -c -o $@ $<

$(B)/tests/%.bpf.o: tests/%.bpf.c $(B)/flags.bpf
	@mkdir -p $(@D)
	$(call say,CLANG,$<)$(CLANG) $(BPF_CFLAGS) $(WERROR_FLAG) -c -o $@ $<

# What newer generators warn of (a section that libbpf skips, another name of protoc-c) is shown where they fail.
unless_fails = 2> $@.err || { cat $@.err >&2; rm -f $@; exit 1; }

# sluice.bpf.c -> sluice.skel.h with struct sluice_bpf
$(B)/bpf/%.skel.h: $(B)/bpf/%.bpf.o
	$(call say,GEN,$@)$(BPFTOOL) gen skeleton $< name $*_bpf > $@ $(unless_fails)

$(B)/tests/%.skel.h: $(B)/tests/%.bpf.o
	$(call say,GEN,$@)$(BPFTOOL) gen skeleton $< name $(notdir $*)_bpf > $@ $(unless_fails)

tests: $(TEST_BIN) $(TOOL_BIN)

$(TEST_LIB): $(TEST_LIB_OBJ)
	@rm -f $@
	$(call say,AR,$@)$(AR) rcs $@ $^

$(B)/tests/unit/replay/%: private LIBS += -lpcap
$(B)/tests/%: $(B)/tests/%.o $(TEST_LIB) $(B)/libsluiced.a $(B)/libsluice.a $(B)/flags.ld
	$(call say,LD,$@)$(CC) $(SL_CFLAGS) -o $@ $(filter %.o %.a,$^) $(LIBS) -lcmocka

$(RUN_BIN): %: %.o $(B)/libsluice.a $(B)/flags.ld
	$(call say,LD,$@)$(CC) $(SL_CFLAGS) -o $@ $(filter %.o %.a,$^) $(LIBS)

$(RUN_OBJ): $(B)/tests/%.o: tests/%.c $(B)/flags.cc
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(SL_CPPFLAGS) -Itests $(SL_CFLAGS) $(WERROR_FLAG) -c -o $@ $<

# Not a pattern rule: make 4.4 would take the one above, since the skeletons are made by chains of rules.
$(TEST_OBJ): $(B)/tests/%.o: tests/%.c $(B)/flags.cc | needs-tests $(TEST_SKEL) $(SKEL) $(LUA) $(PROTO:%=%.h)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(SL_CPPFLAGS) -Itests $(SL_CFLAGS) $(WERROR_FLAG) -c -o $@ $<

clean:
	@rm -rf $(B)

-include scripts/targets.mk
# Not of the trees that scripts/distro.sh and scripts/escape-mutants.sh have there.
-include $(shell find $(B) \( -path $(B)/distro -o -path $(B)/mutants \) -prune -o -name '*.d' -type f -print 2>/dev/null)
