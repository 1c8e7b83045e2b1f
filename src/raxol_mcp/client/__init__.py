"""The client: a session with one MCP server that comes back by itself, and groups of such.

`raxol_mcp.core.client` decides; what is here asks it, does what it says, and faces the user.

What people use:

* `app`: `Client`; `spec` and `spec_checks`: which server, within which bounds
* `group`: many servers as one set of tools; `tool_table` and `names`: whose tool a name is
* `config`, `variables`, `entries`: `.mcp.json`, from the file to specs
* `trust`, `consent`, `owned_files`: whether its user has allowed it
* `answers`, `forms`, `sampling`: what a server may ask, and what may be answered
* `results`: the records that are handed out

What does it:

* `runtime`, `port`, `opening`: the shell: effects, links, tasks, the timer
* `requests`, `tool_calls`, `payments`: how requests are made; `failures`: how they end
* `upkeep`, `lists`, `catalogue`, `subscriptions`: what is kept in order over sessions
* `user`, `handler_calls`: code of the user's is called; `status`: where the client stands
* `readers`, `definitions`, `outputs`: what is taken of what a server sends
* `redaction`: what may be shown; `side_by_side`: one thing for each of several servers
"""
