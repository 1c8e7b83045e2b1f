"""Failures of other servers, tried on this one: `docs/cases.md` says which and where."""
