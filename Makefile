# `make` alone shows the targets.
PYTHON ?= python3
SIZES ?= 20k,1m
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
export PIP_NO_INPUT := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Where it is set, each process compiles all modules and all tests anew: ten seconds of each run of the tests.
unexport PYTHONDONTWRITEBYTECODE
# What takes minutes of itself is left to `make test-all`.
BUT := and not long
# Those on Spark are in a folder of their own, which needn't be read for the others.
PLAIN := $(BIN)/python -m pytest -n 2 --dist worksteal --ignore=tests/spark

.DEFAULT_GOAL := help
.PHONY: help build test test-all test-plain test-spark test-fast mutants fuzz judge lines values crash soak bench lint clean java chromium again

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: java $(INSTALLED) ## Install, write a week of sample orders if there are none, and build all models
	@if ! ls data/orders/* >/dev/null 2>&1; then $(BIN)/sqlrun simulate --out data/orders; fi
	$(BIN)/sqlrun build
	@$(BIN)/sqlrun show restaurant_windows --where "window_hours = 24" --limit 5

test: java chromium $(INSTALLED) ## Run the tests, those on Spark included, but those that take minutes
	@$(MAKE) --no-print-directory --jobs=2 --keep-going test-spark test-plain

test-all: java chromium $(INSTALLED) ## Run all tests
	@$(MAKE) --no-print-directory --jobs=2 --keep-going BUT= test-spark test-plain

# Both at once: while Spark plans, or waits for a disk, one of two cores is idle.
test-spark: java $(INSTALLED) ## Run those on Spark alone
	$(BIN)/python -m pytest -m "spark $(BUT)" -o cache_dir=.pytest_cache/spark tests/spark

test-plain: $(INSTALLED) ## Run all but those on Spark
	$(PLAIN) -m "not spark $(BUT)"

test-fast: $(INSTALLED) ## Run the tests that need no Java and take no more than a moment
	$(PLAIN) -m "not spark and not slow"

mutants: $(INSTALLED) ## Break each rule on purpose, and see that a case notices
	$(BIN)/python -m tests.mutate

fuzz: $(INSTALLED) ## Try random queries for MINUTES=10; what fails becomes a case in tests/cases/found
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),10)

judge: $(INSTALLED) ## Have Spark judge N=1000 random queries by their text; what differs becomes a case in tests/cases/found
	$(BIN)/python -m tests.judge --count $(or $(N),1000)

lines: $(INSTALLED) ## Judge N=100000 random and broken lines on ENGINE=duckdb or spark and by a strict reader
	$(BIN)/python -m tests.line_fuzz --lines $(or $(N),100000) --engine $(or $(ENGINE),duckdb)

values: $(INSTALLED) ## Play hostile values through N=20 projects of TICKS=6, upkeep between (SEED=1, ENGINE=spark or auto)
	$(BIN)/python -m tests.values --projects $(or $(N),20) --ticks $(or $(TICKS),6) --seed $(or $(SEED),1) --engine $(or $(ENGINE),duckdb)

crash: $(INSTALLED) ## Kill N=100 builds at random moments (ENGINE=spark or auto: the JVM too), then hammer 200 ticks with a reader
	$(BIN)/python -m tests.crash --kills $(or $(N),100) --ticks $(or $(TICKS),200) --engine $(or $(ENGINE),duckdb)

soak: $(INSTALLED) ## Tick 3,000 times (TICKS=... ENGINE=spark) in one process: no memory, thread, file or folder grows
	$(BIN)/python -m tests.soak --ticks $(or $(TICKS),3000) --engine $(or $(ENGINE),duckdb)

bench: java $(INSTALLED) ## Compare sqlrun with its rivals at SIZES=20k,1m orders (CONTENDERS=... WITHOUT=... TICKS=3 BACKFILL=5m)
	$(BIN)/python -m benchmarks.bench --sizes "$(SIZES)" --contenders "$(CONTENDERS)" --without "$(WITHOUT)" \
		--ticks $(or $(TICKS),3) --backfill "$(BACKFILL)"

lint: $(INSTALLED) ## Check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean: ## Remove what was installed and built; data/ stays, it may be yours
	rm -rf $(VENV) warehouse target dist build spark-warehouse metastore_db derby.log *.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find sqlrun tests -name __pycache__ -type d -prune -exec rm -rf {} +

java:
	@.ci/require java

chromium:
	@.ci/require chromium

# Installing takes a minute, so it is done again only after pyproject.toml changed. An environment that can't
# import sqlrun from this folder (moved, half made, its Python gone) is made anew.
ifneq ($(shell $(BIN)/python -I -c 'import os, sqlrun; print(os.path.samefile(*sqlrun.__path__, "sqlrun"))' 2>/dev/null),True)
CLEAR := --clear
$(INSTALLED): again
endif
$(INSTALLED): pyproject.toml
	@.ci/require python $(PYTHON)
	$(PYTHON) -m venv $(CLEAR) $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@
