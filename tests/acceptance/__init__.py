"""The server as its users meet it: one module for each group of behaviours.

Every test drives a real `Server` on virtual time, through the embedding interface or a transport,
and expects what the documents say. Where both eras of MCP have a behaviour, it runs in both. The
first line of a test cites its source:

* `specification: X`: section X of the server's specification; `tests/promises.py` lists all that
  it promises;
* `server-behaviour §N`: how servers behaved that this one follows;
* `MCP <revision> page §section`: the protocol;
* `ours: ...`: a rule of this project, where those leave something open or contradict each other;
  `docs/adr/` and `docs/limits.md` have the reasons.
"""
