# All targets work in a virtual environment of their own. They need Python 3.11 or newer, make, and on Windows Git's sh.
PYTHON ?= python3
VENV ?= .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
EXE := .exe
PATH_SEPARATOR := ;
else
BIN := $(VENV)/bin
EXE :=
PATH_SEPARATOR := :
endif
# The import path chooses the build: the compiled core is never beside the sources.
COMPILED_TREE ?= build/compiled
COMPILED := PYTHONSAFEPATH=1 PYTHONPATH="$(CURDIR)/$(COMPILED_TREE)$(PATH_SEPARATOR)$(CURDIR)"
INTERPRETED := PURGATORY_REQUIRE_COMPILED=0 PYTHONSAFEPATH=1 PYTHONPATH="$(CURDIR)"
# Without a C compiler and Python.h the core runs interpreted. With both, a core that does not compile is an error.
PURGATORY_REQUIRE_COMPILED ?= $(shell command -v $(CC) >/dev/null && $(PYTHON) -c $(HAS_PYTHON_H) && echo 1 || echo 0)
HAS_PYTHON_H := 'import os, sysconfig; exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))'
REQUIRE_COMPILED = PURGATORY_REQUIRE_COMPILED=$(PURGATORY_REQUIRE_COMPILED)
UV := $(BIN)/uv$(EXE)
INSTALL := $(UV) pip install --quiet --python $(BIN)/python$(EXE) -c constraints.txt -r pyproject.toml

# The core compiles while the other packages are installed.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += --jobs=2
endif

.DEFAULT_GOAL := help
.PHONY: help demo report serve broker delayed kafka programs test test-docs check test-interpreted test-compiled test-long test-kafka test-python test-core test-debug lint types docs docs-links dist bench bench-full bench-kafka bench-pipeline bench-report clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(COMPILED_TREE)/.built $(VENV)/.demo ## Run the produce/fetch simulator for ten seconds, live, with a journal in build/journal (ARGS='--help')
	$(COMPILED) $(BIN)/python -m examples.broker.simulator --journal build/journal $(ARGS)

# The page shows one run, so the steps start from an empty directory.
STEPS := build/report
# Each may be in an object store.
DATASET := $(STEPS)/dataset
PAGE := $(STEPS)/page

report: $(COMPILED_TREE)/.built $(VENV)/.spark ## Simulate five minutes with a slow replica, and make a page of the journal: which timeouts to change
	rm -rf $(STEPS)
	$(COMPILED) $(BIN)/python -m examples.broker.simulator.story $(STEPS)/journal
	$(COMPILED) $(BIN)/python -m purgatory.pipeline run $(STEPS)/journal $(DATASET) $(PAGE)

serve: $(COMPILED_TREE)/.built $(VENV)/.longpoll ## Run the long-poll service with its chat and the dashboard, on port 8000 (ARGS='--help')
	$(COMPILED) $(BIN)/python -m examples.longpoll $(ARGS)

broker: $(COMPILED_TREE)/.built $(VENV)/.broker ## Run three brokers that speak Kafka's protocol, on ports 9092 to 9094 (ARGS='--help')
	$(COMPILED) $(BIN)/python -m examples.broker $(ARGS)

delayed: $(COMPILED_TREE)/.built $(VENV)/.delayed ## Run three designs of a delay service for Kafka, with a kill in the middle, and check them (ARGS='--help')
	$(COMPILED) $(BIN)/python -m examples.delayed demo $(ARGS)

KAFKA := build/kafka

kafka: $(KAFKA)/.built ## Bring Apache Kafka into build/kafka (needs Maven and a JDK, 17 or newer)

# Many tests wait for servers, browsers and Java, so there are three workers for two cores.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(3 * os.cpu_count() // 2)')
# `make test-docs` runs tests/docs.
# tests/conftest.py says which tests stay together on a worker, and which come first.
PYTEST := -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder --ignore tests/docs
FAST := -m 'not slow and not long and not kafka'
PACKAGE_TESTS := --ignore tests/examples --ignore tests/benchmarks --ignore tests/kafka
# The pipeline uses nothing of the core but the wheel, the store of delayed messages and the relay's transports
# nothing at all, and a page and the plugin are the same for both builds, so one is enough.
COMPILED_TESTS := --ignore tests/pipeline --ignore tests/relay/live --ignore tests/delayed/storage \
	--ignore tests/test_packaging.py --ignore tests/test_pytest_plugin.py --ignore tests/web/dashboard/test_browser.py
# What can differ between the builds.
DIFFERENT_TESTS := $(addprefix tests/,core/test_both_builds.py core/test_budgets.py core/test_promises.py \
	core/test_permits_machine.py core/test_purgatory_machine.py core/timer/test_wheel_machine.py \
	pipeline/replay/test_against_the_timer.py test_build.py test_packaging.py)
CORE_TESTS := $(PACKAGE_TESTS) --ignore tests/pipeline --ignore tests/web --ignore tests/relay/live \
	--ignore tests/test_prometheus.py
ifeq ($(OS),Windows_NT)
# purgatory.delayed locks its directory with flock.
CORE_TESTS += --ignore tests/delayed
endif

test: $(COMPILED_TREE)/.built $(VENV)/.dev ## Run the fast tests, in under 4 minutes with all set-up; on both builds what can differ between them
	$(COMPILED) $(REQUIRE_COMPILED) $(BIN)/python $(PYTEST) $(FAST)
	$(INTERPRETED) $(BIN)/python $(PYTEST) $(FAST) $(DIFFERENT_TESTS)

check: lint types test-docs programs $(COMPILED_TREE)/.built $(VENV)/.java ## Run what CI runs: lint, types, docs, coverage, all tests but the long ones
	$(COMPILED) $(REQUIRE_COMPILED) HYPOTHESIS_PROFILE=check $(BIN)/python $(PYTEST) -m 'not long and not kafka' $(COMPILED_TESTS)
	$(BIN)/coverage erase
	$(INTERPRETED) HYPOTHESIS_PROFILE=check $(BIN)/coverage run $(PYTEST) -m 'not long' $(PACKAGE_TESTS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

test-long: $(COMPILED_TREE)/.built $(VENV)/.java ## Run the long tests, and every property with many more examples
	$(COMPILED) $(REQUIRE_COMPILED) HYPOTHESIS_PROFILE=long $(BIN)/python $(PYTEST) --timeout 3600 -m 'long or hypothesis'

test-kafka: $(COMPILED_TREE)/.built $(VENV)/.dev $(KAFKA)/.built ## Run the tests that need Apache Kafka, in under 20 minutes (ARGS='-k faults')
	$(COMPILED) $(REQUIRE_COMPILED) $(BIN)/python -m pytest --timeout 600 -m kafka tests/kafka $(ARGS)

# MAKE starts another make, in an environment of that interpreter's own.
PYTHON_VERSION = $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

test-python: ## Run the core's fast tests on another interpreter, on both builds (PYTHON=python3.12)
	$(MAKE) test-core VENV=.venv-$(PYTHON_VERSION) COMPILED_TREE=build/compiled-$(PYTHON_VERSION)

test-core: $(COMPILED_TREE)/.built $(VENV)/.core-test ## Run the core's fast tests on both builds, with nothing else installed
	$(COMPILED) $(REQUIRE_COMPILED) $(BIN)/python $(PYTEST) $(FAST) $(CORE_TESTS)
	$(INTERPRETED) $(BIN)/python $(PYTEST) $(FAST) $(CORE_TESTS)

# `python -X dev`, which pytest-xdist would not hand on to its workers. It turns asyncio's debug mode on.
DEBUG := PYTHONDEVMODE=1

test-debug: $(COMPILED_TREE)/.built $(VENV)/.core-test ## Run the core's fast tests in debug mode, on both builds
	$(DEBUG) $(COMPILED) $(REQUIRE_COMPILED) $(BIN)/python $(PYTEST) $(FAST) $(CORE_TESTS)
	$(DEBUG) $(INTERPRETED) $(BIN)/python $(PYTEST) $(FAST) $(CORE_TESTS)

test-compiled: $(COMPILED_TREE)/.built $(VENV)/.dev ## Run pytest on the compiled core (ARGS='tests/core/test_sweep.py -k slice')
	$(COMPILED) $(REQUIRE_COMPILED) $(BIN)/python -m pytest $(ARGS)

test-interpreted: $(VENV)/.dev ## Run pytest on the interpreted core (ARGS='tests/core/test_sweep.py -k slice')
	$(INTERPRETED) $(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.dev ## Check style, formatting, the direction of imports and the workflows
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(INTERPRETED) $(BIN)/lint-imports
	$(BIN)/zizmor --offline --quiet .github

types: $(VENV)/.pyright ## Check types: all by mypy, strictly, and what users copy by pyright, too
	$(BIN)/mypy
	rm -rf build/programs
	$(BIN)/python -m tests.docs.programs build/programs
	$(BIN)/pyright --pythonpath $(BIN)/python$(EXE)

# Elsewhere all packages are installed, which hides one that is missing. Here each target finds those of the
# targets before it.
programs: $(COMPILED_TREE)/.built $(UV) ## Run the demo, and the examples' --help, without what the tests install
	$(UV) venv --quiet --clear build/programs-venv
	$(MAKE) serve VENV=build/programs-venv UV=$(UV) ARGS=--help
	$(MAKE) demo VENV=build/programs-venv UV=$(UV) ARGS='--duration 2'
	$(MAKE) broker VENV=build/programs-venv UV=$(UV) ARGS=--help
	$(MAKE) delayed VENV=build/programs-venv UV=$(UV) ARGS=--help

SPHINX := $(INTERPRETED) $(BIN)/sphinx-build --nitpicky --fail-on-warning --quiet --fresh-env -d build/doctrees

docs: $(VENV)/.docs ## Build the documentation in build/docs, strictly
	$(SPHINX) -b html docs build/docs

test-docs: docs ## Build the documentation, and run its programs and its tests
	$(INTERPRETED) $(BIN)/python -m pytest -q tests/docs

docs-links: $(VENV)/.docs ## Check the documentation's links to other sites (needs the internet)
	$(SPHINX) -b linkcheck docs build/docs-links

dist: $(VENV)/.core-test ## Build the source archive and the wheel without compiled modules, into dist
	rm -rf dist
	PURGATORY_PURE_PYTHON=1 $(BIN)/python -m build --no-isolation

bench: $(COMPILED_TREE)/.built $(VENV)/.bench ## Measure against the alternatives, in some minutes (ARGS='--help')
	$(COMPILED) $(BIN)/python -m benchmarks $(ARGS)

RUNS := docs/benchmarks/runs
# The published runs stay until the last new one is there.
NEW_RUNS := build/benchmark-runs

bench-full: $(COMPILED_TREE)/.built $(VENV)/.bench ## Measure all, up to a million waits and on both loops, in three hours, into docs/benchmarks
	rm -rf $(NEW_RUNS)
	mkdir -p $(NEW_RUNS)
	$(COMPILED) $(BIN)/python -m benchmarks waits timers load journal dashboard delayed signals --full --json $(NEW_RUNS)/asyncio.json
	$(COMPILED) $(BIN)/python -m benchmarks waits timers longpoll --full --loop uvloop --json $(NEW_RUNS)/uvloop.json
	cp $(RUNS)/kafka.json $(NEW_RUNS)
	rm -rf docs/benchmarks
	mkdir -p docs/benchmarks
	mv $(NEW_RUNS) $(RUNS)
	$(MAKE) bench-report

bench-kafka: kafka $(COMPILED_TREE)/.built $(VENV)/.bench ## Measure beside Kafka's own purgatory, in twelve minutes, into docs (needs a JDK and Maven)
	mkdir -p $(NEW_RUNS)
	$(COMPILED) $(BIN)/python -m benchmarks kafka --full --repetitions 4 --json $(NEW_RUNS)/kafka.json
	mv $(NEW_RUNS)/kafka.json $(RUNS)
	$(MAKE) bench-report

# Beside DuckDB; up to a hundred million operations, in two hours, and 40 GB.
bench-pipeline: $(COMPILED_TREE)/.built $(VENV)/.bench ## Measure the Spark pipeline at scale, in hours (ARGS='--sizes 100_000' in 20 minutes)
	$(COMPILED) $(BIN)/python -m benchmarks pipeline --full $(ARGS)

bench-report: $(VENV)/.bench ## Write the pages of docs/benchmarks from the runs kept there
	$(COMPILED) $(BIN)/python -m benchmarks report $(wildcard $(RUNS)/*.json)

clean: ## Remove the environments and what was built
	rm -rf .venv* build dist *.egg-info .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

$(UV):
	@echo "Making the environment $(VENV)."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv

# Copies the package, and compiles its core where there is a C compiler.
$(COMPILED_TREE)/.built: setup.py $(shell find purgatory -type f -not -name '*.pyc') | $(VENV)/.build
	@rm -rf $(COMPILED_TREE)
	@echo "Building the core in $(COMPILED_TREE), which takes some minutes with a C compiler."
	$(REQUIRE_COMPILED) $(BIN)/python setup.py --quiet build --build-base $(COMPILED_TREE)/temporary --build-lib $(COMPILED_TREE)
	@$(COMPILED) $(BIN)/python -c $(WHICH_BUILD)
	@touch $@

WHICH_BUILD := 'import purgatory; print("$(COMPILED_TREE): the core is", "compiled." if purgatory.COMPILED else "interpreted, \
because there is no C compiler or no Python.h. Install both and run `make clean` to get the compiled core.")'

$(KAFKA)/.built: tests/kafka/pom.xml
	@command -v mvn >/dev/null && javac -version 2>&1 | grep -Eq '^javac (1[7-9]|[2-9][0-9])' || { echo $(NO_MAVEN) >&2; exit 1; }
	rm -rf $(KAFKA)
	mvn --quiet --batch-mode --file $< dependency:copy-dependencies
	@touch $@

NO_MAVEN := "Apache Kafka needs Maven and a JDK, 17 or newer: apt-get install maven openjdk-17-jdk-headless"

$(VENV)/.build: $(UV) pyproject.toml constraints.txt
	@echo "Installing what builds the core into $(VENV)."
	$(INSTALL) --group build
	@touch $@

$(VENV)/.demo: $(VENV)/.build
	$(INSTALL) --extra journal --extra uvloop --group examples
	@touch $@

$(VENV)/.spark: $(VENV)/.demo
	$(INSTALL) --extra spark
	@touch $@

$(VENV)/.longpoll: $(VENV)/.build
	@echo "Installing FastAPI, uvicorn and the client of PostgreSQL into $(VENV)."
	$(INSTALL) --extra postgres --extra uvloop --extra web --group longpoll
	@touch $@

$(VENV)/.broker: $(VENV)/.demo
	$(INSTALL) --extra uvloop --group broker
	@touch $@

$(VENV)/.delayed: $(VENV)/.broker
	$(INSTALL) --group delayed
	@touch $@

$(VENV)/.bench: $(VENV)/.demo
	$(INSTALL) --all-extras --group benchmarks
	@touch $@

$(VENV)/.java: $(VENV)/.dev
	$(INSTALL) --group java
	@touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(INSTALL) --group docs
	@touch $@

$(VENV)/.pyright: $(VENV)/.dev
	$(INSTALL) --group pyright
	@touch $@

$(VENV)/.core-test: $(VENV)/.build
	$(INSTALL) --extra journal --extra metrics --extra nats --extra otel --extra postgres --extra redis --extra uvloop --group core-test
	@touch $@

$(VENV)/.dev: $(VENV)/.build
	$(INSTALL) --all-extras --group lint --group test
	@touch $@
