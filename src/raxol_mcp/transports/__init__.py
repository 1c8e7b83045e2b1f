"""Carry messages between a server and its peers: bytes in, bytes out, nothing decided here.

A server's takes a `ServerPort` (`raxol_mcp.transports.base`), a client's gives a `Link`
(`raxol_mcp.transports.link`); neither imports a server or a client. Import the one you need from
its own module, so that the others cost nothing at start-up.
"""
