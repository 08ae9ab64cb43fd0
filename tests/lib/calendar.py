#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
calendar.py SEED COUNT - windows of calendars by Python's zoneinfo, for tests/prop/test_calendar.c:
"ZONE UNIT INSTANT BEGIN END", in seconds since 1970. A window begins at the first minute whose local
time is its first midnight or later; all minutes around it are looked at, no rule of zones is used.
"""
import datetime
import functools
import random
import sys
import zoneinfo

ZONES = """UTC Europe/Berlin America/New_York Asia/Kolkata Pacific/Apia Africa/Casablanca America/Sao_Paulo
America/Toronto America/Havana Africa/Cairo Asia/Beirut Pacific/Kwajalein Antarctica/Vostok Atlantic/Azores
Australia/Lord_Howe Europe/Dublin Asia/Kathmandu""".split()
UNITS = ["day", "week", "month", "year"]
UTC = datetime.timezone.utc
DAY = datetime.timedelta(1)


def first_day(unit, day):
    if unit == "week":
        return day - day.weekday() * DAY
    return day.replace(day=1 if unit != "day" else day.day, month=1 if unit == "year" else day.month)


def after(unit, day):
    return first_day(unit, day + {"day": 1, "week": 7, "month": 31, "year": 366}[unit] * DAY)


@functools.cache
def begin(zone, day):
    midnight = datetime.datetime(day.year, day.month, day.day)
    at = midnight.replace(tzinfo=UTC) - datetime.timedelta(hours=16)
    while at.astimezone(zone).replace(tzinfo=None) < midnight:
        at += datetime.timedelta(minutes=1)
    return int(at.timestamp())


def window(zone, unit, instant):
    day = first_day(unit, datetime.datetime.fromtimestamp(instant, UTC).date() - 2 * DAY)
    while begin(zone, after(unit, day)) <= instant:
        day = after(unit, day)
    return begin(zone, day), begin(zone, after(unit, day))


def instants(rng, name, zone, count):
    for _ in range(count):
        # From 1973 on all offsets are whole minutes.
        day = datetime.date(1973, 1, 1) + rng.randrange(365 * 130) * DAY
        yield begin(zone, first_day(rng.choice(UNITS), day)) + rng.randrange(-7200, 7200) * rng.randrange(2)
    if name == "Pacific/Apia":  # it had no 2011-12-30
        yield from (1325203200 + s for s in (-86400, -36001, 35999, 36000, 86400))


def main():
    rng = random.Random(int(sys.argv[1]))
    for name in ZONES:
        zone = zoneinfo.ZoneInfo(name)
        for instant in instants(rng, name, zone, int(sys.argv[2])):
            unit = rng.choice(UNITS)
            print(name, unit, instant, *window(zone, unit, instant))


main()
