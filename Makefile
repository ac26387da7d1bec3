# What a user and a developer run. `make` alone lists it.
#
#   make demo MODEL=local                          a tiny model on this machine, fetched once (1.2 GB)
#   make demo PYTHON=python3.13 VENV=.venv-313     another Python, in an environment of its own

PYTHON ?= python3
MODEL ?=
LOCAL := qwen2.5-coder-1.5b-instruct
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SPECS := $(wildcard jupyter-config/kernels/*/*)

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-model bench lint

help:
	@echo "make demo       run notebooks/quickstart.ipynb in the real kernel, show what happens"
	@echo "make test       everything: ruff, mypy, unit, live and browser tests, notebooks"
	@echo "make test-long  the repeated experiments, with their full counts"
	@echo "make test-model the agent with a model on this machine (1.2 GB, minutes)"
	@echo "make bench      the measurements of tests/benchmarks"
	@echo "make lint       ruff and mypy alone"

ifeq ($(MODEL),local)
demo: $(VENV)/.local
	@OPENHANDS_MODEL=local:$(LOCAL) $(BIN)/oh-kernel demo
else
demo: $(VENV)/.demo
	@$(if $(MODEL),OPENHANDS_MODEL=$(MODEL)) $(BIN)/oh-kernel demo
endif

test: lint
	@$(BIN)/python tests/notebooks.py
	@$(BIN)/pytest tests/unit tests/live tests/browser -m 'not long and not model'

test-long: $(VENV)/.test
	@OH_LONG=1 $(BIN)/pytest tests/unit tests/live tests/browser -m 'long or repeated'

test-model: $(VENV)/.test $(VENV)/.local
	@$(BIN)/pytest tests/live -m model

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

$(VENV)/.local: pyproject.toml $(SPECS) | $(BIN)/python
	@echo "Installing oh-kernel and what runs a model here into $(VENV) ..."
	@$(PIP) install --editable '.[demo,lab,local]'
	@touch $@ $(VENV)/.demo

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is older than 3.11, or not there. Try: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Making the environment $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV)
