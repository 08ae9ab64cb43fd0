# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The targets that are not compiling: each is a script under scripts/. What needs packages runs
# a make of its own after deps.sh, because a Makefile looks for its tools when it is read.

MANDIR     = $(PREFIX)/share/man
LIBDIR    ?= $(PREFIX)/lib/$(shell $(CC) -print-multiarch 2>/dev/null)
INCLUDEDIR ?= $(PREFIX)/include
DOCDIR     = $(PREFIX)/share/doc/sluice
UNITDIR   ?= $(PREFIX)/lib/systemd/system
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
FUZZ_TIME ?= 30

.PHONY: deps distro-smoke distro-test compilers tsan-test test run bench bench-report vmtest lint man pictures rooms scaling fuzz install uninstall soak asan-test asan-smoke

# Made on the way by chains of pattern rules; without this make removes them at the end.
.SECONDARY: $(TEST_SKEL) $(TEST_SKEL:.skel.h=.bpf.o) $(SKEL) $(SKEL:.skel.h=.bpf.o)

deps:
	@scripts/deps.sh

# make -n runs a line that has $(MAKE): it installs nothing.
dry = $(findstring n,$(firstword -$(MAKEFLAGS)))

# PATTERN=name runs the tests whose path contains it. What no compiler needs is installed while the rest compiles.
test:
	@scripts/deps.sh tests
	@{ $(if $(dry),:,scripts/deps.sh && scripts/js.sh); } & install=$$!; \
		$(MAKE) --no-print-directory all tests; built=$$?; wait $$install && exit $$built
	@if [ "$$(id -u)" = 0 ]; then scripts/bpffs.sh; fi
	@scripts/test.sh $(PATTERN)

# Random tests with the seeds of tests/seeds.txt: PATTERN=name those whose path contains it, SEEDS=100 with so many.
.PHONY: seeds
seeds:
	@scripts/deps.sh
	@$(MAKE) --no-print-directory all tests
	@if [ "$$(id -u)" = 0 ]; then scripts/bpffs.sh; fi
	@scripts/seeds.sh '$(PATTERN)' $(SEEDS)

# The two programs and what the labs send and count packets with.
.PHONY: run-programs
run-programs: all $(RUN_BIN)

run:
	@scripts/deps.sh run
	@$(MAKE) --no-print-directory run-programs
	@scripts/bpffs.sh
	@IFACE='$(IFACE)' scripts/run.sh

bench:
	@scripts/deps.sh
	@scripts/js.sh
	@$(MAKE) --no-print-directory all tests
	@scripts/bpffs.sh
	@scripts/bench.sh
	@scripts/bench-grpc.sh
	@scripts/bench-redis.sh
	@scripts/bench-shares.sh

# How soon live changes hold: of the cases that contain WORD.
.PHONY: bench-live
bench-live: all $(B)/tests/bench/live_change
	@scripts/bpffs.sh
	@scripts/bench-live.sh $(WORD)

# Two data centers 5, 80 and 200 ms apart: the table of docs/cluster.md.
.PHONY: wan
wan: all $(B)/tests/cluster/drive
	@WAN_TRIPS='5 80 200' tests/cluster/wan.sh

bench-report:
	@scripts/deps.sh >&2
	@$(MAKE) --no-print-directory all tests >&2
	@scripts/bpffs.sh
	@scripts/bench.sh --markdown
	@scripts/bench-grpc.sh --markdown
	@scripts/bench-redis.sh --markdown
	@scripts/bench-shares.sh --markdown

# What Linux delivers was judged (tests/escape): a million frames; faults put back; branches taken.
.PHONY: escape-long escape-mutants escape-coverage
escape-long escape-mutants escape-coverage:
	@scripts/deps.sh
	@$(MAKE) --no-print-directory $(B)/tests/escape/escape
	@if [ "$$(id -u)" = 0 ]; then scripts/bpffs.sh; fi
	@$(ESCAPE_$@)
ESCAPE_escape-long = SLUICE_LONG=1 bash tests/escape/escape.sh
ESCAPE_escape-mutants = scripts/escape-mutants.sh $(MUTANTS)
ESCAPE_escape-coverage = ESCAPE_LIBS='$(LIBS)' scripts/escape-coverage.sh

# The kill -9, live-change and swap scenarios over and over: SOAK=minutes.
soak:
	@scripts/deps.sh
	@$(MAKE) --no-print-directory all tests
	@scripts/bpffs.sh
	@scripts/soak.sh $(or $(SOAK),60)

# Attaching under other kernels, in qemu: KERNELS="6.1.0-56-amd64 ..." or the newest of Debian's.
vmtest:
	@scripts/deps.sh
	@scripts/js.sh
	@$(MAKE) --no-print-directory tests
	@scripts/vmtest.sh $(KERNELS)

# The same on Debian 13 (SUITE=...), in a root of its own: what CI does there; and all tests, here and
# there. And with clang: user/ as users build it, without a warning, and a smoke test; bpf/ by each clang
# that the two have. See scripts/distro.sh.
distro-smoke:
	@scripts/distro.sh smoke

distro-test: test
	@scripts/distro.sh test

compilers:
	@scripts/deps.sh
	@$(MAKE) --no-print-directory B=build/clang CC=clang WERROR=1 all $(addprefix build/clang/tests/netns/,blast sink scrape)
	@SLUICE_BUILD=$(CURDIR)/build/clang bash tests/netns/smoke.sh
	@scripts/distro.sh compilers

lint:
	@scripts/lint.sh

# docs/pictures/{algorithms,rooms,beside}.svg, from the step functions, from the table of rooms and from what
# scripts/bench-beside.sh measured.
pictures: $(B)/tests/bench/plot
	@python3 scripts/algorithms_picture.py $<
	@python3 scripts/rooms_picture.py
	@python3 scripts/beside_picture.py

# The commands in sluicectl(8), from user/command/rows.h, and the keys in docs/{configuration,cluster,http-rules}.md and
# sluice.yaml(5), from their rows; test_rows and make lint fail if they are not current.
man: $(B)/sluicectl
	@$(B)/sluicectl help --mdoc > $(B)/commands.mdoc
	@awk -v from=$(B)/commands.mdoc '/^.." End of the commands/ { skip = 0 } !skip { print } \
		/^.." The commands, by/ { while ((getline line < from) > 0) print line; skip = 1 }' \
		docs/man/sluicectl.8 > $(B)/sluicectl.8 && cp $(B)/sluicectl.8 docs/man/sluicectl.8
	@scripts/keys.py write $(B)/sluicectl

# The tables of docs/scaling.md and its decision, after the simulation that they rest on: 1000 nodes, about a minute of CPU.
scaling: $(B)/tests/bench/nodes
	@python3 tests/bench/scaling.py simulate $<
	@python3 tests/bench/scaling.py write

# Which room of user/ includes which.
rooms:
	@scripts/rooms.py

# Unit tests, and the daemon with lists and their feeds, with clients of the HTTP tier, broken and hostile ones too, and
# with Redis: all with AddressSanitizer, LeakSanitizer and UBSan. asan-smoke is the part that CI runs.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined
asan-test asan-smoke: asan-%:
	@scripts/deps.sh
	@scripts/js.sh
	@$(if $(filter smoke,$*),$(MAKE) --no-print-directory tests)
	@CFLAGS='-O1 -g $(SANITIZE)' LDFLAGS='$(SANITIZE)' $(MAKE) --no-print-directory B=build/asan WERROR=0 all \
		$(if $(filter test,$*),tests)
	@scripts/asan.sh $(if $(filter smoke,$*),short)

# The daemon's threads under ThreadSanitizer, asked through every frontend while rules change.
tsan-test:
	@scripts/deps.sh
	@CFLAGS='-O0 -g -fsanitize=thread' LDFLAGS='-fsanitize=thread' $(MAKE) --no-print-directory \
		B=build/tsan all build/tsan/tests/cluster/load build/tsan/tests/netns/scrape
	@bash scripts/tsan.sh

# The product is compiled once with the sanitizers, into an archive: a fuzzer links what it uses, and may include a .c file
# for what is static there. FUZZ_OPT=-O0 compiles three times as fast.
FUZZ_OPT ?= -O1
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_OBJ := $(LIB_SRC:%.c=$(B)/fuzz/obj/%.o) $(PROTO:$(B)/%=$(B)/fuzz/obj/%.o)
FUZZ_CFLAGS := -std=gnu11 -g $(FUZZ_OPT) -fsanitize=address,undefined -fno-sanitize-recover=undefined

$(B)/fuzz/obj/%.o: %.c $(B)/flags.fuzz | $(SKEL) $(PROTO:%=%.h) $(LUA)
	@mkdir -p $(@D)
	$(call say,CLANG,$<)$(CLANG) $(SL_CPPFLAGS) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

$(B)/fuzz/obj/proto/%.o: $(B)/proto/%.c $(B)/flags.fuzz
	@mkdir -p $(@D)
	$(call say,CLANG,$<)$(CLANG) $(SL_CPPFLAGS) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link -c -o $@ $<

$(B)/fuzz/libsluice.a: $(FUZZ_OBJ)
	@rm -f $@
	$(call say,AR,$@)$(AR) rcs $@ $^

$(FUZZ_BIN): $(B)/fuzz/%: tests/fuzz/%.c $(B)/fuzz/libsluice.a $(B)/flags.fuzz
	@mkdir -p $(@D)
	$(call say,CLANG,$<)$(CLANG) $(SL_CPPFLAGS) -Itests -I. $(FUZZ_CFLAGS) -fsanitize=fuzzer -MMD -MP -o $@ $< \
		$(B)/fuzz/libsluice.a $(LIBS)

# Each in its turn, JOBS at a time; what one said is shown where it failed.
fuzz: $(FUZZ_BIN)
	@[ -n "$(FUZZ_BIN)" ] || { echo "no tests/fuzz/fuzz_*.c" >&2; exit 1; }
	@printf '%s\n' $(FUZZ_BIN) | FUZZ_TIME=$(FUZZ_TIME) xargs -P $(JOBS) -n 1 scripts/fuzz.sh

install: all
	install -Dm755 $(B)/sluiced $(DESTDIR)$(PREFIX)/sbin/sluiced
	install -Dm755 $(B)/sluicectl $(DESTDIR)$(PREFIX)/bin/sluicectl
	install -Dm644 $(B)/client/libsluice.so.0 $(DESTDIR)$(LIBDIR)/libsluice.so.0
	ln -sf libsluice.so.0 $(DESTDIR)$(LIBDIR)/libsluice.so
	install -Dm644 $(B)/client/libsluice.a $(DESTDIR)$(LIBDIR)/libsluice.a
	install -Dm644 user/client/sluice.h $(DESTDIR)$(INCLUDEDIR)/sluice.h
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(VERSION)|' \
		user/client/sluice.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/sluice.pc
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(B)/sluicectl completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/sluicectl
	install -d $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions
	$(B)/sluicectl completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/_sluicectl
	install -Dm644 docs/examples/alerts.yaml $(DESTDIR)$(PREFIX)/share/sluice/prometheus/alerts.yaml
	install -Dm644 docs/examples/grafana.json $(DESTDIR)$(PREFIX)/share/sluice/grafana/sluice.json
	set -e; for part in http server location; do \
		install -Dm644 docs/examples/snippets/nginx-$$part.conf $(DESTDIR)$(PREFIX)/share/sluice/nginx-$$part.conf; done
	install -d $(DESTDIR)$(UNITDIR)
	sed 's|@PREFIX@|$(PREFIX)|; s|@SYSCONFDIR@|$(SYSCONFDIR)|' scripts/sluiced.service \
		> $(DESTDIR)$(UNITDIR)/sluiced.service
	set -e; for page in $(wildcard docs/man/*.[1-8]); do \
		install -Dm644 $$page $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/}; done
	set -e; for example in $$(find docs/examples -type f); do \
		install -Dm644 $$example $(DESTDIR)$(DOCDIR)/$${example#docs/}; done
	install -Dm755 scripts/first_run.sh $(DESTDIR)$(PREFIX)/share/sluice/first_run.sh
	install -Dm644 docs/examples/first-run.yaml $(DESTDIR)$(PREFIX)/share/sluice/first-run.yaml
	[ -n "$(DESTDIR)" ] || scripts/first_run.sh docs/examples/first-run.yaml $(SYSCONFDIR)/sluice/sluice.yaml

# Limits that are attached are taken off first. The configuration and /var/lib/sluice stay.
uninstall:
	@if [ -z "$(DESTDIR)" ] && [ -x $(PREFIX)/sbin/sluiced ] && [ -e $(SYSCONFDIR)/sluice/sluice.yaml ]; then \
		$(PREFIX)/bin/sluicectl detach --all 2> /dev/null || \
		$(PREFIX)/sbin/sluiced -c $(SYSCONFDIR)/sluice/sluice.yaml --purge || \
		echo "uninstall: limits may still be attached; ip link shows XDP programs" >&2; fi
	rm -f $(DESTDIR)$(PREFIX)/sbin/sluiced $(DESTDIR)$(PREFIX)/bin/sluicectl \
		$(DESTDIR)$(UNITDIR)/sluiced.service $(DESTDIR)$(INCLUDEDIR)/sluice.h \
		$(addprefix $(DESTDIR)$(LIBDIR)/,libsluice.so.0 libsluice.so libsluice.a pkgconfig/sluice.pc) \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/sluicectl \
		$(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/_sluicectl
	rm -rf $(DESTDIR)$(PREFIX)/share/sluice
	for page in $(wildcard docs/man/*.[1-8]); do \
		rm -f $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/}; done
	rm -rf $(DESTDIR)$(DOCDIR)
	@echo "$(SYSCONFDIR)/sluice and /var/lib/sluice stay: remove them if they are not needed"

# Debian packages of this tree, in build/deb; and building, checking, installing, upgrading and removing them in roots of
# Debian 12 and 13 (scripts/deb.sh); the image of docs/examples/Containerfile. make release NEW=0.2.0 raises the version in the places that have it.
.PHONY: deb test-deb test-container release
deb:
	@scripts/deb.sh build

test-deb:
	@SUITE=bookworm scripts/deb.sh test
	@SUITE=trixie scripts/deb.sh test

test-container: deb
	@scripts/container.sh

release:
	@scripts/release.sh '$(NEW)'
