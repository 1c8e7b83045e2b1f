"""What the tests of this project, and of programs built on it, stand on.

* `virtual_loop`: an event loop whose time is a number, so that a wait of 60 s takes no time
* `views`: a Textual app, used as an agent uses it; `plugin` has it as a fixture of pytest

No other part of the package imports this one.
"""
