# What a user and a developer run. `make` alone lists it.
#
#   make demo PYTHON=python3.13 VENV=.venv-313     another Python, in an environment of its own

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SPECS := $(wildcard jupyter-config/kernels/*/*)

.DEFAULT_GOAL := help
.PHONY: help demo test test-long bench lint

help:
	@echo "make demo       run notebooks/quickstart.ipynb in the real kernel, show what happens"
	@echo "make test       everything: ruff, mypy, unit, live and browser tests, notebooks"
	@echo "make test-long  the repeated experiments, with their full counts"
	@echo "make bench      the measurements of tests/benchmarks"
	@echo "make lint       ruff and mypy alone"

demo: $(VENV)/.demo
	@$(BIN)/oh-kernel demo

test: lint
	@$(BIN)/python tests/notebooks.py
	@$(BIN)/pytest tests/unit tests/live tests/browser -m 'not long'

test-long: $(VENV)/.test
	@OH_LONG=1 $(BIN)/pytest tests/unit tests/live tests/browser -m 'long or repeated'

bench: $(VENV)/.test
	@for bench in tests/benchmarks/bench_*.py; do \
	  echo "$$bench"; $(BIN)/python $$bench || exit 1; done

lint: $(VENV)/.test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

# Each stamp stands for what was installed; pyproject.toml newer than it means installing again.
$(VENV)/.demo: pyproject.toml $(SPECS) | $(BIN)/python
	@echo "Installing oh-kernel and what the demo needs into $(VENV) ..."
	@$(PIP) install --editable '.[demo,lab]'
	@touch $@

$(VENV)/.test: pyproject.toml $(SPECS) | $(BIN)/python
	@echo "Installing oh-kernel and what the tests need into $(VENV) ..."
	@$(PIP) install --editable '.[test]'
	@touch $@ $(VENV)/.demo

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is older than 3.11, or not there. Try: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Making the environment $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV)
