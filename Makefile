# Everything a change needs. The first target that needs it makes .venv; PYTHON chooses its Python.
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
READY  := $(VENV)/.ready
CODE   := src tests tools $(wildcard examples benchmarks)
PYTEST := -m pytest
STEPS  ?= 100000
SECONDS ?= 60

.PHONY: help demo picture test fmt lint types walk mutants cover conformance soak bench slow ci clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1: /p' Makefile

demo: $(READY) ## a server and a client, talking
	$(PY) examples/demo.py

picture: $(READY) ## docs/todo_app.svg, drawn by the app itself
	$(PY) -m tools.todo_picture

test: $(READY) ## every fast test
	$(PY) $(PYTEST) -m "not slow"

slow: $(READY) ## the few tests with real processes and pipes (pytest's 5: there is none)
	$(PY) -m pytest -m slow || [ $$? -eq 5 ]

fmt: $(READY) ## lay the source out and mend what can be mended
	$(PY) -m ruff format $(CODE) && $(PY) -m ruff check --fix $(CODE)

lint: $(READY) ## rules and layout of the source
	$(PY) -m ruff check $(CODE) && $(PY) -m ruff format --check $(CODE)

types: $(READY) ## mypy, strict
	$(PY) -m mypy $(CODE)

walk: $(READY) ## long random walks through both cores, checked at every step (STEPS=100000)
	$(PY) -m tests.core.walk --steps $(STEPS) && $(PY) -m tests.core.client_walk --steps $(STEPS)

mutants: $(READY) ## each planted bug must be found by a test
	$(PY) -m tests.core.mutants

cover: $(READY) ## make test, measured: 92 % of all branches, and 100 % of wire/ and core/ from their own tests
	$(MAKE) test PYTEST="-m coverage run -m pytest"
	$(PY) -m coverage report && $(PY) tools/cover_own.py

conformance: $(READY) ## the official conformance harness, pinned: against our server, and with our client
	@if command -v npm >/dev/null; then tools/run_conformance.sh; \
	else echo "conformance: skipped, because npm is not installed"; fi

soak: $(READY) ## hostile traffic over HTTP, for a while (SECONDS=60)
	$(PY) -m tools.soak --seconds $(SECONDS)

bench: $(READY) ## what a call costs
	for program in benchmarks/*.py; do $(PY) -m benchmarks.$$(basename $$program .py) || exit 1; done

ci: lint types cover slow walk conformance ## all that a change has to pass

clean: ## remove everything that was made here, .venv too
	rm -rf $(VENV) .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist

# `pip install --group` needs pip 25.1; a new environment may hold an older one. Pip compiles what it
# installs, but not an editable install: without bytecode each start of a server takes twice as long.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("raxol-mcp needs Python 3.11 or newer; $(PYTHON) is " + sys.version.split()[0] + ". Choose another with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet "pip>=25.1"
	$(PY) -m pip install --quiet --editable . --group dev
	$(PY) -m compileall -q src
	@touch $(READY)
