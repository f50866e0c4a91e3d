# For a fresh machine: `make demo`, `make test` and `make docs`. Each makes or reuses .venv by itself.
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
# A process that is done takes over half of what another still has to do: the longest tests stand together.
PYTEST = $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null \
  && echo $$p && break; done)

# Reading the tests takes twice as long where their rewritten assertions are not kept.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test test-all fast oldest lint docs pictures clean

demo: $(VENV)/.core
	$(BIN)/judge demo

test: $(VENV)/.dev
	$(PYTEST) -m "not long"
	@echo "make test-all adds browsers, Ray, local models, crashes, the soak, simulations, the documents' commands"

test-all: test
	$(BIN)/judge models pull smollm2-135m
	$(PYTEST) -m long

# After every edit: no process, no model, no simulation.
fast: $(VENV)/.dev
	$(BIN)/python -m pytest -m fast

# The oldest versions that pyproject.toml allows, under Python 3.11. What newer ones say of them is no error here.
oldest:
	python3.11 -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install -q uv
	$(OLDEST)/bin/uv pip install -q -p $(OLDEST) --resolution lowest-direct -e '.[all,onnx,ir]'
	$(OLDEST)/bin/uv pip install -q -p $(OLDEST) -e '.[all,onnx,ir]' --group test --group docs
	$(OLDEST)/bin/python -m pytest -n auto --maxprocesses 4 --dist worksteal -m "not long" -W ignore::DeprecationWarning

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site in docs/_build/html; a warning or a link that leads nowhere is an error.
docs: $(VENV)/.dev
	$(BIN)/python -m docs.site

# The screenshots in docs/pictures, taken of the bundled example in the browser that is installed.
pictures: $(VENV)/.dev
	$(BIN)/python -m docs.site.pictures

clean:
	rm -rf $(VENV) $(OLDEST) judge-demo docs/_build

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "judge needs Python 3.11, 3.12 or 3.13, and none was found"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all]'
	@touch $@

# Dependency groups need a pip of 2025, which an older Python does not bring.
$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all]' --group dev
	@touch $@ $(VENV)/.core
