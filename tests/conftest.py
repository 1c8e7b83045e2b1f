"""What every test shares: a fixed Hypothesis profile, so that a run says the same thing twice.

`--hypothesis-profile=search` looks for new examples instead; it is not part of `make test`.
"""

from hypothesis import HealthCheck, settings

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
