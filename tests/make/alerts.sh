#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# alerts.sh - the alerts and the dashboard of docs/examples: promtool's own tests of the alerts, names of
# metrics that exist, parts of the documents that exist.

. "$(dirname "$0")/../lib/netns.sh"
LAB_NAME=alerts
cd "$REPO" || exit 1
command -v promtool > /dev/null || {
	skip "promtool is not installed"
	exit 0
}
LAB=$(mktemp -d) || exit 1
trap 'rm -rf "$LAB"' EXIT
cp docs/examples/alerts.yaml tests/make/alerts.test.yaml "$LAB"
check_true "promtool accepts the rules" promtool check rules "$LAB/alerts.yaml"
promtool test rules "$LAB/alerts.test.yaml" > "$LAB/out" 2>&1
check_is "each alert fires for what it names, and not before" $? 0
[ -s "$LAB/out" ] && sed 's/^/# /' "$LAB/out"

# A metric of the documents, or a part of a histogram.
for name in $(grep -ohE '\b(sluice|process)_[a-z_]+' docs/examples/alerts.yaml docs/examples/grafana.json | sort -u); do
	check_true "docs/metrics.md has $name" grep -qE "\`${name%_bucket}[\`{]" docs/metrics.md
done
check_true "each alert has a severity, a summary and a runbook" python3 - <<'PY'
import re, sys, yaml
for rule in yaml.safe_load(open("docs/examples/alerts.yaml"))["groups"][0]["rules"]:
    assert rule["labels"]["severity"] in ("page", "ticket"), rule
    page, _, part = rule["annotations"]["runbook"].partition("#")
    assert rule["annotations"]["summary"], rule
    slugs = {re.sub(r"[^a-z0-9_ -]", "", line.lstrip("# ").strip().lower()).replace(" ", "-")
             for line in open(page) if line.startswith("#")}
    assert not part or part in slugs, (page, part)
PY
check_true "the dashboard: each panel has a query, and no two overlap" python3 - <<'PY'
import json
board = json.load(open("docs/examples/grafana.json"))
places = set()
for panel in board["panels"]:
    at = panel["gridPos"]
    assert panel["targets"] and all(t["expr"] for t in panel["targets"]), panel["title"]
    for x in range(at["x"], at["x"] + at["w"]):
        for y in range(at["y"], at["y"] + at["h"]):
            assert x < 24 and (x, y) not in places, panel["title"]
            places.add((x, y))
PY

# Completion for zsh is that for bash, through zsh's bashcompinit.
if command -v zsh > /dev/null; then
	"$BIN/sluicectl" completion zsh > "$LAB/_sluicectl"
	complete_zsh() {
		zsh -f -c 'autoload -U compinit; compinit -u -D; source $1 2> /dev/null
			emulate sh -c "COMP_WORDS=($2); COMP_CWORD=$3; _sluicectl; echo \${COMPREPLY[*]}"' \
			zsh "$LAB/_sluicectl" "$1" "$2" 2>&1 | tr '\n' ' '
	}
	check_true "zsh completes commands: $(complete_zsh "sluicectl sour" 1)" \
		grep -q "source" <(complete_zsh "sluicectl sour" 1)
	check_true "and options: $(complete_zsh "sluicectl source list --w" 3)" \
		grep -q -- "--within" <(complete_zsh "sluicectl source list --w" 3)
else
	skip "zsh is not installed"
fi
[ $LAB_FAILED = 0 ]
