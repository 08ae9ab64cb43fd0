#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Real nginx from docs/examples/nginx.conf (port 8080) and nginx-closed.conf (8090): limits, headers,
# what clients cannot achieve, and how each fails.

. "$(dirname "$0")/../lib/http.sh"
http_begin nginx "$@"
. "$REPO/tests/lib/proxy.sh"

proxy_rules
http_daemon < /dev/null
application_start
nginx_start nginx.conf 8080
nginx_start nginx-closed.conf 8090

proxy_pair 8080 8090
check_is "nginx logs no error for refusals" "$(grep -c 'unexpected status' "$LAB"/nginx-8080/error.log)" 0

# ---------------------------------------------------------------- without a daemon

wrong='s|proxy_set_header Host localhost;|& proxy_set_header X-Sluice-Token wrong;|'
nginx_start nginx.conf 8081 "$wrong"
nginx_start nginx-closed.conf 8091 "$wrong"
proxy_undecided 8081 8091
proxy_left_alone 8080 8090
lab_done
