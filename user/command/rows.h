/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rows.h - the commands, one row each; included where COMMAND is defined.
 *
 *     COMMAND(id, name, right, help, ARGS(...), MORE("..."), SHOW(...))
 *
 * `id` names the daemon's function, command_ID(); right is READS, CHANGES, UPDATES or LOCAL (no
 * function). Arguments stand in the order of the command line, options last. command.c defines the
 * words inside a row; command.h describes the texts of SHOW.
 */

/* clang-format off */
COMMAND(status, "status", READS, "daemon, interfaces, configuration, tables",
	EXAMPLE("status --watch"),
	SHOW(LINE("sluiced $version, pid $pid, up $uptime_ns:left"),
	     LINE("file          $config"),
	     LINE("{APPLIED       $applied.file, $applied.at by uid $applied.uid, instead of the file "
		  "(sluicectl reload returns to the file, save overwrites it)}"),
	     LINE("{UNCONFIRMED   reverts in $pending.left_ns:left, at $pending.until (sluicectl confirm "
		  "keeps it, rollback reverts now)}"),
	     LINE("last reload   {ok$reload.ok, $reload.at|FAILED, $reload.at, keeping the previous "
		  "rules: $reload.error}"),
	     LINE("rules         generation $generation: $limits limits, $overrides overrides, $block "
		  "blocked, $exempt exempt"),
	     LINE("{NOT SAVED     $unsaved; what is in force is saved once that works}"),
	     LINE("{NOT KEPT      $not_kept; a restart loses what it has}"),
	     LINE("live changes  {$live_changes:some (sluicectl diff shows them, save writes them to the "
		  "file)|0}"),
	     { .of = "differing", .line = "DIFFERS       $file: $why" },
	     LINE("{HTTP rules    ok$http.reload.ok, $http.reload.at|HTTP rules    FAILED, "
		  "$http.reload.at, keeping the previous rules: $http.reload.error}"),
	     LINE("{HTTP tier     $http.rules rules, $http.workers workers, listening on $http.listen}"),
	     { .of = "failing_feeds", .line = "feed          $name: FAILED $failed_ns:left ago: $error{; its "
	       "$count:n prefixes are $age_ns:left old}" },
	     LINE("{cluster       node $cluster.node, one of $cluster.nodes; cluster store "
		  "{up$cluster.store_up|UNAVAILABLE}}"),
	     LINE("{peers         $cluster.peers[$node {$lag_ns:ms$alive|gone for $silent_ns:seconds}]}"),
	     LINE_WHEN("!packet_tier", "packet tier   off: no interfaces are configured"),
	     LINE_WHEN("packet_tier", "banned        $bans sources"),
	     LINE_WHEN("packet_tier", "sessions      $sessions login sessions are exempt from all rules"),
	     LINE_WHEN("packet_tier", "table         $table.live:n of $table.ways:n entries in use "
		  "($table.live/table.ways:percent)"),
	     LINE_WHEN("packet_tier", "{              $table.fingerprints:some evicted offenders are "
		  "remembered}"),
	     { .when = "packet_tier", .of = "table_prices", .line =
	       "              limit $limit: table full after $packets:rate packets from forged sources "
	       "within $within_ns:time" },
	     { .when = "packet_tier", .of = "exact", .line = "exact         {$limits[$]} ($why)" },
	     LINE_WHEN("packet_tier", "{$can_attach|attaching     unavailable, as the attach helper has "
		  "exited: restart sluiced}"),
	     LINE_WHEN("packet_tier", "\n"),
	     TABLE_WHEN("packet_tier", "interfaces", "no interface is configured; add one with: sluicectl "
		   "attach IFACE", COL("INTERFACE", "$name"),
		   COL("STATE", "$state{, renamed: $renamed}{, with $other_programs:some other programs}"),
		   COL(">PASSED/S", "$per_second.pass+per_second.tag:rate"),
		   COL(">DROPPED/S", "$per_second.drop:rate"),
		   HIDE(">PASSED", "$packets.pass+packets.tag:n", 2),
		   HIDE(">DROPPED", "$packets.drop:n", 1)),
	     EACH("interfaces", "{$name: NOT LIMITED: another program removed$state=removed its XDP "
		  "program; run: sluicectl attach $name|$name: NOT LIMITED: another program "
		  "replaced$state=replaced its XDP program; run: sluicectl attach $name}"),
	     EACH("interfaces", "{$name: moved to another network namespace$state=moved, where its limits hold until: "
		  "sluicectl detach $name}"),
	     EACH("interfaces", "{$name: $error}")))

COMMAND(stats, "stats", READS, "counters and rates of limits; packets by verdict and reason",
	EXAMPLE("stats web"),
	ARGS(POSITION("limit", "LIMIT", ARG_TEXT, .optional = true, .values = "@limit list"),
	     FLAG("all", "also built-in limits (@...) that met no packet")),
	MORE("Without LIMIT all limits, and the packets of each interface by verdict and reason; with it "
	     "one limit in full. PASSED are all packets that passed: also those above the limit that it "
	     "tagged, that its soft share let pass, or that it only counted in shadow mode."),
	SHOW(TABLE_WHEN("interfaces", "limits", "no limits", COL("LIMIT", "$name"),
		   HIDE("MODE", "$mode", 8), COL("RATE", "{$rate|-}"),
		   HIDE(">SOURCES", "$sources.live:n", 6), HIDE(">OVER", "$sources.over:n", 7),
		   COL(">PASSED/S", "$per_second." ALL_PASSED("per_second") ":rate"),
		   COL(">DROPPED/S", "$per_second.drop:rate"), SOME(">TAGGED/S", "$per_second.tag:rate", 9),
		   SOME(">SHADOW/S", "$per_second.shadow:rate", 9),
		   HIDE(">PASSED", "$packets." ALL_PASSED("packets") ":n", 4), HIDE(">SOFT", "$packets.soft:n", 2),
		   HIDE(">DROPPED", "$packets.drop:n", 5), HIDE(">TAGGED", "$packets.tag:n", 1),
		   HIDE(">SHADOW", "$packets.shadow:n", 3)),
	     LINE_WHEN("interfaces", "\n"),
	     TABLE_WHEN("interfaces", "interfaces/reasons", "no packets yet", COL("INTERFACE", "$name"),
		   COL("VERDICT", "$verdict"), COL("REASON", "$reason"), COL(">PACKETS", "$packets:n")),
	     EACH("map_errors", "errors: $op of map $map failed $count:n times"),
	     { .when = "!interfaces", .of = "limits", .line =
	       "$name: {$rate|without a rate}, $mode\n"
	       "sources    $sources.live:n in the table, $sources.over:n of them over the limit\n"
	       "{shadow     about $sources.shadow:some sources would have been refused\n}"
	       "table      full for $full:n packets; $evicted:n sources evicted, $evicted_units:n units\n"
	       "           evicted; $recorded:n offenders recorded\n"
	       "passed     $packets.pass:n packets, $bytes.pass:n bytes; $per_second.pass:rate/s\n"
	       "dropped    $packets.drop:n packets, $bytes.drop:n bytes; $per_second.drop:rate/s\n"
	       "tagged     $packets.tag:n packets, $bytes.tag:n bytes; $per_second.tag:rate/s\n"
	       "shadow     $packets.shadow:n packets, $bytes.shadow:n bytes; $per_second.shadow:rate/s\n"
	       "soft       $packets.soft:n packets, $bytes.soft:n bytes; $per_second.soft:rate/s" }))

COMMAND(explain, "explain", READS, "the verdict on a packet, the reason, and when it would pass",
	EXAMPLE("explain 203.0.113.7 --proto tcp --dport 443"),
	ARGS(ADDRESS, OPTION("dst", "ADDRESS", "destination"),
	     OPTION("proto", "NAME", "tcp, udp, icmp, icmpv6, sctp, udplite or a number",
		    .values = "tcp udp icmp icmpv6 sctp udplite"),
	     OPTION("sport", "PORT", "source port"), OPTION("dport", "PORT", "destination port"),
	     OPTION("vlan", "ID", "VLAN id, or none"),
	     OPTION("tcp_flags", "FLAGS", "syn,ack or none"),
	     OPTION("icmp_type", "TYPE", "echo-request or a number"),
	     OPTION("length", "BYTES", "the length that IP states"),
	     OPTION("interface", "NAME", "where it arrives"),
	     OPTION("fragment", "KIND", "first, later or none; later: its first fragment was not seen",
		    .values = "first later none")),
	MORE("The verdict on the next such packet from ADDRESS: pass, drop or tag, the step of the order "
	     "and the reason, the limit that refuses and its line in the file, and when it would pass "
	     "without further packets; the list entries that contain the source, its ban and its "
	     "push-down; every limit that matches, with the level of each of its rates and prefixes. With "
	     "per-CPU accounting and where CPUs hold different leases, the verdict on each CPU. The data "
	     "path itself computes it, on copies: nothing is charged. What the source lost in the last 4 to 9 "
	     "seconds is of all its packets, see source show. Fields that are not given are "
	     "assumed (an address of this host, tcp, port 0, an ACK, 64 bytes, the first interface) and "
	     "listed as such; those that would change the verdict are listed with that verdict."),
	SHOW(LINE("$source: $packet:fields"),
	     LINE("{assumed: $assumed:names}"),
	     LINE("\n"),
	     LINE_WHEN("!cpus", VERDICT("verdict.") PASSES("verdict.")),
	     LINE_WHEN("cpus", "The verdict differs by CPU, as each CPU has its own leases:"),
	     EACH("cpus", "  CPU $cpu: " VERDICT("") PASSES("")),
	     LINE("\n"),
	     LINE(LATELY("packets", "dropped")),
	     LINE("exempt   " ENTRY_OF("exempt")),
	     LINE("blocked  " ENTRY_OF("block")),
	     LINE("banned   {$ban.prefix by limit {$ban.limit|(deleted)}, until $ban.until, level "
		  "$ban.level$ban.on|no; was $ban.prefix by limit {$ban.limit|(deleted)}, up to "
		  "$ban.until, level $ban.level|no}"),
	     EACH("pushdowns", "pushed   $prefix: $kind{ $rate}, until $until, $refused of $packets "
		  "packets refused"),
	     LINE("\n"),
	     TABLE("limits/meters?", "no limit matches", COL("LIMIT", "{$limit$^| }"),
		   COL("AT", "{line $line$^|live$^| }"), COL("RESULT", "{$result$^|not counted$^| }"),
		   COL("RATE", "{$rate{ per /$prefix}{, x$scale:scale}|-}"), COL(">USED", "{$used:n|-}"),
		   COL(">OF", "{$capacity:n|-}"), HIDE("UNIT", "{$unit{ ($leased:some leased)}|-}", 2),
		   COL("FITS IN", "{the next drop bans$role=ban$over| $role=ban|$fits_in_ns:after|"
		       "now$fits_in_ns?|never$over|now$role?|-}")),
	     EACH("limits/meters", "{Limit $limit applies the rates of override $override.src to this "
		  "source, {line $override.line|live}{ of $override.file}.$^}"),
	     EACH("limits", "{$limit counts per $bucket_depends_on, which was not given: another value "
		  "has another bucket.}"),
	     LINE("{\nFields that were not given and would change the verdict:$would_change?}"),
	     EACH("would_change", "{  and $more more|  $fields:options{ (matches $matches{, line $line})}: "
		  VERDICT("verdict.") "}")))

COMMAND(source_show, "source show", READS, "the state of a source in each limit",
	EXAMPLE("source show 203.0.113.7"),
	ARGS(ADDRESS),
	MORE("What it lost in the last 4 to 9 seconds, and by which limits: of an IPv6 source its /64, in a flood "
	     "an estimate (about). Used units and capacity, whether it is over, when its next packet passes: of a "
	     "source that is blocked or banned when that ends. For a limit in bytes, the next packet is assumed to be a "
	     "full frame. Up to 1% of the burst may be leased to CPUs, which is shown as used."),
	SHOW(LINE("$source"),
	     LINE(LATELY("packets", "dropped")),
	     LINE("exempt   {yes$exempt_until=always|until $exempt_until|no}"),
	     LINE("blocked  {yes$blocked_until=always|until $blocked_until|no}"),
	     LINE("banned   {yes$banned_until=always|until $banned_until|no}"),
	     LINE("{users    $http.users active, $http.well_behaved of them well-behaved, $http.requests "
		  "recent requests{; budget $http.budget_pps packets/s in $http.limit}}"),
	     LINE("{pushed   down: $http.push_down.step{ $http.push_down.rate}, rule "
		  "$http.push_down.rule, until $http.push_down.until{ (shadow)$http.push_down.shadow}}"),
	     LINE("\n"),
	     TABLE("limits", "no limits", COL("LIMIT", "$limit"),
		   COL("STATE", "$state{ (one bucket for all)$capacity?$shared}"),
		   COL(">USED", "{$used:n|-}"), COL(">OF", "{$capacity:n|-}"),
		   HIDE("UNIT", "{$capacity?$unit|-}", 1),
		   COL("NEXT PASSES", "{$wait_ns:wait|now$capacity?|-}"))))

COMMAND(source_list, "source list", READS, "who sends: the heaviest networks and sources now",
	EXAMPLE("source list --by bits --count 10"),
	ARGS(OPTION("by", "WHAT", "drops (without it), passes, bits or connections: the order",
		    .values = "drops passes bits connections"),
	     OPTION("within", "CIDR", "only sources of this prefix"),
	     OPTION("limit", "LIMIT", "only sources that this limit refused last",
		    .values = "@limit list"),
	     OPTION("interface", "IFACE", "only sources whose last packet came in here",
		    .values = "IFACE"),
	     OPTION("count", "COUNT", "at most so many; without it 20", .type = ARG_COUNT),
	     FLAG("all", "also light sources of a network, as with --within")),
	MORE("Over the last 4 to 9 seconds. An IPv6 source is a /64. Memory is bounded: of a flood the "
	     "packets are sampled, and light sources make room for others. The rates are lower bounds; in "
	     "JSON, `missed` is by how many packets the count may be too low. OPENED/S are TCP connections "
	     "that a source tried to open. STATE is what is done about the source apart from limits. "
	     "A network is a prefix with a tenth of what was dropped, passed, of the bytes or of the connections, "
	     "without sources and longer prefixes that have a tenth of their own, and with 8 sources or more; "
	     "those that sent less than 1% of it are not listed. ~ marks an estimate, of sources that made room "
	     "for others, too; + that there were more."),
	SHOW(TABLE_WHEN("networks", "networks", "", KEEP("NETWORK", "$source"),
			COL(">SOURCES", "$sources:n{+$estimated?}"),
			COL(">DROPPED/S", ESTIMATED("dropped.per_second")),
			COL(">PASSED/S", ESTIMATED("passed.per_second")),
			HIDE(">BIT/S", ESTIMATED("bits_per_second"), 4),
			SOME(">OPENED/S", ESTIMATED("opened_per_second"), 2), SOME("STATE", "{$state|-}", 3)),
	     EACH("networks", "{to block $source$^: $block}"), EACH("networks", "{to limit it to a tenth$^: $limit}"),
	     LINE_WHEN("networks", "\n"),
	     TABLE("sources", "no packets in the last seconds", KEEP("SOURCE", "$source"),
		   COL(">DROPPED/S", "$dropped.per_second:rate"),
		   COL(">PASSED/S", "$passed.per_second:rate"),
		   HIDE(">BIT/S", "$bits_per_second:rate", 4),
		   HIDE(">OPENED/S", "$opened_per_second:rate", 2),
		   COL("BY", "{$limit|$reason}"), HIDE(">USERS", "{$users.users|-}", 1),
		   HIDE("STATE", "{$state|-}", 3)),
	     LINE("{and $more:some more}"),
	     LINE("{$light:some light sources of the networks: --all lists them, too}")))

COMMAND(analyze, "analyze", READS, "is a limit effective: how much it refuses, whom, by how much; advice",
	EXAMPLE("analyze web"),
	ARGS(POSITION("limit", "LIMIT|RULE", ARG_TEXT, .optional = true, .values = "@limit list")),
	MORE("Of limits of packets and of rules of requests. REFUSED, of a limit that tags TAGGED, and its "
	     "share count since the counters began; NEAR are sources with 80% of the limit used now, of a rule the requests that left so "
	     "much used. JUST and FAR ABOVE are sources that the limit refused lately, and that sent less than 1.5 "
	     "times what the rate gives in that time, or more than twice; of those that sent no more than it gives, a "
	     "burst was refused, and the advice names one with which a token bucket, full at first, would have refused "
	     "none. Lately is of packets the last 4 to 9 s, and all packets of the source count; of a rule with "
	     "detailed_metric it is this minute and the one before, or its longest window and the one before, and the "
	     "fuller one is compared. A candidate is a "
	     "limit in shadow mode. Of packets it has the same match and the same per: it sees what the "
	     "enforced one passes, so it shows what a stricter rate or another algorithm would refuse in "
	     "addition; to try a laxer one, put the enforced limit into shadow mode, too. Of requests it is "
	     "a limit of the same rule, judged as if it stood there alone, so it may be laxer."),
	SHOW(TABLE("limits", "no limits", KEEP("LIMIT", "$name{ (shadow)$shadow}"),
		   COL(">REFUSED", "{$tagged?-|$refused:n}"),
		   SOME(">TAGGED", "{$tagged:n|-}", 5), COL(">SHARE", "{$tagged_share:percent2|$refused_share:percent2}"),
		   HIDE(">OF", "{$passed+tagged:n$tagged?|$passed+refused:n}", 2), HIDE(">OVER", "{$over:n|-}", 3), COL(">NEAR", "$near:n"),
		   HIDE(">JUST", "$just_above:n", 4), HIDE(">FAR ABOVE", "$far_above:n", 1)),
	     LINE("\n"),
	     EACH("limits", "$name: $advice"),
	     EACH("limits/candidates", "$name: in shadow mode{, would refuse $refused:n of $passed+refused:n "
		  "requests in place of the enforced limits$alone| beside it, would refuse $refused:some more of "
		  "what it passed}")))

COMMAND(watch, "watch", LOCAL, "source list each second, as JSON lines for pipes",
	EXAMPLE("watch --within 203.0.113.0/24 | jq .sources[0]"),
	ARGS(OPTION("by", "WHAT", "drops (without it), passes, bits or connections: the order",
		    .values = "drops passes bits connections"),
	     OPTION("within", "CIDR", "only sources of this prefix"),
	     OPTION("count", "COUNT", "at most so many; without it 20", .type = ARG_COUNT)),
	MORE("One object a line, as of source list -o json."))

COMMAND(top, "top", LOCAL, "the heaviest networks and sources on the whole terminal",
	EXAMPLE("top --at 14:03"),
	ARGS(OPTION("by", "WHAT", "drops (without it), passes, bits or connections: the order",
		    .values = "drops passes bits connections"),
	     OPTION("within", "CIDR", "only sources of this prefix"), AT("instead those of the past, from the history on disk: "),
	     TO, OPTION("count", "COUNT", "of the past at most so many; without it 20", .type = ARG_COUNT)),
	MORE("Keys: up and down select a source; s the next order; p a prefix to look at, empty for all; "
	     "l only those that one limit refused, i only those of one interface; f freezes; b blocks for ten minutes, e exempts for ten "
	     "minutes, each after y; x explains the next packet of the source; o lets an override of a "
	     "limit be typed; q ends. The bar is the bucket of the limit that refused the source last."))

COMMAND(events, "events", LOCAL, "what happens, as it happens: drops, bans, changes",
	EXAMPLE("events --last 20"),
	ARGS(EVENTS_WANTED, OPTION("last", "COUNT", "first so many that happened before", .type = ARG_COUNT),
	     OPTION("count", "COUNT", "end after so many", .type = ARG_COUNT),
	     OPTION("pcap", "FILE", "dropped packets as pcapng, - for standard output", .type = ARG_TEXT,
		    .values = "FILE")),
	MORE("A line for each event; with -o json an object a line. Drops are a sample: PACKETS is for how "
	     "many one stands. With --pcap the first 128 bytes of each sampled packet, with the verdict, "
	     "the reason and the limit as comment: sluicectl events --pcap - | tcpdump -r -"),
	SHOW(EVENT_LINES))

COMMAND(events_list, "events list", READS, "the last events",
	EXAMPLE("events list --count 5"),
	ARGS(EVENTS_WANTED, OPTION("count", "COUNT", "at most so many; without it 20", .type = ARG_COUNT),
	     OPTION("after", "SEQ", "only events after the one of this number", .type = ARG_COUNT),
	     FLAG("frames", "with the first bytes of packets, in hexadecimal")),
	MORE("Kept are the last 1024 drops, the last 256 each of over, released and refused, and 128 of each "
	     "other kind. The kinds: drop; over and released (a limit refuses a source, and it has "
	     "all of the limit again); ban and unban; pushdown and pushdown_end; block and unblock; "
	     "refused (by a rule of the HTTP tier); change (of the configuration)."),
	SHOW(TABLE("events", "nothing since $kept_since; what happened before that is not kept", COL("AT", "$at"), COL("KIND", "$kind"),
		   KEEP("SOURCE", "{$source|$rule $value|$rule|-}"), COL("LIMIT", "{$limit|-}"),
		   COL("REASON", "{$reason{: $detail}|$detail|-}"), HIDE("PACKET", "{$proto{ port $sport}|-}", 4),
		   HIDE("TO", "{$dst{ port $dport}|-}", 3), HIDE("IFACE", "{$interface|-}", 1),
		   HIDE(">PACKETS", "{$packets:n|-}", 2)),
	     LINE("{up to $missed:some events are not kept any more}"),
	     LINE("{such events are kept since $kept_since; --count shows more$events?}")))

COMMAND(why, "why", LOCAL, "why a source, or a value of a rule, was refused, at a time",
	EXAMPLE("why 198.51.100.7 --at 'yesterday 14:03'"),
	ARGS(POSITION("who", "SOURCE|RULE", ARG_TEXT), POSITION("value", "VALUE", ARG_TEXT, .optional = true),
	     AT("without it the last day; "), TO),
	MORE("From the history on disk: state changes, the first refusal by each limit, and by the minute "
	     "what dropped packets of the source; VALUE is of a rule of the HTTP tier. What "
	     "may be missing is given with its reason. What would happen now: explain."),
	SHOW(HISTORY_LINES))

COMMAND(history_read, "history read", READS, "the history of a source, or of a value of a rule",
	EXAMPLE("history read 198.51.100.7 --from 1772373780 --to 1772373840"),
	ARGS(POSITION("who", "SOURCE|RULE", ARG_TEXT), POSITION("value", "VALUE", ARG_TEXT, .optional = true),
	     OPTION("from", "SECONDS", "UTC since 1970", .type = ARG_COUNT, .needed = true),
	     OPTION("to", "SECONDS", "the end", .type = ARG_COUNT, .needed = true)),
	MORE("As why, for programs."), SHOW(HISTORY_LINES))

COMMAND(history_sources, "history sources", READS, "the heaviest sources of a time that is over",
	EXAMPLE("history sources --from 1772373780 --to 1772373840"),
	ARGS(OPTION("from", "SECONDS", "UTC since 1970", .type = ARG_COUNT, .needed = true),
	     OPTION("to", "SECONDS", "the end", .type = ARG_COUNT, .needed = true),
	     OPTION("by", "WHAT", "drops (without it), passes or bits: the order", .values = "drops passes bits"),
	     OPTION("count", "COUNT", "at most so many; without it 20", .type = ARG_COUNT)),
	MORE("As top --at, for programs."), SHOW(HEAVIEST_LINES))

COMMAND(limit_list, "limit list", READS, "limits in force",
	EXAMPLE("limit list --sort mode"),
	SHOW(TABLE("limits", "no limits", COL("LIMIT", "$name"),
		   HIDE("PER", "{$per{ $prefix.ipv4[/$]}{ $prefix.ipv6[/$]}|all sources}", 4),
		   COL("RATE", "{$rate|-}"), HIDE(">BURST", "{$rates[$burst:n]|-}", 3),
		   HIDE("ALGORITHM", "$algorithm", 2),
		   HIDE("ACTION", "$action{, $throttle:throttle}{, ban$ban?}", 1),
		   COL("MODE", "$mode"),
		   COL("NOTE", "{x$elastic.scale:scale, changed live$live|x$elastic.scale:scale|"
		       "changed live$live}"))))

COMMAND(limit_show, "limit show", READS, "a limit as YAML",
	EXAMPLE("limit show web"), ARGS(LIMIT("name")),
	SHOW(LINE("{# scale now $elastic.scale:scale of $elastic.ceiling:scale: $elastic.why}"),
	     VERBATIM("$yaml")))

COMMAND(limit_set, "limit set", CHANGES, "change a limit: rate='10 packets/s' mode=shadow",
	EXAMPLE("limit set web rate='20 packets/s' mode=shadow"),
	ARGS(LIMIT("name"), PAIRS),
	MORE("All of the pairs or none. Keys are those of sluice.yaml(5), nested ones with a dot "
	     "(match.dport=443,8000-8010), lists separated by commas (rate='10 packets/s,500 packets/h'); "
	     "a value that begins with a bracket is YAML (throttle='{soft: 10%}'); an empty value removes "
	     "the key."),
	SHOW(LINE("limit $name changed" CHANGED)))

COMMAND(limit_add, "limit add", CHANGES, "add the limits of a YAML file",
	EXAMPLE("limit add more.yaml"),
	ARGS(POSITION("yaml", "FILE|-", ARG_FILE, .path_key = "file")),
	MORE("One mapping, a list, or a mapping with limits. They come after all others: to put one, such as "
	     "a pass, before another, write it into the file."),
	SHOW(LINE("limit $added added" CHANGED), EACH("notes", "note: $")))

COMMAND(limit_del, "limit del", CHANGES, "remove a limit",
	EXAMPLE("limit del more"), ARGS(LIMIT("name")),
	SHOW(LINE("limit $name deleted" CHANGED)))

COMMAND(override_list, "override list", READS, "overrides of a limit, with their lines in the file",
	EXAMPLE("override list web"),
	ARGS(LIMIT("name"), AFTER),
	SHOW(TABLE("overrides", "no overrides", KEEP("SOURCE", "$src"), COL("RATE", "$rate"),
		   COL(">BURST", "{$burst}"),
		   COL("FROM", "{source_budget$derived|live$live|$file, line $line|line $line}"))))

COMMAND(override_set, "override set", CHANGES,
	"set rates for one source or prefix: rate='5000 packets/s' burst=9000",
	EXAMPLE("override set web 203.0.113.7 rate='5000 packets/s'"),
	ARGS(LIMIT("name"), POSITION("src", "SOURCE", ARG_TEXT), PAIRS),
	MORE("The rates of one source, or of each source of a prefix: rate and burst, lists separated by "
	     "commas. A key that is not given stays; an empty burst is the default."),
	SHOW(LINE("override of $src set in limit $limit" CHANGED)))

COMMAND(override_del, "override del", CHANGES, "remove an override",
	EXAMPLE("override del web 203.0.113.7"),
	ARGS(LIMIT("name"), POSITION("src", "SOURCE", ARG_TEXT)),
	MORE("That of a shorter prefix, or the rates of the limit, apply again."),
	SHOW(LINE("override of $src removed from limit $limit" CHANGED)))

COMMAND(block_list, "block list", READS, "blocked sources: expiry, origin, reason",
	EXAMPLE("block list"), ENTRIES)

COMMAND(block_add, "block add", CHANGES, "drop all packets of a source",
	EXAMPLE("block add 198.51.100.0/24 --for 10m --reason 'port scan'"),
	ARGS(ENTRY, FOR, REASON, FORCE), MORE("An entry for the same prefix is replaced."),
	SHOW(LINE("$prefix blocked {until $until|permanently}" CHANGED), LINE("{note: $note}")))

COMMAND(block_del, "block del", CHANGES, "remove from the blocklist",
	EXAMPLE("block del 198.51.100.0/24"), ARGS(LISTED("@block list")),
	SHOW(LINE("$prefix removed from the blocklist" CHANGED)))

COMMAND(block_load, "block load", CHANGES, "block the sources of a file, as entries of one origin",
	EXAMPLE("block load bad.txt --origin feed --replace"),
	ARGS(POSITION("prefixes", "FILE|-", ARG_PREFIX_FILE),
	     OPTION("origin", "NAME", "who lists them; without it 'file'"), FOR, REASON,
	     FLAG("replace", "withdraw what the origin listed before and the file does not"), FORCE),
	MORE("A line of the file is PREFIX [DURATION [REASON]], and # begins a comment; --for and --reason hold "
	     "for lines without; ten years are the longest. Lines that are not accepted are skipped and "
	     "listed; if they are more than half, nothing changes. Entries of an origin are beside "
	     "the configuration: they survive a restart, and reload, apply, rollback and save leave them "
	     "as they are. Where several origins list a source, it is blocked until the last of them ends."),
	SHOW(LINE("$origin: $added:n blocked, $changed:n changed, $removed:n withdrawn{; " UNSAVED "}"), SKIPPED))

COMMAND(block_withdraw, "block withdraw", CHANGES, "remove the entries of an origin",
	EXAMPLE("block withdraw feed"),
	ARGS(POSITION("origin", "NAME", ARG_TEXT),
	     POSITION("prefixes", "FILE|-", ARG_PREFIX_FILE, .optional = true)),
	MORE("With a file, those of its prefixes; else all. Entries of the file, of block add and of other origins stay."),
	SHOW(LINE("$origin: $removed:n withdrawn{; " UNSAVED "}"), SKIPPED))

COMMAND(exempt_list, "exempt list", READS, "exempt sources: expiry, origin, reason",
	EXAMPLE("exempt list"), ENTRIES)

COMMAND(exempt_add, "exempt add", CHANGES, "exempt a source from all limits",
	EXAMPLE("exempt add 192.0.2.10 --reason monitoring"),
	ARGS(ENTRY, FOR, REASON, FORCE), SHOW(LINE("$prefix exempt {until $until|permanently}" CHANGED)))

COMMAND(exempt_del, "exempt del", CHANGES, "remove from the exempt list",
	EXAMPLE("exempt del 192.0.2.10"), ARGS(LISTED("@exempt list")),
	SHOW(LINE("$prefix removed from the exempt list" CHANGED)))

COMMAND(set_list, "set list", READS, "sets and origins of blocks: size, age, source; or one set",
	EXAMPLE("set list"),
	ARGS(SET_NAME(.optional = true), AFTER),
	MORE("AGE is the time since the prefixes last changed, of a set with a file that of the file; "
	     "CHECKED is when the program that fetches them last succeeded. With NAME the prefixes of that "
	     "set."),
	SHOW(TABLE_WHEN("sets", "sets", "no sets", COL("SET", "$name"), COL(">PREFIXES", "$count:n"),
		   COL(">AGE", "{$age_ns:left|-}"), HIDE(">CHECKED", "{$checked_ns:left|-}", 1),
		   COL("FROM", "{$source|live$live|$file|file}"), COL("USED BY", "{$used_by|-}")),
	     LINE_WHEN("origins", "\n"),
	     TABLE_WHEN("origins", "origins", "no origin lists a source", COL("ORIGIN", "$name"),
		   COL(">PREFIXES", "$count:n"), COL(">AGE", "{$age_ns:left|-}"),
		   HIDE(">CHECKED", "{$checked_ns:left|-}", 1), COL("FROM", "{$source|-}")),
	     EACH("sets", "{$name: FAILED $failed_ns:left ago: $error}"),
	     EACH("sets", "{$name: skipped $skipped.count:n of $skipped.lines:n lines of $file, the first is line "
		  "$skipped.first}"),
	     EACH("origins", "{$name: FAILED $failed_ns:left ago: $error}"),
	     EACH("prefixes", "$")))

COMMAND(feed_report, "feed report", UPDATES, "of a program that fetches a list: it succeeded, or why it failed",
	EXAMPLE("feed report bad --source https://lists.example/bad.txt"),
	ARGS(SET_NAME(), OPTION("kind", "KIND", "set (without it), or origin: of blocks (block load)", .values = "set origin"),
	     OPTION("source", "URL", "where the list comes from; without it as before", .type = ARG_TEXT),
	     OPTION("error", "TEXT", "why it failed; without it it succeeded", .type = ARG_TEXT)),
	MORE("Shown by set list and status, and as metrics. The prefixes stay as they are."),
	SHOW(LINE("$name: {failed: $error|ok}")))

COMMAND(set_add, "set add", CHANGES, "add prefixes to a set; creates the set if needed",
	EXAMPLE("set add bad 198.51.100.7 203.0.113.0/28"),
	ARGS(SET_NAME(), PREFIXES, FORCE),
	MORE("They hold for every key that names the set: block, exempt, src and dst of limits. In a "
	     "blocked set, wide prefixes and own addresses need --force."),
	SHOW(LINE("set $name now has $count prefixes" CHANGED)))

COMMAND(set_del, "set del", CHANGES, "remove prefixes from a set",
	EXAMPLE("set del bad 198.51.100.7"), ARGS(SET_NAME(), PREFIXES),
	SHOW(LINE("set $name now has $count prefixes" CHANGED)))

COMMAND(set_replace, "set replace", CHANGES, "replace the prefixes of a set by those of a file",
	EXAMPLE("set replace bad bad.txt"),
	ARGS(SET_NAME(), POSITION("prefixes", "FILE|-", ARG_PREFIX_FILE), FORCE),
	MORE("The file has one prefix per line, and # begins a comment. Lines that are not accepted are "
	     "skipped and listed; if they are more than half, the set stays as it is."),
	SHOW(LINE("set $name now has $count prefixes" CHANGED), SKIPPED))

COMMAND(ban_list, "ban list", READS, "bans: source, limit, expiry, level, dropped packets",
	EXAMPLE("ban list --sort drops"),
	ARGS(AFTER),
	MORE("Level 0 is the first ban. Also ended bans whose level still counts. Users are values that a rule "
	     "of the HTTP tier bans: those among the 256 with the most recent refusals, as the table of "
	     "counters has hashes only. sluicectl user unban lifts such a ban."),
	SHOW(TABLE("bans", "no bans", KEEP("SOURCE", "$source"),
		   COL("LIMIT", "{$limit|(deleted)}{, node $node}"), HIDE("SINCE", "$since", 1),
		   HIDE("UNTIL", "$until", 2), COL("LEFT", "{$active?$left_ns:left|ended}"),
		   HIDE(">LEVEL", "$level", 3), COL(">DROPS", "$drops:n")),
	     TABLE_WHEN("user_states", "users", "no users that are banned and were refused lately",
			COL("RULE", "$rule"), COL("VALUE", "$value"), COL("LEFT", "$left_ns:left"),
			COL(">LEVEL", "$level")),
	     LINE("{$user_states:some values of rules have a ban, or the level of one, at the last sweep}")))

COMMAND(ban_del, "ban del", CHANGES, "lift a ban and reset its level",
	EXAMPLE("ban del 203.0.113.9"), ARGS(SOURCE(.values = "@ban list")),
	MORE("For an address, every ban that covers it; for a prefix, all bans within it. The drops that "
	     "led to the ban are reset, too."),
	SHOW(EACH("lifted", "lifted: $source")))

COMMAND(pushdowns_list, "pushdowns list", READS, "push-downs: source, action, rule, time left",
	EXAMPLE("pushdowns list"),
	ARGS(AFTER),
	MORE("The sources whose packets are refused at the network card for abuse of the HTTP tier: "
	     "action, rule and value, start and expiry, packets received and refused; and how often a "
	     "source was not pushed down, by reason."),
	SHOW(TABLE("pushdowns", "no push-downs", KEEP("SOURCE", "$source"),
		   COL("STEP", "$step{ $rate}{ (shadow)$shadow}"), COL("RULE", "$rule{, node $node}"),
		   HIDE("VALUE", "$value", 4), HIDE("SINCE", "$since", 1), COL("LEFT", "$left_ns:left"),
		   HIDE(">PACKETS", "$packets:n", 2), HIDE(">REFUSED", "$refused:n", 3)),
	     LINE("{\nnot pushed down, by reason: $refused:counts}")))

COMMAND(pushdowns_clear, "pushdowns clear", CHANGES, "remove push-downs (of one source, or all)",
	EXAMPLE("pushdowns clear"),
	ARGS(SOURCE(.optional = true, .values = "@pushdowns list")), MORE("The refusals that led to them are reset."),
	SHOW(LINE("push-downs removed: $cleared")))

COMMAND(cluster_show, "cluster show", READS, "nodes, cluster store, replication and quota",
	EXAMPLE("cluster show"),
	MORE("On a node with cluster: the servers of the cluster store and their state; the other nodes "
	     "and the age of the last message from each; refused messages by reason; blocks, bans and "
	     "push-downs of this node and of the others; leases, requests not yet flushed to the store, "
	     "lost by it and restored there; for each rule the largest overshoot of the last hour."),
	SHOW(LINE("node          $node, one of $nodes"),
	     LINE("{store clock   $clock_ahead_ns:offset from this machine's$clock_known?"
		  "{: every message is refused as too old$clock_ahead_ns:hour_behind}}"),
	     LINE("messages      $bus.sent sent, $bus.received received, $bus.dropped not sent"
		  "{; refused: $bus.refused:counts}"),
	     LINE("{ERROR         $bus.error}"),
	     LINE("{ERROR         another daemon uses the name of this node$bus.twice}"),
	     LINE("{ERROR         messages are signed with a secret other than "
		  "cluster.secret_file's$bus.strangers}"),
	     EACH("peers", "{DIFFERS       node $node since $differs.since: $differs.what}"),
	     EACH("replicated", "$@:label $own of its own, $received of other nodes"),
	     LINE("{quota         $quota.entries entries of $quota.room; leases $quota.leases with "
		  "$quota.credit requests; $quota.unflushed unflushed; $quota.lost lost by the store, "
		  "$quota.restored restored}"),
	     LINE("\n"),
	     TABLE("store.servers", "no server of the cluster store is known yet",
		   COL("SERVER", "$server{ (sentinel)$sentinel}"),
		   COL("STATE", "{up$up|not asked yet$idle|down, retried at intervals$breaker_open|connecting}"
		       "{: $error}")),
	     LINE("\n"),
	     TABLE("peers", "no message of another node was received", COL("NODE", "$node"),
		   COL("STATE", "{alive$alive|left$left|gone}"), COL(">LAG", "$lag_ns:ms"),
		   COL(">SILENT", "$silent_ns:seconds"), HIDE(">MESSAGES", "$messages:n", 1),
		   HIDE(">REFUSED", "$refused:n", 2), HIDE("VERSION", "$version", 3)),
	     LINE_WHEN("quota", "\n"),
	     TABLE_WHEN("quota", "rules", "no rule has limits of scope cluster", COL("RULE", "$rule"),
		   COL("CONSISTENCY", "$consistency"),
		   HIDE("STORE UNAVAILABLE", "$on_store_failure", 1),
		   COL(">OVERSHOOT", "$overshoot:percent2"))))

COMMAND(rule_list, "rule list", READS, "rules of the HTTP tier in force",
	EXAMPLE("rule list"),
	SHOW(TABLE("rules", "no rules", COL("RULE", "$rule"),
		   COL("LIMITS", "{$limits[$rate ($algorithm{, $calendar}{, $mode})]|unlimited}"),
		   HIDE(">OVERRIDES", "$overrides:n", 2), HIDE("FILE", "$file:$line", 1),
		   COL("NOTE", "{shadow$shadow, changed live$live|shadow$shadow|changed live$live}")),
	     LINE("{and $more:some more}")))

COMMAND(defer_list, "defer list", READS, "requests for later: the queue of each rule with on_limit: defer",
	EXAMPLE("defer list"),
	MORE("As of the last poll of Redis, of all nodes. Dead ones are entries of the stream "
	     "sluice:defer:{RULE}:dead (redis-cli XRANGE), with ticket, reference and reason."),
	SHOW(TABLE("rules", "no rule defers requests", COL("RULE", "$rule"), COL(">WAITING", "$waiting:n"),
		   COL(">RELEASED", "$released:n"), COL(">DEAD", "$dead:n"), COL(">FULL", "$sum.full:n"),
		   HIDE(">FAILED", "$failed:n", 1), HIDE(">AGE", "$age_ns:ms", 2),
		   COL("NOTE", "{Redis was not reached$unreached|lost if Redis stops: it has no append-only "
		       "file$not_durable}"))))

COMMAND(rule_show, "rule show", READS, "a rule as YAML",
	EXAMPLE("rule show api/user"), ARGS(RULE("name")),
	MORE("A rule is named DOMAIN/PATH, such as api/user."),
	SHOW(LINE("# $rule, $file:$line{, changed live$live}"), VERBATIM("$yaml")))

COMMAND(rule_set, "rule set", CHANGES, "change a rule: limits='10 requests/m,500 requests/h'",
	EXAMPLE("rule set api/user limits='10 requests/m,500 requests/h'"),
	ARGS(RULE("name"), PAIRS),
	MORE("Keys are named as in the rule's file. An empty value restores the default."),
	SHOW(LINE("rule $name changed" CHANGED)))

COMMAND(rule_test, "rule test", LOCAL, "the rule of a file that matches, its limits and counter keys",
	EXAMPLE("rule test -c rules --domain api --entries user=bob"),
	ARGS(OPTION("config", "FILE", "a configuration, a rule file or a directory of rule files",
		    .letter = 'c', .needed = true, .type = ARG_TEXT, .values = "FILE"),
	     OPTION("domain", "DOMAIN", "the domain of the request", .needed = true),
	     OPTION("entries", "KEY=VALUE,...", "its descriptor: user=bob,path=/x", .needed = true)),
	MORE("Needs no daemon."),
	SHOW(LINE("{rule        $rule ($file:$line){, shadow: never refuses$shadow}|no rule matches: the "
		  "request passes}"),
	     LINE("{            with the limits of an override$override}"),
	     LINE("{limit       unlimited$unlimited}"),
	     EACH("limits", "limit       $name: $rate, $algorithm{, $window}{, calendar $calendar}{, $at_once}{, $mode}{, all "
		  "nodes together ($consistency)}"),
	     EACH("counted_by/groups", "counted by  $key=$value{$scale=1|, $scale times the limit}"),
	     LINE("{domain      $domain.rule, which every request of the domain meets}"),
	     EACH("domain.limits", "limit       $name: $rate, $algorithm{, $window}{, calendar $calendar}{, $at_once}{, $mode}{, "
		  "all nodes together ($consistency)}")))

COMMAND(user_list, "user list", READS, "who requests: the values of rules with the most requests now",
	EXAMPLE("user list --by refused --count 10"),
	ARGS(OPTION("by", "WHAT", "requests (without it), refused or passed: the order",
		    .values = "requests refused passed"),
	     OPTION("rule", "RULE", "only values of this rule", .values = "@rule list"),
	     OPTION("count", "COUNT", "at most so many; without it 20", .type = ARG_COUNT)),
	MORE("Over the last 5 to 10 seconds. VALUE is as all commands take it, see user show; a longer one is "
	     "cut. Memory is bounded: values with few requests make room for others, and "
	     "beyond 1000 requests/s of a worker passed ones are sampled. In JSON, `missed` is by how many "
	     "requests the count may be too low."),
	SHOW(TABLE("users", "no requests in the last seconds", COL("RULE", "$rule"), KEEP("VALUE", "$value"),
		   COL(">PASSED/S", "$passed.per_second:rate"),
		   COL(">REFUSED/S", "$refused.per_second:rate"), HIDE("LAST", "$last", 1)),
	     LINE("{and $more:some more}")))

COMMAND(user_top, "user top", READS, "users with the most recent refusals in the HTTP tier",
	EXAMPLE("user top --count 5"),
	ARGS(OPTION("count", "COUNT", "at most so many; without it 20", .type = ARG_COUNT)),
	MORE("Over the last 5 to 10 minutes."),
	SHOW(TABLE("users", "no recent refusals", COL("RULE", "$rule"), COL("VALUE", "$value"),
		   COL(">REFUSED", "$refused:n"), HIDE("LAST", "$last", 1))))

COMMAND(user_show, "user show", READS, "what a value has left of the limits of a rule",
	EXAMPLE("user show api/user bob"),
	ARGS(RULE("rule"), VALUE_IF_ANY),
	MORE("Nothing is charged. What it lost is of the last 5 to 10 seconds, as in user list; about: requests were "
	     "sampled, or there are many values. VALUE is as user list prints it: of a rule with several keys a value for "
	     "each, separated by commas (bob,/search), in double quotes where it has a comma; those that the "
	     "rule itself has may be left out. Where values share one count it is their pattern. Of "
	     "DOMAIN/default it is KEY=VALUE[,KEY=VALUE]; DOMAIN/domain has none."),
	SHOW(LINE("$rule{ $value}{: unlimited$unlimited}"),
	     LINE(LATELY("requests", "refused")),
	     LINE("{banned, level $ban.level: $ban.left_ns:left left}"),
	     TABLE("limits", "no limits", COL("LIMIT", "$limit{ (shadow)$shadow}"),
		   COL("STATE", "{over$over|within}"), COL(">REMAINING", "$remaining"), COL(">OF", "$quota"), COL(">WINDOW", "{$window_s}s"),
		   HIDE("RESET IN", "{$reset_ms:time_ms|-}", 1),
		   COL("NEXT PASSES", "{in $retry_after_ms:time_ms|never$over|now}"))))

COMMAND(user_reset, "user reset", CHANGES, "reset the counters of a value",
	EXAMPLE("user reset api/user bob"),
	ARGS(RULE("rule"), VALUE_IF_ANY), SHOW(LINE("counters{ of $value} in rule $rule reset")))

COMMAND(user_unban, "user unban", CHANGES, "lift the ban of a value and reset its level",
	EXAMPLE("user unban api/user alice"),
	ARGS(RULE("rule"), VALUE_IF_ANY), MORE("The refusals that led to it are reset; on all nodes."),
	SHOW(LINE("{$value }{is no longer banned by $rule$banned|was not banned by $rule}")))

COMMAND(user_set, "user set", CHANGES, "set limits for one value: limits='1000 requests/m'",
	EXAMPLE("user set api/user bob limits='1000 requests/m' --for 1h"),
	ARGS(RULE("name"), VALUE, PAIRS, FOR),
	MORE("An override for a value, as user show takes it: limits, or rate and burst."),
	SHOW(LINE("$value has its own limits in $rule{ until $until}" CHANGED)))

COMMAND(user_unset, "user unset", CHANGES, "remove the override of a value",
	EXAMPLE("user unset api/user bob"),
	ARGS(RULE("name"), VALUE),
	MORE("Also one from the files: the limits of the rule apply again."),
	SHOW(LINE("$value has the limits of $rule" CHANGED)))

COMMAND(user_block, "user block", CHANGES, "refuse all requests of a value",
	EXAMPLE("user block api/user mallory --for 1h"),
	ARGS(RULE("name"), VALUE, FOR),
	MORE("From the next request on, on this node. Of a rule with several keys requests with all of these "
	     "values: user block api/user/path=/search bob,/search."),
	SHOW(LINE("$value is refused by $rule{ until $until}" CHANGED)))

COMMAND(user_exempt, "user exempt", CHANGES, "exempt a value from the rule",
	EXAMPLE("user exempt api/user carol"),
	ARGS(RULE("name"), VALUE, FOR),
	SHOW(LINE("$value is not limited by $rule{ until $until}" CHANGED)))

COMMAND(load_signal_list, "load-signal list", READS, "load signals that elastic limits use",
	EXAMPLE("load-signal list"),
	SHOW(TABLE("load_signals", "no limit uses a load signal", COL("NAME", "$name"),
		   COL(">VALUE", "{$value:scale|not set}"), COL("LEFT", "{$left_ns:left_up|-}"),
		   COL("FROM", "{$from|outside}"),
		   COL("LIMITS", "$limits"))))

COMMAND(load_signal_set, "load-signal set", UPDATES, "report a load signal: 0.63 or 63%",
	EXAMPLE("load-signal set api-load 63% --for 10s"),
	ARGS(POSITION("name", "NAME", ARG_TEXT, .values = "@load-signal list"),
	     POSITION("value", "VALUE", ARG_LOAD),
	     OPTION("for", "DURATION", "how long it is valid; without it 10s")),
	MORE("A load value is not a configuration change: it does not survive a restart of the daemon."),
	SHOW(LINE("$name is $value for $left_ns:left_up")))

COMMAND(attach, "attach", CHANGES, "attach to an interface and limit its packets",
	EXAMPLE("attach s1 --mode generic"),
	ARGS(POSITION("interface", "IFACE", ARG_TEXT, .values = "IFACE"),
	     OPTION("mode", "MODE", "auto, native or generic", .values = "auto native generic")),
	SHOW(LINE("$interface attached, $mode" CHANGED)))

COMMAND(detach, "detach", CHANGES, "detach from an interface, or from all and stop",
	EXAMPLE("detach s1"),
	ARGS(POSITION("interface", "IFACE", ARG_TEXT, .either = true, .values = "IFACE"),
	     FLAG("all", "every interface: removes all kernel state and stops sluiced", .either = true)),
	MORE("An interface stays detached after a restart of the daemon. With --all the next start follows "
	     "the configuration."),
	SHOW(LINE("{$interface detached" CHANGED "}"),
	     LINE("{all interfaces detached, all kernel state removed; sluiced exits$stopping}")))

COMMAND(check, "check", LOCAL, "check a configuration file",
	EXAMPLE("check new.yaml"),
	ARGS(POSITION("file", "FILE", ARG_TEXT, .values = "FILE")),
	MORE("Reads and compiles it, without a daemon and without root."),
	SHOW(LINE("$file: good: $interfaces interface{$interfaces=1|s}, $limits limit{$limits=1|s}, $block "
		  "blocked, $exempt exempt{, $rules rule{$rules=1|s}}"),
	     EACH("notes", "note: $")))

COMMAND(replay, "replay", LOCAL, "what a configuration would do with a capture or an access log",
	EXAMPLE("replay flood.pcap -c new.yaml"),
	ARGS(POSITION("input", "CAPTURE|LOG|-", ARG_TEXT, .values = "FILE"),
	     OPTION("config", "FILE", "the configuration; of logs also rule files", .letter = 'c', .needed = true, .values = "FILE"),
	     OPTION("compare", "FILE", "another one: whom it would refuse in addition, and whom it would spare",
		    .values = "FILE"),
	     OPTION("filter", "EXPR", "only packets that match, in the syntax of tcpdump: 'dst host 192.0.2.1'"),
	     OPTION("domain", "DOMAIN", "of lines of a log that name none; without it that of the rules"),
	     OPTION("html", "FILE", "also a page with charts, which opens offline", .values = "FILE"),
	     OPTION("interface", "IFACE", "where packets come in; without it the first of the configuration"),
	     FLAG("enforce", "as if limits in shadow mode were enforced"),
	     OPTION("count", "COUNT", "entries of each list; without it 10", .type = ARG_COUNT)),
	MORE("Reads pcap and pcapng; and logs: JSON as http.syslog receives it, nginx's combined, HAProxy's "
	     "httplog, Envoy's default format; all also compressed by gzip. Needs no daemon and no root. It "
	     "compiles the configuration as the daemon does, and judges each packet or request at its own time by the "
	     "code of the data path, or of decisions. A line without descriptors becomes source, path, user, and user "
	     "with path. USED is the largest share of a limit that was in use, PEAK/S the count of the fullest "
	     "second. Capture what arrives: a packet that this host sent is judged, too, unless "
	     "--filter or a cooked capture (tcpdump -i any) leaves it out. A damaged input is judged up to the "
	     "damage; then the exit status is 1."),
	SHOW(LINE("$input: $count:n $unit{, $bytes:n bytes}, in $span_ns:time{ from $from}"),
	     LINE("{DAMAGED   $damage}"),
	     LINE("passed    $totals.passed:n, refused $totals.refused:n{, tagged $totals.tagged:some}"
		  "{, delayed $totals.delayed:some}"),
	     LINE("{compared  passed $compare_totals.passed:n, refused $compare_totals.refused:n with $compare}"),
	     VERBATIM("{passed    $timeline.passed_bars}"),
	     VERBATIM("{refused   $timeline.refused_bars}"),
	     VERBATIM("{compared  $timeline.compare_bars}"),
	     LINE("          a bar is $timeline.bar_ns:time"),
	     LINE("\n"),
	     TABLE("limits", "no limits", COL("LIMIT", "$name"), HIDE("MODE", "$mode", 4),
		   HIDE("RATE", "$rate", 3), SOME(">PASSED", "$passed:n", 5), SOME(">REFUSED", "$refused:n", 5),
		   SOME(">TAGGED", "{$tagged:n|-}", 1), SOME(">SHADOW", "{$shadow:n|-}", 2),
		   SOME(">DELAYED", "{$delayed:n|-}", 1), SOME(">BANS", "{$bans:some|-}", 1)),
	     LINE_WHEN("reasons", "\n"),
	     TABLE_WHEN("reasons", "reasons", "no packets", COL("VERDICT", "$verdict"), COL("REASON", "$reason"),
		   COL(">PACKETS", "$packets:n")),
	     LINE("\nThe heaviest"), REPLAYED("heaviest", "none"),
	     LINE("\nRefused most"), REPLAYED("refused", "none was refused"),
	     LINE("\nNever refused, and nearest to a limit"), REPLAYED("nearest", "none came near one"),
	     LINE_WHEN("compare", "\nRefused more with the other configuration"),
	     COMPARED("hurt", "none"),
	     LINE_WHEN("compare", "\nRefused less with it"), COMPARED("spared", "none"),
	     EACH("notes", "note: $")))

COMMAND(suggest_limits, "suggest", LOCAL, "limits that fit the traffic there is, in shadow mode",
	EXAMPLE("suggest --from flood.pcap"),
	ARGS(OPTION("from", "FILE", "a capture or an access log; without it live traffic", .values = "FILE"),
	     OPTION("for", "DURATION", "how long to look at live traffic; without it 1m"),
	     OPTION("share", "PERCENT", "of the sources or values, how many a limit may touch; without it 0.1%"),
	     OPTION("filter", "EXPR", "of a capture only packets that match"),
	     OPTION("domain", "DOMAIN", "of lines of a log that name none; without it api"),
	     OPTION("write", "FILE", "put the limits into this configuration, in shadow mode; the file before "
		    "stays as FILE.bak", .values = "FILE")),
	MORE("Quantiles of the fullest second of each source and of each /24 and /48, or of the fullest minute of "
	     "each value in a log, and the limit above which at most the share lies. Up to 65536 subjects are all "
	     "counted; of more a uniform sample is, and the share is exact to 0.8% with 95% confidence. Live, it "
	     "needs the daemon, which knows the heaviest sources and values of rules, and means of 4 to 10 s. Nothing is enforced: see "
	     "sluicectl analyze for what a limit in shadow mode would have refused."),
	SHOW(LINE("$input: {$count:n packets or requests|$looks looks}, in $span_ns:time"),
	     LINE("{DAMAGED  $damage}"),
	     TABLE("groups", "no traffic", COL("PER", "$group"), COL("UNIT", "$unit"),
		   COL(">SUBJECTS", "$subjects:n"), HIDE(">P50", "$p50:n", 3), HIDE(">P90", "$p90:n", 2),
		   COL(">P99", "$p99:n"), HIDE(">P99.9", "$p999:n", 1), COL(">MOST", "$most:n"),
		   COL(">LIMIT", "{$rate:some|-}"), COL(">TOUCHED", "{$touched:percent2|-}")),
	     EACH("apart", "$source{$sources=1|, a network of $sources:n sources,} sent $share:percent of the packets{, $times:n times "
		  "as many as any other of its size}. To block it: sluicectl block add $source --for 10m"),
	     LINE_WHEN("apart", "{That may be an attack, whose rate is no limit: LIMIT is of the others.$yaml?|That may be an "
		  "attack, and there is no other traffic: no limit is proposed.}"),
	     EACH("groups", "{$group: $sampled:n of them were sampled, so shares are within $error:percent2 with 95% confidence}"),
	     LINE("{$left_out:some descriptors are of further groups and were left out}"),
	     VERBATIM("\n{$yaml}"),
	     VERBATIM("{# rules\n$rules}"),
	     LINE("{written to $written, in shadow mode: sluicectl reload puts it in force, sluicectl analyze shows "
		  "what it would refuse}")))

COMMAND(diff, "diff", READS, "live changes and changed files, or what FILE would change",
	EXAMPLE("diff new.yaml"),
	ARGS(POSITION("text", "FILE|-", ARG_FILE, .path_key = "path", .optional = true)),
	MORE("Exits with 4 if there are any. Files are the configuration and those that it names, and rule "
	     "files. With FILE it compares the running configuration with it, both "
	     "as sluice writes them, in the format of diff -u; that needs root or control.group."),
	SHOW(EACH("differing", "$file: $why"),
	     TABLE("changes", "no live changes",
		   HIDE("WHEN", "$when", 1), HIDE("UID", "$uid", 2), COL("CHANGE", "$op"),
		   COL("TO", "{$name $prefix|$name|$prefix|$interface}{ $value}{ $reason}{ $pairs}{ $prefixes}"))))

COMMAND(apply, "apply", CHANGES, "run FILE instead of the configured file",
	EXAMPLE("apply new.yaml --confirm 2m"),
	ARGS(POSITION("text", "FILE|-", ARG_FILE, .path_key = "path"),
	     OPTION("confirm", "DURATION", "1s to 1h: revert unless confirmed in time"),
	     FLAG("discard_live", "drop live changes")),
	MORE("Until reload, save or rollback, also across restarts. Live changes stay on top. With "
	     "--confirm the previous rules return unless confirm is run in time, even if sluiced is "
	     "killed; until then other changes are refused."),
	SHOW(LINE("applied $file: $limits limits, generation $generation" CHANGED), FILE_NOTES,
	     LINE("{NOT CONFIRMED: reverts at $confirm_until unless 'sluicectl confirm' is run before}")))

COMMAND(confirm, "confirm", CHANGES, "keep what was applied with --confirm",
	EXAMPLE("confirm"),
	SHOW(LINE("confirmed: $file stays in force" CHANGED)))

COMMAND(rollback, "rollback", CHANGES, "undo the last change; repeat for up to ten changes",
	EXAMPLE("rollback"),
	MORE("A change of any kind. One that waits for confirmation is reverted at once."),
	SHOW(LINE("undid: $undid; generation $generation" CHANGED), FILE_NOTES))

COMMAND(rollback_list, "rollback list", READS, "changes that rollback would undo, the next one first",
	EXAMPLE("rollback list"),
	SHOW(TABLE("changes", "no change to undo", COL("WHEN", "$when"), HIDE("UID", "$uid", 1),
		   COL("CHANGE", "$what"))))

COMMAND(reload, "reload", CHANGES, "read the file again and keep live changes",
	EXAMPLE("reload"),
	SHOW(LINE("reloaded $file: $limits limits, generation $generation" CHANGED), FILE_NOTES))

COMMAND(save, "save", CHANGES, "write live changes to the file",
	EXAMPLE("save"),
	MORE("The previous file is kept as FILE.bak. Only lines with changes are written; comments stay."),
	SHOW(LINE("saved $saved live changes to $file (previous file: {$file}.bak)")))

COMMAND(doctor, "doctor", LOCAL, "what keeps limits from holding on this host, and what mends it",
	EXAMPLE("doctor --why"),
	ARGS(OPTION("config", "FILE", "the configuration; without it that of the daemon, or "
		    "/etc/sluice/sluice.yaml", .letter = 'c', .type = ARG_TEXT, .values = "FILE"),
	     FLAG("why", "why each check matters, also those that are ok")),
	MORE("Kernel, BPF, privileges and clocks; the daemon, its configuration, table, listeners and "
	     "cluster; of each interface driver, queues, offloads, MTU and other XDP programs. Each line is "
	     "ok, warn, bad or unknown, with what was found; if not ok, why it matters and what mends it. "
	     "Changes nothing. Works without a daemon and without root, as far as it can. Exits with 0 if "
	     "nothing is wrong, 1 with a warning, 2 if something is bad."))

COMMAND(version, "version", LOCAL, "the version",
	EXAMPLE("version"), SHOW(LINE("sluicectl $version")))

COMMAND(help, "help", LOCAL, "all commands, or one in full",
	EXAMPLE("help limit"),
	ARGS(POSITION("command", "COMMAND", ARG_WORDS, .optional = true),
	     FLAG("mdoc", "the commands as they stand in sluicectl(8)"),
	     FLAG("keys", "the keys of the configuration as they stand in the documents")))

COMMAND(completion, "completion", LOCAL, "completion for a shell",
	EXAMPLE("completion bash"),
	ARGS(POSITION("shell", "SHELL", ARG_TEXT, .values = "bash zsh")),
	MORE("Prints a script: source <(sluicectl completion bash), or into a file of "
	     "/etc/bash_completion.d; for zsh into a file _sluicectl of $fpath."))
/* clang-format on */
