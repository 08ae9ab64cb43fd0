#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""recipes.py RECIPE URL: does what a recipe's callers do, many at once, and prints what happened."""
import http.client
import json
import sys
import threading
import time

host, port = sys.argv[2].split("//")[1].split(":")


class Caller:
    def __init__(self, timeout=20):
        self.connection = http.client.HTTPConnection(host, int(port), timeout=timeout)

    def post(self, path, body, **headers):
        self.connection.request("POST", path, json.dumps(body), headers)
        response = self.connection.getresponse()
        response.read()
        return response.status

    def check(self, domain, *descriptors, wait="0"):
        headers = {"X-Sluice-Wait": wait} if wait else {}
        return self.post("/v1/check", call(domain, descriptors, 1), **headers) == 200

    def refund(self, domain, *descriptors):
        assert self.post("/v1/report", [call(domain, descriptors, -1)]) == 202


def call(domain, descriptors, hits):
    return {"domain": domain, "descriptors": [
        {"entries": [{"key": k, "value": v} for k, v in d], "hits": hits} for d in descriptors]}


def together(count, run):
    """run(caller, i) for each i below count, all at the same moment; the results."""
    results, gate = [None] * count, threading.Barrier(count)

    def one(i):
        caller = Caller()
        caller.connection.connect()
        gate.wait()
        results[i] = run(caller, i)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def login(account, kind, source):
    return [("source", source)], [("account", account), ("source", source)], [(kind, account)]


def guess(caller, account, kind, source, right=False, wait="0"):
    about = login(account, kind, source)
    if not caller.check("login", *about, wait=wait):
        return False
    if right:
        caller.refund("login", *about)
    return True


def recipe_login():
    owner = []
    done = threading.Event()

    def log_in():
        caller = Caller()
        while not done.is_set():
            owner.append(guess(caller, "bob", "known", "192.0.2.7", right=True))

    thread = threading.Thread(target=log_in)
    thread.start()
    # A thousand sources, twenty at a time.
    reached = sum(sum(together(20, lambda caller, i: guess(
        caller, "bob", "unknown", "198.51.%d.%d" % (n, i)))) for n in range(50))
    done.set()
    thread.join()
    print("of 1000 sources' guesses reached the application:", reached)
    print("the owner was refused:", owner.count(False), "of some:", len(owner) > 50)
    one = Caller()
    print("another account from an unknown source:", guess(one, "eve", "unknown", "192.0.2.8"))
    print("one source, many accounts:", sum(guess(one, "u%d" % i, "unknown", "2001:db8::%x" % i) for i in range(60)))
    print("one account, one source:", sum(guess(one, "al", "known", "192.0.2.9") for i in range(20)))
    # Without X-Sluice-Wait requests over the rate wait for their turn, minutes; those whose turn is too
    # late are refused.
    answers = []

    def wait(i):
        try:
            answers.append(guess(Caller(2), "bob", "unknown", "203.0.113.%d" % i, wait=None))
        except TimeoutError:
            answers.append("waits")

    threads = [threading.Thread(target=wait, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("wait:", answers.count("waits"), "refused:", answers.count(False))


def recipe_failures():
    user = [("user", "bob")]
    print("of 50 wrong guesses at once pass:", sum(together(50, lambda caller, i: caller.check("failures", user))))
    one, good = Caller(), [("user", "good")]
    passed = 0
    for _ in range(30):
        if one.check("failures", good):
            passed += 1
            one.refund("failures", good)
    print("of 30 right ones:", passed)
    print("then wrong ones:", sum(one.check("failures", good) for _ in range(10)))


def recipe_plans():
    one = Caller()
    for plan, user in ("free", "bob"), ("pro", "bob"), ("pro", "acme"), ("odd", "bob"):
        passed = sum(one.check("plans", [("plan", plan), ("user", user)]) for _ in range(300))
        print(plan, user, "more than 200" if passed > 210 else passed)


def recipe_endpoints():
    one = Caller()
    for path in "/export", "/search", "/static/x", "/a", "/b":
        print(path, sum(one.check("endpoints", [("user", "bob"), ("path", path)]) for _ in range(30)))


def recipe_hybrid():
    one = Caller()
    print("a user:", sum(one.check("hybrid", [("source", "192.0.2.1")], [("user", "bob")]) for _ in range(30)))
    print("elsewhere:", sum(one.check("hybrid", [("source", "192.0.2.2")], [("user", "bob")]) for _ in range(2)))
    office = sum(together(10, lambda caller, i: sum(caller.check(
        "hybrid", [("source", "192.0.2.3")], [("user", "office%d" % i)]) for _ in range(15))))
    print("an office:", "100" if 100 <= office <= 110 else office)


def recipe_tokens():
    """Twelve calls that cost 300 of 1000 tokens each, by reports and as Envoy and AI gateways charge."""
    def served(user, charge):
        caller, count = Caller(), 0
        while count < 12 and caller.post("/v1/check", call("llm", [[("user", user)]], 0)) == 200:
            charge(caller, user)
            count += 1
        return count

    def report(caller, user):
        assert caller.post("/v1/report", [call("llm", [[("user", user)]], 300)]) == 202

    def should_rate_limit(hits):
        return lambda caller, user: caller.post("/json", {"domain": "llm", "descriptors": [
            {"entries": [{"key": "user", "value": user}], "hits_addend": hits}]})

    print("reported:", served("bob", report))
    print("charged by Envoy:", served("al", should_rate_limit(300)))
    print("larger than the budget:", served("eve", should_rate_limit(1500)))
    print("within it:", served("zoe", should_rate_limit(1)))


def recipe_priority():
    """Three seconds of analytics as fast as they go, beside payments at 10 a second."""
    lost, analytics, done = [], [0], threading.Event()

    def hammer(caller, i):
        while not done.is_set():
            analytics[0] += caller.check("database", [("database", "main")], [("job", "analytics")])

    def pay():
        caller, paid = Caller(), 0
        while paid < 30:
            time.sleep(0.1)
            paid += 1
            lost.append(not caller.check("database", [("database", "main")], [("job", "payments")]))
        done.set()

    payer = threading.Thread(target=pay)
    payer.start()
    together(4, hammer)
    payer.join()
    print("payments lost:", sum(lost), "of", len(lost))
    print("analytics had work to do:", analytics[0] > 50)


globals()["recipe_" + sys.argv[1]]()
