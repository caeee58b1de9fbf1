# Two commands do all set-up: `make demo` and `make test`. PYTHON names another interpreter than python3.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-fast test-slow test-browser lint bench clean

demo: $(VENV)/.demo
	BIN=$(BIN) sh scripts/demo.sh

# The default tier first: it is fast and says most. Browser tests skip, with the reason, where there is no Chromium.
test: lint test-fast test-slow test-browser

test-fast: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not slow and not browser" -n auto --dist loadfile

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -m "slow and not browser" --timeout=1500

test-browser: $(VENV)/.dev
	$(BIN)/python -m pytest -m browser

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

bench: $(VENV)/.dev
	@for script in benchmarks/*.py; do $(BIN)/python "$$script" || exit 1; done

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python %d.%d is too old: the toolkit needs 3.11 or newer. Name another one: make PYTHON=python3.12 ..." % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo,dev]'
	@# Where the extras cannot be had, their tests skip with the reason.
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[zh,ray]'
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache
