# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make            builds build/sluiced and build/sluicectl
# sudo make test  installs what is missing, builds, runs every test
# sudo make run   the lab; with IFACE=eth0 the same on a real interface
# The rest is listed in docs/contributing.md.

PREFIX  ?= /usr
DESTDIR ?=
CC      ?= gcc
CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)

B := build
VERSION := 0.1.0

PKGS := libbpf libxdp libevent libevent_pthreads libevent_openssl openssl yaml-0.1 jansson libsystemd \
	libcap libseccomp liburcu libnghttp2 libprotobuf-c hiredis
CFLAGS   ?= -O2 -g
CFLAGS   += -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Werror=implicit -Werror=incompatible-pointer-types -MMD -MP
# What an overrun meets. FORTIFY needs optimization; sanitizers have checks of their own.
HARDEN := -fPIE -fstack-protector-strong -fstack-clash-protection
ifeq ($(findstring -fsanitize,$(CFLAGS)),)
HARDEN += $(if $(findstring -O,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif
HARDEN_LINK := -pie -Wl,-z,relro,-z,now
CPPFLAGS += -D_GNU_SOURCE -DSLUICE_VERSION='"$(VERSION)"' -Iinclude -Iuser -I. -I$(B) $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
LIBS     := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lhttp_parser -lz -lm -lpthread

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
TEST_OBJ := $(TEST_BIN:%=%.o) $(TOOL_BIN:%=%.o) $(TEST_LIB_OBJ)

.DELETE_ON_ERROR:
.SECONDARY: $(PROTO:%=%.c) $(PROTO:%=%.h) $(TEST_SRC:%.c=$(B)/%.o) $(TOOL_SRC:%.c=$(B)/%.o) $(TEST_LIB_OBJ)
.PHONY: all tests deps test run bench lint clean install uninstall fuzz vmtest soak
all: $(B)/sluiced $(B)/sluicectl

$(B)/sluiced: $(D_MAIN) $(B)/libsluiced.a $(B)/libsluice.a
	$(CC) $(HARDEN_LINK) $(LDFLAGS) -o $@ $^ $(LIBS)

# The daemon without its main: tests have it over a simulated data plane.
$(B)/libsluiced.a: $(filter-out $(D_MAIN),$(D_OBJ))
	@rm -f $@
	ar rcs $@ $^

$(B)/sluicectl: $(CTL_OBJ) $(B)/libsluice.a
	$(CC) $(HARDEN_LINK) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/libsluice.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(B)/%.o: %.c | $(SKEL) $(PROTO:%=%.h)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(HARDEN) -c -o $@ $<

# rls.proto -> rls.pb-c.c and rls.pb-c.h, both by one run of protoc-c
# Scripts that run in Redis: build/lua/NAME.h has user/cluster/quota/NAME.lua as the string NAME_lua.
LUA      := $(patsubst user/cluster/quota/%.lua,$(B)/lua/%.h,$(wildcard user/cluster/quota/*.lua))
$(B)/lua/%.h: user/cluster/quota/%.lua
	@mkdir -p $(@D)
	{ echo 'static const char $*_lua[] ='; sed 's/\\/&&/g; s/"/\\"/g; s/.*/"&\\n"/' $<; echo ';'; } > $@
$(patsubst %.c,$(B)/%.o,$(wildcard user/cluster/quota/*.c)): $(LUA)

$(B)/proto/%.pb-c.c $(B)/proto/%.pb-c.h: $(PROTO_DIR)/%.proto
	@mkdir -p $(@D)
	protoc-c --proto_path=$(<D) --c_out=$(@D) $(<F)

$(B)/proto/%.pb-c.o: $(B)/proto/%.pb-c.c
	$(CC) $(CPPFLAGS) $(CFLAGS) $(HARDEN) -c -o $@ $<

$(B)/bpf/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -c -o $@ $<

$(B)/tests/%.bpf.o: tests/%.bpf.c
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -c -o $@ $<

# sluice.bpf.c -> sluice.skel.h with struct sluice_bpf
$(B)/bpf/%.skel.h: $(B)/bpf/%.bpf.o
	$(BPFTOOL) gen skeleton $< name $*_bpf > $@

$(B)/tests/%.skel.h: $(B)/tests/%.bpf.o
	$(BPFTOOL) gen skeleton $< name $(notdir $*)_bpf > $@

tests: $(TEST_BIN) $(TOOL_BIN)

$(TEST_LIB): $(TEST_LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

# charge.lua is run without a server, too.
$(B)/tests/prop/test_shared_script: LIBS += -llua5.1
$(B)/tests/%: $(B)/tests/%.o $(TEST_LIB) $(B)/libsluiced.a $(B)/libsluice.a
	$(CC) $(CFLAGS) -o $@ $< $(TEST_LIB) $(B)/libsluiced.a $(B)/libsluice.a $(LIBS) -lcmocka

# Not a pattern rule: make 4.4 would take the one above, since the skeletons are made by chains of rules.
$(TEST_OBJ): $(B)/tests/%.o: tests/%.c | $(TEST_SKEL) $(SKEL) $(LUA)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Itests $(CFLAGS) -c -o $@ $<

clean:
	rm -rf $(B)

-include scripts/targets.mk
# Not of the system that scripts/distro.sh has in $(B)/distro.
-include $(shell find $(B) -path $(B)/distro -prune -o -name '*.d' -type f -print 2>/dev/null)
