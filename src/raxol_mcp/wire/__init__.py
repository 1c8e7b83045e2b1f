"""Bytes to messages and back: the spelling of JSON-RPC and MCP.

Decides nothing and does nothing: no I/O, no clock, no state beyond an unfinished line.

* `jsonrpc`: the messages, `decode`, `classify`, `encode`; also gives out what `results` defines
* `results`: `encode_result`, a result made into JSON once and strictly
* `strict`: the JSON parser behind them, which refuses what two parsers could read differently
* `framing`: a byte stream cut into lines
* `meta`: revisions, eras, `_meta` keys, log levels
* `headers`: what HTTP headers say about the message in the body
* `sse`: server-sent events
* `replies`: what a client makes of a server's line; a broken answer still ends its call
* `texts`: a peer's text, shown without what cannot be seen
* `values`: what the records of wire/ and core/ are made of
"""
