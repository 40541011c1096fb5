# Everything happens in a virtual environment of its own; python3.11 or newer and make are all it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := setup.py pyproject.toml constraints.txt $(shell find src -name '*.py')
# The core interpreted, from the tree; without it the compiled one that is installed in the environment.
INTERPRETED := PYTHONPATH=src

.DEFAULT_GOAL := help
.PHONY: help demo report serve broker test test-interpreted test-compiled test-examples lint types bench bench-full bench-pipeline bench-report clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## Run the produce/fetch simulator for ten seconds, live, with a journal in build/journal
	$(BIN)/python -m examples.broker.simulator --journal build/journal

# All of one run, so that no earlier one is in it; the demo's own journal grows with each run.
STEPS := build/report
PIPELINE := $(BIN)/purgatory-pipeline

report: $(VENV)/.spark ## Run the demo and say on a page what its journal tells: waits, hot keys, timeouts, the wheel
	rm -rf $(STEPS)
	$(BIN)/python -m examples.broker.simulator --journal $(STEPS)/journal
	$(PIPELINE) compact $(STEPS)/journal $(STEPS)/dataset
	$(PIPELINE) summarize $(STEPS)/dataset
	$(PIPELINE) advise $(STEPS)/dataset
	$(PIPELINE) replay $(STEPS)/dataset
	$(PIPELINE) report $(STEPS)/dataset $(STEPS)/page

serve: $(VENV)/.longpoll ## Run the long-poll service with its chat and the dashboard, and print the addresses (ARGS='--help')
	$(BIN)/python -m examples.longpoll $(ARGS)

broker: $(VENV)/.broker ## Run three brokers that speak Kafka's protocol, on ports 9092 to 9094 (ARGS='--help')
	$(BIN)/python -m examples.broker $(ARGS)

test: test-interpreted test-compiled test-examples ## Pass all tests, on both builds of the core

# The package's own tests have to cover all of it. The pipeline, which has nothing of the core but the wheel, meets one build.
test-interpreted: $(VENV)/.dev ## The package's tests on the interpreted core, with its branch coverage
	PURGATORY_BUILD=interpreted $(INTERPRETED) $(BIN)/coverage run -m pytest --ignore tests/examples --ignore tests/benchmarks
	$(BIN)/coverage report

test-compiled: $(VENV)/.dev ## The package's tests on the compiled core, where there is a C compiler
	@if $(BIN)/python -P -c 'import purgatory; raise SystemExit(not purgatory.COMPILED)'; then \
		PURGATORY_BUILD=compiled $(BIN)/python -m pytest --ignore tests/test_packaging.py \
			--ignore tests/pipeline --ignore tests/examples --ignore tests/benchmarks; \
	elif [ -n "$$CI" ]; then \
		echo 'The core was not compiled: install a C compiler and the Python headers.'; exit 1; \
	else \
		echo 'No C compiler: the core has only been tested interpreted.'; \
	fi

test-examples: $(VENV)/.dev ## The tests of the examples and the benchmarks, on the build that is installed
	$(BIN)/python -m pytest tests/examples tests/benchmarks

lint: $(VENV)/.dev ## Check style, formatting and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(INTERPRETED) $(BIN)/lint-imports

types: $(VENV)/.dev ## Check types, strictly
	$(BIN)/mypy

bench: $(VENV)/.bench ## Measure against what people use instead, in some minutes (ARGS='--json run.json')
	$(BIN)/python -m benchmarks $(ARGS)

RUNS := docs/benchmarks/runs

bench-full: $(VENV)/.bench ## Everything, up to a million waits and on both loops, in two hours, into docs/benchmarks
	rm -rf docs/benchmarks
	mkdir -p $(RUNS)
	$(BIN)/python -m benchmarks --full --json $(RUNS)/asyncio.json
	$(BIN)/python -m benchmarks --full --loop uvloop --json $(RUNS)/uvloop.json
	$(BIN)/python -m benchmarks.load --json $(RUNS)/load.json
	$(BIN)/python -m benchmarks.broker --json $(RUNS)/broker.json
	$(BIN)/python -m benchmarks.longpoll --json $(RUNS)/longpoll.json
	$(MAKE) bench-report

# With what DuckDB takes beside it; up to a hundred million operations, in two hours, and 40 GB.
bench-pipeline: $(VENV)/.bench ## Measure the Spark pipeline at scale, in hours (ARGS='--operations 100_000' in 20 minutes)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt 'asyncio-purgatory[spark-benchmarks]'
	$(BIN)/python -m benchmarks.pipeline $(ARGS)

bench-report: $(VENV)/.bench ## Draw the pages and pictures of docs/benchmarks from the runs kept there
	$(BIN)/python -m benchmarks.report $(wildcard $(RUNS)/*.json)

clean: ## Remove the environment and what was built
	rm -rf $(VENV) build dist src/*.egg-info .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

# The package goes in as a wheel, not editable: compiled modules beside the sources would hide later edits.
$(VENV)/.demo: $(VENV)/bin/python $(SOURCES)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt '.[examples]'
	@rm -rf build
	@touch $@

# Installed just now, so these only add what the extra needs.
$(VENV)/.bench: $(VENV)/.demo
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt 'asyncio-purgatory[benchmarks]'
	@touch $@

$(VENV)/.spark: $(VENV)/.demo
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt 'asyncio-purgatory[spark]'
	@touch $@

$(VENV)/.longpoll: $(VENV)/.demo
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt 'asyncio-purgatory[longpoll]'
	@touch $@

$(VENV)/.broker: $(VENV)/.demo
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt 'asyncio-purgatory[broker]'
	@touch $@

# The jars of Kafka's Java client, 200 MB, for its one test, which is skipped without them.
$(VENV)/.java: $(VENV)/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt 'asyncio-purgatory[java]'
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt 'asyncio-purgatory[dev]'
	@touch $@
