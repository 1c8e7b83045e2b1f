"""Failures of other clients, tried on this one: the scripted peers fail as was reported."""
