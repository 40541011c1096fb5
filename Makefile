# Everything happens in a virtual environment of its own; python3.11 or newer and make are all it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A build of its own for the compiled core, never beside the sources; the import path says which one is meant.
COMPILED_TREE := build/compiled
COMPILED := PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/$(COMPILED_TREE):$(CURDIR)
INTERPRETED := PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -r pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help demo report serve broker test test-interpreted test-compiled test-examples lint types bench bench-full bench-pipeline bench-report clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(COMPILED_TREE)/.built ## Run the produce/fetch simulator for ten seconds, live, with a journal in build/journal
	$(COMPILED) $(BIN)/python -m examples.broker.simulator --journal build/journal

# All of one run, so that no earlier one is in it; the demo's own journal grows with each run.
STEPS := build/report
PIPELINE := $(COMPILED) $(BIN)/python -m purgatory.pipeline

report: $(COMPILED_TREE)/.built $(VENV)/.spark ## Run the demo and say on a page what its journal tells: waits, hot keys, timeouts, the wheel
	rm -rf $(STEPS)
	$(COMPILED) $(BIN)/python -m examples.broker.simulator --journal $(STEPS)/journal
	$(PIPELINE) compact $(STEPS)/journal $(STEPS)/dataset
	$(PIPELINE) summarize $(STEPS)/dataset
	$(PIPELINE) advise $(STEPS)/dataset
	$(PIPELINE) replay $(STEPS)/dataset
	$(PIPELINE) report $(STEPS)/dataset $(STEPS)/page

serve: $(COMPILED_TREE)/.built $(VENV)/.longpoll ## Run the long-poll service with its chat and the dashboard, and print the addresses (ARGS='--help')
	$(COMPILED) $(BIN)/python -m examples.longpoll $(ARGS)

broker: $(COMPILED_TREE)/.built $(VENV)/.broker ## Run three brokers that speak Kafka's protocol, on ports 9092 to 9094 (ARGS='--help')
	$(COMPILED) $(BIN)/python -m examples.broker $(ARGS)

test: test-interpreted test-compiled test-examples ## Pass all tests, on both builds of the core

# The package's own tests have to cover all of it. The pipeline, which has nothing of the core but the wheel, meets one build.
test-interpreted: $(VENV)/.dev ## The package's tests on the interpreted core, with its branch coverage
	$(INTERPRETED) $(BIN)/coverage run -m pytest --ignore tests/examples --ignore tests/benchmarks
	$(BIN)/coverage report

test-compiled: $(COMPILED_TREE)/.built $(VENV)/.dev ## The package's tests on the compiled core
	$(COMPILED) PURGATORY_REQUIRE_COMPILED=1 $(BIN)/python -m pytest --ignore tests/test_packaging.py \
		--ignore tests/pipeline --ignore tests/examples --ignore tests/benchmarks

test-examples: $(COMPILED_TREE)/.built $(VENV)/.dev ## The tests of the examples and the benchmarks, on the compiled core
	$(COMPILED) $(BIN)/python -m pytest tests/examples tests/benchmarks

lint: $(VENV)/.dev ## Check style, formatting and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(INTERPRETED) $(BIN)/lint-imports

types: $(VENV)/.dev ## Check types, strictly
	$(BIN)/mypy

bench: $(COMPILED_TREE)/.built $(VENV)/.bench ## Measure against the alternatives, in some minutes (ARGS='--help')
	$(COMPILED) $(BIN)/python -m benchmarks $(ARGS)

RUNS := docs/benchmarks/runs

bench-full: $(COMPILED_TREE)/.built $(VENV)/.bench ## Measure all, up to a million waits and on both loops, in two hours, into docs/benchmarks
	rm -rf docs/benchmarks
	mkdir -p $(RUNS)
	$(COMPILED) $(BIN)/python -m benchmarks waits timers journal --full --json $(RUNS)/asyncio.json
	$(COMPILED) $(BIN)/python -m benchmarks waits timers journal --full --loop uvloop --json $(RUNS)/uvloop.json
	$(COMPILED) $(BIN)/python -m benchmarks load --full --json $(RUNS)/load.json
	$(COMPILED) $(BIN)/python -m benchmarks broker longpoll --full --loop uvloop --json $(RUNS)/servers.json
	$(MAKE) bench-report

# Beside DuckDB; up to a hundred million operations, in two hours, and 40 GB.
bench-pipeline: $(COMPILED_TREE)/.built $(VENV)/.bench ## Measure the Spark pipeline at scale, in hours (ARGS='--sizes 100_000' in 20 minutes)
	$(COMPILED) $(BIN)/python -m benchmarks pipeline --full $(ARGS)

bench-report: $(VENV)/.bench ## Draw the pages and pictures of docs/benchmarks from the runs kept there
	$(COMPILED) $(BIN)/python -m benchmarks report $(wildcard $(RUNS)/*.json)

clean: ## Remove the environment and what was built
	rm -rf $(VENV) build dist *.egg-info .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv

# Copies the package and compiles its core, where there is a C compiler.
$(COMPILED_TREE)/.built: setup.py $(shell find purgatory -type f -not -name '*.pyc') | $(VENV)/.demo
	@rm -rf $(COMPILED_TREE)
	$(BIN)/python setup.py --quiet build --build-base build --build-lib $(COMPILED_TREE)
	@touch $@

$(VENV)/.demo: $(BIN)/uv pyproject.toml constraints.txt
	$(INSTALL) --extra journal --extra uvloop --group build --group examples
	@touch $@

$(VENV)/.spark: $(VENV)/.demo
	$(INSTALL) --extra spark
	@touch $@

$(VENV)/.longpoll: $(VENV)/.demo
	$(INSTALL) --extra metrics --extra uvloop --extra web --group longpoll
	@touch $@

$(VENV)/.broker: $(VENV)/.demo
	$(INSTALL) --extra uvloop --group broker
	@touch $@

$(VENV)/.bench: $(VENV)/.demo
	$(INSTALL) --all-extras --group benchmarks
	@touch $@

$(VENV)/.java: $(VENV)/.dev
	$(INSTALL) --group java
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(INSTALL) --all-extras --group lint --group test
	@touch $@
