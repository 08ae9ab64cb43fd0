# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# parts.sh - what several scenarios of netns.sh have besides, on top of it:
#
#     rules_empty                 $LAB/rules: a domain without rules
#     rules_of_users [RATE]       $LAB/rules: 5 requests/h of each user of the domain api, or RATE
#     theirs_attach IFACE         another one's XDP program, "theirs", in the server's namespace

rules_empty() {
	mkdir "$LAB/rules"
	echo 'domain: api' > "$LAB/rules/api.yaml"
}

rules_of_users() {
	mkdir "$LAB/rules"
	printf 'domain: api\ndescriptors:\n  - {key: user, limits: [%s]}\n' "${1:-5 requests/h}" > "$LAB/rules/api.yaml"
}

theirs_attach() {
	echo '__attribute__((section("xdp"), used)) int theirs(void *ctx) { return 2; }' > "$LAB/theirs.bpf.c"
	clang -O2 -g -target bpf -c "$LAB/theirs.bpf.c" -o "$LAB/theirs.o" || not_ok "no program of theirs"
	ip -n "$NS_S" link set dev "$1" xdpdrv obj "$LAB/theirs.o" sec xdp
}
