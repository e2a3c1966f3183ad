# Everything happens in .venv, which each target makes and fills by itself.
PYTHON ?= $(firstword $(foreach name,python3.13 python3.12 python3.11 python3,$(shell $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))
BIN := .venv/bin
INSTALLED := .venv/installed
READY := .venv/ready
FOR ?= 45s
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile

# The suite starts many processes; without cached byte code each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run broker test check fix docs bench soak clean java

help: ## Say what each target does
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

SOURCES := pyproject.toml setup.py $(wildcard src/barnabas/records/*.pyx src/barnabas/records/*.pxi src/barnabas/client/*.pyx)

# What `make run` needs; `make test` needs more.
$(INSTALLED): $(SOURCES)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed and was not found; install it, or say: make PYTHON=/path/to/python3"; exit 1; }
	@echo "Setting up .venv with $(PYTHON): once, a minute or two …"
	@$(PYTHON) -m venv .venv || { echo "$(PYTHON) cannot make virtual environments; on Debian: apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[spark]'
	@touch $(INSTALLED)

$(READY): $(INSTALLED)
	@echo "Adding what the tests and checks need …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(READY)

# Spark alone needs Java: installed for root on Debian, asked for in one sentence elsewhere.
java: $(INSTALLED)
	@$(BIN)/python -m barnabas.cli.java

run: $(INSTALLED) java ## The main job end to end, live, for about a minute (FOR=5m: longer)
	@$(BIN)/barnabas demo --for $(FOR) $(DEMO)

broker: $(INSTALLED) ## Start a broker on localhost:9092 with its data in ./barnabas-data
	@$(BIN)/barnabas start

check: $(READY) ## Format, lint, types, layers, fast tests: before each commit
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) -m 'not slow and not soak'

test: $(READY) java ## The whole suite, compiled kernel and plain one: what CI runs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(BIN)/barnabas version
	BARNABAS_KERNEL=plain $(PYTEST) tests/records -m 'not soak'
	$(PYTEST) -m 'not soak' --ignore tests/spark
# In processes of their own: PySpark's callbacks die silently (select) where 1,024 files are open.
	$(PYTEST) -m 'not soak' tests/spark

soak: $(READY) java ## The long random and kill -9 runs, an hour or so
	$(PYTEST) -m soak --timeout 3600

fix: $(READY) ## Format and mend what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY) ## Write the generated pages in docs/reference anew
	$(BIN)/python -m barnabas.cli.reference docs/reference

bench: $(READY) ## Every benchmark, as ratios to a peer in the same run
	$(BIN)/python -m bench

clean: ## Remove the virtual environment and everything built or cached
	rm -rf .venv build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -f src/barnabas/records/_kernel.c src/barnabas/client/_hot.c src/barnabas/records/*.so src/barnabas/client/*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
