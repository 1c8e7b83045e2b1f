"""Servers that follow a script: a process, over HTTP, in memory; and what a client has left."""
