# Two commands do everything on a fresh machine: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
FRAMEWORKS := $(VENV)/.frameworks
RLLIB := .rllib
DOCS := $(VENV)/.docs

.PHONY: help install lock demo test test-integrations test-browser test-slow test-gpu test-matrix docs lint format package bench reproduce pack clean

help:            ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

install: $(READY) ## Make .venv with the pinned development environment

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

$(READY): requirements/build.lock requirements/dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "graphsnd needs Python 3.10 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --no-deps --require-hashes -r requirements/build.lock
	$(PIP) --no-deps --require-hashes --no-build-isolation -r requirements/dev.lock
	$(PIP) torch==2.13.0
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

lock:            ## Write the hashes of the versions in requirements/*.in; needs uv
	for part in build dev docs frameworks rllib; do uv pip compile --quiet --no-deps --universal --python-version 3.10 --generate-hashes \
	  --no-annotate --custom-compile-command 'make lock' requirements/$$part.in -o requirements/$$part.lock; done

demo: $(READY)   ## Measure a 100-agent team with four hidden roles; writes demo/
	$(BIN)/graphsnd demo --out demo

test: $(READY)   ## Run the tests (not the slow ones)
	$(BIN)/python -m pytest -n 2 --dist loadfile

$(FRAMEWORKS): requirements/frameworks.lock $(READY)
	$(PIP) --no-deps --require-hashes -r requirements/frameworks.lock
	touch $@

$(RLLIB)/.ready: requirements/rllib.lock $(READY)
	$(PIP) --no-deps --require-hashes --upgrade --target $(RLLIB) -r requirements/rllib.lock
	touch $@

test-integrations: $(READY) $(FRAMEWORKS) $(RLLIB)/.ready ## Run what needs other frameworks, or is long of them
	$(BIN)/python -m pytest -m integration -n 2 tests --ignore tests/test_torch_modes.py
	@# torch.compile apart: in a process where Flax modules were traced before, it fails on a recursion of its own.
	$(BIN)/python -m pytest -m integration tests/test_torch_modes.py
	$(BIN)/python -m pytest src/graphsnd/integrations
	PYTHONPATH=$(RLLIB) $(BIN)/python -m pytest -m integration -k rllib tests/integrations/test_rllib.py tests/integrations/test_entries.py tests/test_examples.py tests/test_docs.py

$(DOCS): requirements/docs.lock $(READY)
	$(PIP) --no-deps --require-hashes -r requirements/docs.lock
	touch $@

docs: $(DOCS)    ## Build the docs site into site/; a warning fails. Needs Python 3.11
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --fresh-env --jobs 2 --quiet docs site

test-browser: docs ## Drive the pages and the docs site in Chromium, and run the notebooks
	$(BIN)/python -m pytest -m browser tests

test-slow: $(READY) ## Run the slow tests
	$(BIN)/python -m pytest -m slow

test-matrix:     ## Run the tests in environments of their own; needs uv; MATRIX="3.12 lowest newest plain:3.11", TESTS=tests/cli
	$(PYTHON) tests/matrix.py $(or $(MATRIX),3.10 3.11 3.12 3.13 lowest) -- $(TESTS)

test-gpu:        ## Run the GPU tests with the Python and torch that are there; installs nothing
	PYTHONPATH=src:. $(PYTHON) -m pytest -m gpu tests

lint: $(READY)   ## ruff, mypy, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## Format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .


package: $(READY) ## Build wheel and sdist into dist/, check them, and check the types of code that uses the wheel
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*
	$(PIP) --no-deps --no-compile --target dist/outside dist/*.whl
	@# Without our configuration, and with the wheel before the sources that .venv links to.
	PYTHONPATH=dist/outside $(BIN)/mypy --strict --config-file= tests/typed_use.py examples/measure_a_team.py \
	  examples/discrete_actions.py examples/stop_at_a_tolerance.py

bench: $(READY)  ## Measure what guards against regressions, into bench.json; NAME=speed for one question
	$(BIN)/python -m benchmarks $(or $(NAME),all) --json $(or $(JSON),bench.json)

reproduce: $(READY) ## Judge the paper's claims; reads what is committed, or with OUT=folder or AGAIN=1 runs it; SCALE=smoke|laptop|paper, RAY=address
	$(BIN)/python -m paper run --scale $(or $(SCALE),laptop) $(if $(OUT),--out $(OUT)) $(if $(AGAIN),--again) $(if $(RAY),--ray $(RAY))

pack: $(READY)   ## Pack this commit for a machine without the repository, as FILE=graphsnd.tgz
	$(BIN)/python -m paper pack $(or $(FILE),graphsnd.tgz)

clean:           ## Remove everything that make made
	rm -rf $(VENV) $(RLLIB) .matrix dist demo site docs/reference docs/images/drawn .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
