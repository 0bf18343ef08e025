# make quickstart        build .venv, install, train a small language model on FrozenLake, which writes a report
# make test              build .venv, install what the tests need, run the core tests
# make test-portable     a few of them as on another processor, without programs beside Python
# make test-fast         the core tests that cost little: for every day
# make lint              ruff and mypy
# make test-integration  tests with heavy or conflicting third-party packages
# make docs              build the documentation site in site/ (docs-serve shows it, docs-pages regenerates pages)
# make .venvs/NAME       build the environment of third-party packages in tests/requirements/NAME.txt
PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
# More processes than two cores: tests wait for processes of their own, those of the integration most of all.
WORKERS ?= 3
JOBS ?= 4
PIP = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS)
# Compiled modules are kept even where PYTHONDONTWRITEBYTECODE is set, as in many containers: the tests start hundreds of
# processes, and each would compile turngym anew.
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(VENV)/bin/python -m pytest

INTEGRATION = journeys trainers envs own desktop miniwob peers plugins agents verl rl openenv vllm verifiers inspect tools tracking notebook release search browsergym textworld scienceworld games agentdojo bfcl

.PHONY: quickstart test test-fast test-portable lint test-integration docs docs-serve docs-pages peers vllm format coverage clean

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

test: $(VENV)/.dev$(TAG)
	$(PYTEST) -q -n $(WORKERS) --dist worksteal --durations 60

test-fast: $(VENV)/.dev$(TAG)
	$(PYTEST) -q -n $(WORKERS) --dist worksteal --fast

# Tests that have depended on the machine, with the oldest kernels of the processor and without other programs than Debian's
# smallest installation has.
MINIMAL = .venvs/minimal
PORTABLE = tests/trainers/engine/test_old_logprobs.py tests/trainers/algorithms/test_bf16.py tests/trainers/loop/test_exporting.py \
	tests/envs/test_missing_programs.py tests/envs/tools/test_sandbox_calls.py tests/docs/test_generated_pages.py

test-portable: $(VENV)/.dev$(TAG)
	rm -rf $(MINIMAL) && mkdir -p $(MINIMAL)
	ln -s /bin/* $(MINIMAL) && cd $(MINIMAL) && rm -f bwrap chrom* Xvfb java* docker* runsc gcc* g++* cc c++ git openbox mousepad gnumeric
	PATH=$(CURDIR)/$(VENV)/bin:$(CURDIR)/$(MINIMAL) ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 MKL_ENABLE_INSTRUCTIONS=SSE4_2 \
		$(PYTEST) -q -n 2 --fast $(PORTABLE)

lint: $(VENV)/.dev$(TAG)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(VENV)/.dev$(TAG)
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# Environments for third-party packages that are heavy or conflict with each other: make .venvs/NAME installs
# tests/requirements/NAME.txt with its dependencies, and tests/requirements/no-deps/NAME.txt without. They see the packages of
# $(VENV), so none of them holds a second torch. Few of their modules are ever imported, so pip compiles none.
REQUIREMENTS = tests/requirements
ISOLATED = agentdojo agents alfworld bfcl browsergym desktop docs games inspect miniwob notebook openenv peers plugins release rl scienceworld search textworld tools tracking verifiers verl vllm
# These are folders of packages, which no Python belongs to: data, and Ray for the workers that tests start.
FOLDERS = smollm2 ray
DONE = .done$(TAG)
PACKAGES = $(VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
# The makes of packages that are compiled must not see the flags of this one.
PIP_OF = env -u MAKEFLAGS -u MFLAGS .venvs/$*/bin/python -m pip install --no-compile --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) $(PIP_OPTIONS_$*)

.PHONY: $(ISOLATED:%=.venvs/%) $(FOLDERS:%=.venvs/%)
$(ISOLATED:%=.venvs/%) $(FOLDERS:%=.venvs/%): %: %/$(DONE)

peers vllm: %: .venvs/%

.SECONDEXPANSION:
.venvs/%/$(DONE): $$(wildcard $(REQUIREMENTS)/$$*.txt $(REQUIREMENTS)/no-deps/$$*.txt) | $(VENV)/.dev$(TAG)
	test -x .venvs/$*/bin/python || $(VENV)/bin/python -m venv --without-pip .venvs/$*
	echo "import site; site.addsitedir('$$($(PACKAGES))')" > "$$($(PACKAGES:$(VENV)%=.venvs/$*%))/shared.pth"
	test ! -e $(REQUIREMENTS)/$*.txt || $(PIP_OF) --requirement $(REQUIREMENTS)/$*.txt
	test ! -e $(REQUIREMENTS)/no-deps/$*.txt || $(PIP_OF) --no-deps --requirement $(REQUIREMENTS)/no-deps/$*.txt
	touch $@

$(FOLDERS:%=.venvs/%/$(DONE)): .venvs/%/$(DONE): $(REQUIREMENTS)/no-deps/%.txt | $(VENV)/.dev$(TAG)
	rm -rf .venvs/$* .venvs/$*.part
	$(PIP) --no-deps --target .venvs/$*.part --requirement $<
	mv .venvs/$*.part .venvs/$*
	touch $@

# Where warnings are errors, a module of textarena that is not compiled cannot be imported.
PIP_OPTIONS_peers = --compile

# ALFWorld's planner is compiled without optimisation (the last -O wins), which saves 80 seconds of a processor.
PIP_OPTIONS_alfworld = --no-build-isolation
.venvs/alfworld/$(DONE): export PATH := $(CURDIR)/.venvs/alfworld/bin:$(PATH)
.venvs/alfworld/$(DONE): export CXX = quick-g++
.venvs/alfworld/$(DONE): .venvs/alfworld/bin/quick-g++
.venvs/alfworld/bin/quick-g++:
	mkdir -p $(@D)
	printf '#!/bin/sh\nexec g++ "$$@" -O0\n' > $@
	chmod +x $@

docs: .venvs/docs
	NO_MKDOCS_2_WARNING=1 .venvs/docs/bin/mkdocs build --strict --quiet

docs-serve: .venvs/docs
	NO_MKDOCS_2_WARNING=1 .venvs/docs/bin/mkdocs serve

docs-pages: $(VENV)/.dev$(TAG)
	$(VENV)/bin/python docs/generator/environments.py
	$(VENV)/bin/python docs/generator/commands.py
	$(VENV)/bin/python docs/generator/suites.py
	$(VENV)/bin/python docs/generator/pictures.py

# One target for each environment; $(JOBS) of them at the same time, the output of each in one piece.
test-integration: $(VENV)/.dev$(TAG)
	$(MAKE) --no-print-directory --keep-going --output-sync=target --jobs $(JOBS) $(INTEGRATION:%=integration-%)

# Tests without an environment of their own, in four parts, since much of their time is spent waiting for processes.
integration-own: .venvs/docs
	$(PYTEST) -q -m integration --durations 20 --ignore tests/trainers --ignore tests/envs --ignore tests/journeys

integration-journeys: | $(VENV)/.dev$(TAG)
	$(PYTEST) -q -m integration -n 2 --dist loadfile --durations 20 tests/journeys

integration-envs: .venvs/ray
	$(PYTEST) -q -m integration --durations 20 tests/envs

integration-trainers: .venvs/smollm2 .venvs/ray
	$(PYTEST) -q -m integration -n 2 --dist loadfile --durations 20 tests/trainers

PLUGINS = tests/trainers/integrations
TESTS_agentdojo = tests/envs/adapters/test_agentdojo.py
TESTS_agents = $(PLUGINS)/gateway/test_agent_programs_live.py
TESTS_alfworld = tests/envs/household/test_alfworld_engine.py
TESTS_bfcl = tests/envs/adapters/test_bfcl.py
TESTS_browsergym = tests/envs/adapters/test_browsergym.py
TESTS_desktop = tests/envs/desktop/test_desktop_*.py
TESTS_games = tests/envs/adapters/test_reasoning_gym.py tests/envs/textworlds/test_crafter.py tests/envs/textworlds/test_minihack.py tests/envs/textworlds/test_nethack.py tests/envs/adapters/test_open_spiel.py tests/envs/multiagent/test_equilibria_vs_openspiel.py
TESTS_inspect = tests/benchmarks/cli/test_inspect.py $(PLUGINS)/test_task_packages_live.py
TESTS_miniwob = tests/envs/web/test_miniwob*.py
TESTS_notebook = tests/docs/test_notebook.py
TESTS_openenv = $(PLUGINS)/test_openenv_live.py $(PLUGINS)/test_served_connections.py
TESTS_peers = tests/envs/adapters/test_gem.py tests/envs/adapters/test_textarena*.py
TESTS_plugins = $(PLUGINS)/test_plugin_trl*.py $(PLUGINS)/test_plugin_skyrl.py $(PLUGINS)/test_plugin_openrlhf.py tests/benchmarks/exports/test_export_conversations.py
TESTS_release = tests/package/test_release.py
TESTS_rl = $(PLUGINS)/test_plugin_sb3.py $(PLUGINS)/test_plugin_rllib.py
TESTS_scienceworld = tests/envs/textworlds/test_scienceworld.py
TESTS_search = tests/envs/search/test_search_dense.py tests/envs/search/test_search_qdrant.py tests/envs/search/test_search_hub.py tests/envs/tools/test_questions_env.py
TESTS_textworld = tests/envs/textworlds/test_textworld.py tests/envs/textworlds/test_jericho.py
TESTS_tools = tests/envs/tools/test_sandbox_*.py tests/envs/tools/test_harbor_docker.py tests/envs/tools/test_mcp_tools.py $(PLUGINS)/test_mcp_server.py
TESTS_tracking = tests/trainers/loop/test_trackers_live.py
TESTS_verifiers = $(PLUGINS)/test_plugin_verifiers.py $(PLUGINS)/test_task_packages_live.py $(PLUGINS)/gateway/test_gateway_clients_live.py
TESTS_verl = $(PLUGINS)/test_plugin_verl*.py
TESTS_vllm = tests/agents/models/test_vllm*.py tests/benchmarks/cli/test_vllm*.py tests/trainers/loop/test_vllm*.py

integration-%: .venvs/%
	$(PYTEST:$(VENV)%=.venvs/$*%) -q -m integration $(TESTS_$*)

coverage: $(VENV)/.dev$(TAG)
	$(VENV)/bin/coverage erase
	OMP_NUM_THREADS=1 $(VENV)/bin/coverage run -m pytest -q tests/trainers/algorithms/test_algorithm_*.py tests/trainers/functional/test_functional_*.py
	$(VENV)/bin/coverage combine --quiet
	$(VENV)/bin/coverage report --include="trainers/algorithms/*,trainers/functional/*" --fail-under=95

clean:
	rm -rf $(VENV) .venvs build *.egg-info
