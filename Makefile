# `make` alone shows the targets.
PYTHON ?= python3
SIZES ?= 20k,1m
VENV := .venv
SPARK_JAR := sqlrun/engines/spark/sqlrun-spark.jar
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
export PIP_NO_INPUT := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# If it is set, each process compiles all modules and tests again: ten seconds of each test run.
unexport PYTHONDONTWRITEBYTECODE
# Only `make test-all` runs the long tests, SHARE=1/2 of them every other one, SHARE=1/8 every eighth.
BUT := and not long
SHARE := 1/1
# The tests on Spark have their own folder, so that the others needn't collect it.
PLAIN := $(BIN)/python -m pytest -n 2 --dist worksteal --ignore=tests/spark

.DEFAULT_GOAL := help
.PHONY: help build test test-all test-plain test-spark test-fast mutants fuzz judge lines values crash soak bench ecosystem lint clean servers java chromium maven again

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: java $(INSTALLED) $(SPARK_JAR) ## Install, write a week of sample orders if there are none, and build all models
	@if ! ls data/orders/* >/dev/null 2>&1; then $(BIN)/sqlrun simulate --out data/orders; fi
	$(BIN)/sqlrun build
	@$(BIN)/sqlrun show restaurant_windows --where "window_hours = 24" --limit 5

test: java chromium servers $(INSTALLED) ## Run the tests, on Spark too, without the long ones
	@$(MAKE) --no-print-directory --jobs=2 --keep-going test-spark test-plain

test-all: java chromium servers $(INSTALLED) ## Run all tests, or a SHARE=1/2 of the long ones
	@$(MAKE) --no-print-directory --jobs=2 --keep-going BUT= SHARE=$(SHARE) test-spark test-plain

# Run both at once: while Spark plans, or waits for a disk, one of two cores is idle.
test-spark: java $(INSTALLED) ## Run only the tests on Spark
	$(BIN)/python -m pytest -m "spark $(BUT)" --share $(SHARE) -o cache_dir=.pytest_cache/spark tests/spark

test-plain: $(INSTALLED) ## Run the tests that need no Spark
	$(PLAIN) -m "not spark $(BUT)" --share $(SHARE)

test-fast: $(INSTALLED) ## Run the tests that need no Java and take a moment
	$(PLAIN) -m "not spark and not slow and not servers"

mutants: $(INSTALLED) ## Break each rule on purpose, and check that a case notices
	$(BIN)/python -m tests.mutate

fuzz: $(INSTALLED) ## Run random queries for MINUTES=10; failures become cases in tests/cases/found
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),10)

judge: $(INSTALLED) ## Compare N=1000 random queries with Spark; differences become cases in tests/cases/found
	$(BIN)/python -m tests.judge --count $(or $(N),1000)

lines: $(INSTALLED) ## Read N=100000 random and broken lines on ENGINE=duckdb or spark, compared with a strict reader
	$(BIN)/python -m tests.line_fuzz --lines $(or $(N),100000) --engine $(or $(ENGINE),duckdb)

values: $(INSTALLED) ## Run hostile values through N=20 projects of TICKS=6, with file maintenance (SEED=1, ENGINE=spark or auto)
	$(BIN)/python -m tests.values --projects $(or $(N),20) --ticks $(or $(TICKS),6) --seed $(or $(SEED),1) --engine $(or $(ENGINE),duckdb)

crash: $(INSTALLED) ## Kill N=100 builds at random moments (ENGINE=spark or auto: the JVM too; SOURCE=kafka: the broker too; STORE=s3, azure or gcs), then run 200 ticks beside a reader
	$(BIN)/python -m tests.crash --kills $(or $(N),100) --ticks $(or $(TICKS),200) --engine $(or $(ENGINE),duckdb) \
		--source $(or $(SOURCE),files) --store $(or $(STORE),disk)

soak: $(INSTALLED) ## Run 3,000 ticks (TICKS=... ENGINE=spark) in one process: memory, threads, files and folders must not grow
	$(BIN)/python -m tests.soak --ticks $(or $(TICKS),3000) --engine $(or $(ENGINE),duckdb)

bench: java $(INSTALLED) ## Compare sqlrun with its rivals at SIZES=20k,1m orders (CONTENDERS=... WITHOUT=... TICKS=3 BACKFILL=5m)
	$(BIN)/python -m benchmarks.bench --sizes "$(SIZES)" --contenders "$(CONTENDERS)" --without "$(WITHOUT)" \
		--ticks $(or $(TICKS),3) --backfill "$(BACKFILL)"

ecosystem: $(INSTALLED) ## Ask other tools about the files in deploy/ and dbt's tools about the artifacts, each in its own environment
	$(BIN)/python -m tests.deploy.ecosystem
	$(BIN)/python -m tests.artifacts.ecosystem

lint: $(INSTALLED) ## Check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

servers: java maven $(INSTALLED) $(SPARK_JAR) ## Fetch or build the servers that tests start, once, into the user's cache
	@$(BIN)/python -m tests.support.servers.jars
	@$(BIN)/python -m tests.support.servers.object_stores
	@$(BIN)/python -m tests.support.servers.azure
	@$(BIN)/python -m tests.support.servers.gcs

clean: ## Remove what was installed and built, but not data/, which may be yours
	rm -rf $(VENV) warehouse target dist build spark-warehouse metastore_db derby.log *.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find sqlrun tests -name __pycache__ -type d -prune -exec rm -rf {} +

java:
	@.ci/require java

chromium:
	@.ci/require chromium

maven:
	@.ci/require maven

# The log store for warehouses in S3, and the catalog for readers. Without Maven all else works.
$(SPARK_JAR): java/spark/pom.xml $(wildcard java/spark/src/main/java/org/sqlrun/*/*.java)
	@if command -v mvn >/dev/null; then mvn -q -B -f java/spark/pom.xml package && touch $@; \
	else echo "There is no Maven: Spark can't write a warehouse in S3, nor read the catalog of published tables, for lack of $@." >&2; fi

# Installing takes a minute, so it runs again only after a change of pyproject.toml. An environment that can't
# import sqlrun from this folder (moved, incomplete, its Python gone) is created again.
ifneq ($(shell $(BIN)/python -I -c 'import os, sqlrun; print(os.path.samefile(*sqlrun.__path__, "sqlrun"))' 2>/dev/null),True)
CLEAR := --clear
$(INSTALLED): again
endif
$(INSTALLED): pyproject.toml
	@.ci/require python $(PYTHON)
	$(PYTHON) -m venv $(CLEAR) $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@
