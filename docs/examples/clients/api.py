# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A client that waits as long as a limited API asks, and a random time more."""

import random
import time
import urllib.error
import urllib.request


def api(request, tries=10):
    """urllib's response to a request or URL, once the API allows it."""
    for attempt in range(tries):
        try:
            return urllib.request.urlopen(request)
        except urllib.error.HTTPError as error:
            after = error.headers.get("Retry-After")
            if error.code not in (429, 503) or after is None or attempt == tries - 1:
                raise
        # and up to 1, 2, 4... 32 s more
        time.sleep(int(after) + random.uniform(0, 2 ** min(attempt, 5)))
