"""Servers of other libraries, run with these and not with ours."""
