#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
terms.py - finds words that docs/glossary.md retired, where a script can tell: FILE:LINE: word: use this; exit 1.

Identifiers are looked for in code (C without comments and strings); phrases in docs, and in comments
and messages of code.
"""
import re
import subprocess
import sys

# Parts of an identifier, by where they stand: regex of whole identifiers -> what to use.
IDENTIFIERS = [
    (r"shares?_(?!threshold|of$|permille|one$|wait).*|struct shares", "quota"),
    (r"shared_.*|SHARED_.*", "cluster_store"),
    (r"SHARE_(?!ONE$).*|SHARES_.*", "QUOTA"),
    (r"spread_.*|SPREAD_.*", "replication"),
    (r"usage_(?!error$).*|USAGE_.*|dp_usage.*", "consumption"),
    (r"behind_.*|redis_behind.*", "persist"),
    (r"recall_.*", "refusal_cache, or restore"),
    (r"strike_.*|STRIKE_.*", "offense"),
    (r"CALL_(?!US).*|json_call.*|spoe_call.*|query_call.*", "request"),
    (r"SL_NO_ROW|SL_ROWS?_.*|ROW_.*|rows_(?!of_text).*", "meter"),
    (r"SL_WORDS?_.*|DP_WORDS_.*|dp_words?.*|(charge|lease|sl_[a-z]+)_word", "bucket state"),
    (r".*_?give_?back.*|.*_?put_back.*|.*uncharge.*|.*untake.*", "refund, restore"),
    (r"SL_MET_.*|sl_met(?!a).*|map_met", "established"),
    (r"SL_SLOTS?(_.*)?|sl_slot_.*|limit_of_slot", "limit_id"),
    (r"sl_(.*_)?(dead|weight)", "expired, utilization"),
    (r".*forgiven.*", "evicted_units"),
    (r".*_standing|.*_world", "profile, callbacks"),
    (r".*ladder.*|.*LADDER.*", "prefix hierarchy"),
    (r"waits_.*|wait_(heap|queue|place|worker|timer|enter|leave).*|max_waiting", "delay, delayed"),
    (r"TROUBLE_.*|.*_trouble.*", "error, error class"),
    (r"NODE_(LIST|MAP|TEXT)|node_(append|find|is_null|remove)", "yaml_node"),
    (r"(.*_)?hear_.*|.*_hear|heard_.*", "receive"),
    (r"front_(?!end).*", "frontend"),
]
# An identifier that is right where its word means something else.
ALLOWED = {
    "cpu_times_share",
}
# Phrases in docs, and in comments and messages of code.
PHRASES = [
    (r"\bwhoever\b|\bwhosoever\b", "a concrete subject: the client, the node"),
    (r"\b(tells?|told|telling)\b(?! apart)", "reports, flushes, publishes, sends"),
    (r"\b(hears?|heard)\b", "receives"),
    (r"\b(takes?|took|taken) (it|them|that|what \w+ \w+)? ?back\b", "refunds, withdraws"),
    (r"\b(gives?|gave|given) (it|them|that)? ?back\b", "refunds"),
]
CODE = re.compile(r'(//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\')', re.S)
WORD = re.compile(r"[A-Za-z_]\w*")


def files():
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True)
    return [f for f in listed.stdout.split("\n") if f and "corpus/" not in f]


def code_only(text):
    """The same lines without comments and strings."""
    return CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def lines_of(path, text):
    """The text that a person reads: of C what stands in comments and strings."""
    if path.endswith((".c", ".h")):
        text = "".join(part if n % 2 else re.sub(r"[^\n]", " ", part)
                       for n, part in enumerate(CODE.split(text)))
    return enumerate(text.split("\n"), 1)


def read(path):
    try:
        with open(path, encoding="utf-8") as source:
            return source.read()
    except (FileNotFoundError, IsADirectoryError, UnicodeDecodeError):
        return ""


def identifiers(paths):
    rules = [(re.compile(r"(?:" + regex + r")\Z"), use) for regex, use in IDENTIFIERS]
    known, found = {}, 0
    for path in paths:
        if not path.endswith((".c", ".h", ".lua")):
            continue
        for number, line in enumerate(code_only(read(path)).split("\n"), 1):
            for word in WORD.findall(line):
                if word not in known:
                    known[word] = None if word in ALLOWED else next(
                        (use for regex, use in rules if regex.match(word)), None)
                if known[word]:
                    print(f"{path}:{number}: '{word}' is retired: use {known[word]}")
                    found += 1
    return found


def phrases(paths):
    rules = [(re.compile(regex, re.I), use) for regex, use in PHRASES]
    found = 0
    for path in paths:
        if not path.endswith((".c", ".h", ".md", ".8", ".5", ".sh", ".yaml")) or "/decisions/" in path:
            continue
        for number, line in lines_of(path, read(path)):
            for regex, use in rules:
                for match in regex.finditer(line):
                    print(f"{path}:{number}: '{match[0]}': use {use}")
                    found += 1
    return found


paths = files()
sys.exit(1 if identifiers(paths) + phrases(paths) else 0)
