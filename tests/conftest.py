"""What every test shares: a fixed Hypothesis profile, and signals that are not ignored.

A run says the same thing twice, wherever it is started from.

`--hypothesis-profile=search` looks for new examples instead; it is not part of `make test`.
"""

import signal

from hypothesis import HealthCheck, settings

# A shell starts what runs in its background with SIGINT ignored, and so would every program the
# tests start: those about Ctrl-C would then wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: it is a wall clock. No database: the outcome would depend on earlier runs.
settings.register_profile("fixed", deadline=None, derandomize=True, database=None)
settings.register_profile(
    "search",
    deadline=None,
    max_examples=5_000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fixed")
