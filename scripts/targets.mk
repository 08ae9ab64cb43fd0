# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The targets that are not compiling: each is a script under scripts/. What needs packages runs
# a make of its own after deps.sh, because a Makefile looks for its tools when it is read.

MANDIR     = $(PREFIX)/share/man
DOCDIR     = $(PREFIX)/share/doc/sluice
UNITDIR   ?= $(PREFIX)/lib/systemd/system
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
JOBS      ?= $(shell nproc)
FUZZ_TIME ?= 30

.PHONY: deps test run bench bench-report vmtest lint fuzz install uninstall soak asan-test

# Made on the way by chains of pattern rules; without this make removes them at the end.
.SECONDARY: $(TEST_SKEL) $(TEST_SKEL:.skel.h=.bpf.o) $(SKEL) $(SKEL:.skel.h=.bpf.o)

deps:
	@scripts/deps.sh

# PATTERN=name runs the tests whose path contains it.
test:
	@scripts/deps.sh
	@scripts/node.sh
	@$(MAKE) --no-print-directory -j$(JOBS) all tests
	@if [ "$$(id -u)" = 0 ]; then scripts/bpffs.sh; fi
	@scripts/test.sh $(PATTERN)

run:
	@scripts/deps.sh
	@$(MAKE) --no-print-directory -j$(JOBS) all tests
	@scripts/bpffs.sh
	@IFACE='$(IFACE)' scripts/run.sh

bench:
	@scripts/deps.sh
	@scripts/node.sh
	@$(MAKE) --no-print-directory -j$(JOBS) all tests
	@scripts/bpffs.sh
	@scripts/bench.sh
	@scripts/bench-grpc.sh
	@scripts/bench-redis.sh
	@scripts/bench-shares.sh
	@scripts/bench-nodes.sh

bench-report:
	@scripts/deps.sh >&2
	@$(MAKE) --no-print-directory -j$(JOBS) all tests >&2
	@scripts/bpffs.sh
	@scripts/bench.sh --markdown
	@scripts/bench-grpc.sh --markdown
	@scripts/bench-redis.sh --markdown
	@scripts/bench-shares.sh --markdown
	@scripts/bench-nodes.sh --markdown

# The kill -9, live-change and swap scenarios over and over: SOAK=minutes.
soak:
	@scripts/deps.sh
	@$(MAKE) --no-print-directory -j$(JOBS) all tests
	@scripts/bpffs.sh
	@scripts/soak.sh $(or $(SOAK),60)

# Attaching under other kernels, in qemu: KERNELS="6.1.0-56-amd64 ..." or the newest of Debian's.
vmtest:
	@scripts/deps.sh
	@scripts/node.sh
	@$(MAKE) --no-print-directory -j$(JOBS) tests
	@scripts/vmtest.sh $(KERNELS)

lint:
	@scripts/lint.sh

# Unit tests, and the daemon with clients of the HTTP tier, broken and hostile ones too, and with Redis: all with
# AddressSanitizer, LeakSanitizer and UBSan.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined
asan-test:
	@scripts/deps.sh
	@CFLAGS='-O1 -g $(SANITIZE)' LDFLAGS='$(SANITIZE)' $(MAKE) --no-print-directory -j$(JOBS) B=build/asan all tests
	@scripts/asan.sh


# A fuzzer includes the .c files it fuzzes, or is built from them: all of it with the sanitizers.
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

FUZZ_POLICY := $(wildcard user/policy/*.c) user/lib/addr.c user/lib/err.c user/lib/units.c
$(B)/fuzz/fuzz_policy $(B)/fuzz/fuzz_edit: $(FUZZ_POLICY) $(wildcard user/policy/*.h)
$(B)/fuzz/fuzz_policy $(B)/fuzz/fuzz_edit: FUZZ_SRC = $(FUZZ_POLICY)
FUZZ_PACKET := $(FUZZ_POLICY) user/dataplane/dp_sim.c user/dataplane/dp_common.c \
	user/dataplane/dp_push.c user/dataplane/explain_copy.c
$(B)/fuzz/fuzz_packet: $(FUZZ_PACKET) $(wildcard bpf/*.h user/*/*.h)
$(B)/fuzz/fuzz_packet: FUZZ_SRC = $(FUZZ_PACKET)

FUZZ_REDIS := $(filter-out %/redis_resolve.c,$(wildcard user/cluster/redis*.c user/lib/*.c))
$(B)/fuzz/fuzz_redis: $(FUZZ_REDIS) $(wildcard user/cluster/redis*.h)
$(B)/fuzz/fuzz_redis: FUZZ_SRC = $(FUZZ_REDIS)

FUZZ_SHARED := $(wildcard user/cluster/share.c user/cluster/share_*.c) user/cluster/shared_settle.c \
	user/cluster/shared_word.c user/http/spec.c user/http/spec_make.c user/policy/params.c user/lib/err.c
$(B)/fuzz/fuzz_shared: $(FUZZ_SHARED) $(wildcard user/cluster/*.h) | $(LUA)
$(B)/fuzz/fuzz_shared: FUZZ_SRC = $(FUZZ_SHARED)

# Those of the HTTP tier link it whole, compiled once with the sanitizers.
FUZZ_HTTP := $(patsubst %,$(B)/fuzz/%,fuzz_http1 fuzz_spoe fuzz_grpc fuzz_call fuzz_rules)
FUZZ_HTTP_OBJ := $(patsubst %.c,$(B)/fuzz/obj/%.o,$(wildcard user/lib/*.c user/policy/*.c \
	user/http/*.c) $(filter-out %/usage_text.c,$(wildcard user/cluster/*.c))) \
	$(PROTO:$(B)/%=$(B)/fuzz/obj/%.o)
FUZZ_CFLAGS := -std=gnu11 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined

$(B)/fuzz/obj/%.o: %.c | $(PROTO:%=%.h) $(LUA)
	@mkdir -p $(@D)
	$(CLANG) $(CPPFLAGS) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

$(B)/fuzz/obj/proto/%.o: $(B)/proto/%.c
	@mkdir -p $(@D)
	$(CLANG) $(CPPFLAGS) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link -c -o $@ $<

$(FUZZ_HTTP): $(B)/fuzz/%: tests/fuzz/%.c tests/fuzz/front_feed.h $(FUZZ_HTTP_OBJ)
	@mkdir -p $(@D)
	$(CLANG) $(CPPFLAGS) -Itests -I. $(FUZZ_CFLAGS) -fsanitize=fuzzer -o $@ $< $(FUZZ_HTTP_OBJ) $(LIBS)

$(B)/fuzz/%: tests/fuzz/%.c
	@mkdir -p $(@D)
	$(CLANG) $(CPPFLAGS) -Itests -I. -std=gnu11 -g -O1 $(if $(FUZZ_SRC),,-MMD -MP) \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
		-o $@ $< $(FUZZ_SRC) $(LIBS)

fuzz: $(FUZZ_BIN)
	@[ -n "$(FUZZ_BIN)" ] || { echo "no tests/fuzz/fuzz_*.c" >&2; exit 1; }
	@for f in $(FUZZ_BIN); do \
		corpus=tests/fuzz/corpus/$${f##*/}; new=$(B)/fuzz/corpus/$${f##*/}; \
		mkdir -p $$new; \
		[ -d $$corpus ] || corpus=; \
		echo "== $$f"; \
		$$f -max_total_time=$(FUZZ_TIME) -print_final_stats=1 -artifact_prefix=$(B)/fuzz/ \
			$$new $$corpus || exit 1; \
	done

install: all
	install -Dm755 $(B)/sluiced $(DESTDIR)$(PREFIX)/sbin/sluiced
	install -Dm755 $(B)/sluicectl $(DESTDIR)$(PREFIX)/bin/sluicectl
	install -d $(DESTDIR)$(UNITDIR)
	sed 's|@PREFIX@|$(PREFIX)|; s|@SYSCONFDIR@|$(SYSCONFDIR)|' scripts/sluiced.service \
		> $(DESTDIR)$(UNITDIR)/sluiced.service
	set -e; for page in $(wildcard docs/man/*.[1-8]); do \
		install -Dm644 $$page $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/}; done
	set -e; for example in $$(find docs/examples -type f); do \
		install -Dm644 $$example $(DESTDIR)$(DOCDIR)/$${example#docs/}; done
	[ -e $(DESTDIR)$(SYSCONFDIR)/sluice/sluice.yaml ] || [ ! -e docs/examples/quickstart.yaml ] || \
		install -Dm644 docs/examples/quickstart.yaml $(DESTDIR)$(SYSCONFDIR)/sluice/sluice.yaml

# The configuration stays, and so do limits that are attached: sluicectl detach takes them off.
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/sbin/sluiced $(DESTDIR)$(PREFIX)/bin/sluicectl \
		$(DESTDIR)$(UNITDIR)/sluiced.service
	for page in $(wildcard docs/man/*.[1-8]); do \
		rm -f $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/}; done
	rm -rf $(DESTDIR)$(DOCDIR)
