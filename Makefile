# Two commands, each from a clean clone: `make demo` and `make test`. Both need Python 3.11 or later with venv.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
DEMO := build/demo
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check --quiet
AUDIT := AUDIT_HOME=$(DEMO)/home $(VENV)/bin/audit

.PHONY: demo test clean

demo: $(VENV)/installed
	@rm -rf $(DEMO) && mkdir -p $(DEMO)/certificates
	@echo; echo '== calibrate: the smallest double that keeps the promise, proved, with a signed certificate'
	$(AUDIT) calibrate multi-gaussian --epsilon 1 --delta 0.01 -K 4 -o $(DEMO)/certificates/calibrated.json
	@echo; echo '== certify: claims that someone else made, read from files'
	$(AUDIT) certify examples/multi-gaussian.toml -o $(DEMO)/certificates/multi-gaussian.json
	$(AUDIT) certify examples/mixture.toml -o $(DEMO)/certificates/mixture.json
	$(AUDIT) certify examples/laplace.toml -o $(DEMO)/certificates/laplace.json
	@echo; echo '== certify: a published claim that does not hold (exit code 1 is the right answer)'
	$(AUDIT) certify examples/table-4.toml; test $$? -eq 1
	@echo; echo '== verify: prove everything again, from the certificates alone, and check the signatures'
	$(AUDIT) verify $(DEMO)/certificates

test: $(VENV)/installed-test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m pytest $(PYTEST_ARGS)

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo 'no Python 3.11 or later with venv was found; set PYTHON=…' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --editable .
	@touch $@

$(VENV)/installed-test: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --editable '.[test]'
	@touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) build dist
