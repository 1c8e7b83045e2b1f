"""Carry messages between a server and its peers: bytes in, bytes out, nothing decided here.

A transport takes a `ServerPort` (see `raxol_mcp.transports.base`) and never imports the server.
Import the one you need from its own module, so that the others cost nothing at start-up.
"""
