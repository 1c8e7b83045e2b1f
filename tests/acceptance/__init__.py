"""The server as its users meet it: one module for each group of behaviours.

Every test drives a real `Server` on virtual time, through the embedding interface or a transport,
and expects what the documents say. Where both eras of MCP have a behaviour, it runs in both. In
`test_client_*.py` it is the `Client` that is driven, by its public interface, against peers that
follow a script (`tests/client/peers/`). The first line of a test cites its source:

* `specification: X`: section X of the server's specification; `tests/promises.py` lists all that
  it promises;
* `client-2.8.0 §X`: the same of the client's specification;
* `server-behaviour §N`, `client-behaviour check N`: how servers and clients behaved that these
  follow; "as ruled" where MCP, or a decision of this project, has it otherwise;
* `MCP <revision> page §section`: the protocol;
* `ours: ...`: a rule of this project, where those leave something open or contradict each other;
  `docs/adr/` and `docs/limits.md` have the reasons.
"""
