"""The server as its users meet it: one module for each group of behaviours.

Every test drives a real `Server` on virtual time, through the embedding interface or a transport,
and expects what the documents say: the specification of the server, its behaviour notes, and MCP.
Where both eras of MCP have a behaviour, the test runs in both.
"""
