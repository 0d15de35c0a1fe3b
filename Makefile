# mm2slo: every target sets up what it needs (virtual environment, packages, Java).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Labs wait: more workers than cores. Each costs a collection of all tests.
WORKERS ?= 4
PYTEST = $(BIN)/pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder --durations 50

# Tests start hundreds of Python processes: compiled modules halve their CPU time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-unit test-long test-deploy check generate docs fmt bench screenshots java postgres prometheus chromium axe splunk-logging appinspect image-tools release-check setup clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: setup java ## Run two Kafka clusters, MirrorMaker 2 and the exporter, then audit the traffic
	@$(BIN)/mm2slo demo || [ $$? -eq 130 ]  # Ctrl-C is the normal exit of the demo

test: setup java prometheus postgres ## Run the default test suite (unit, spec, integration on real Kafka)
	@$(PYTEST) -m "not long and not benchmark and not deploy"

test-unit: WORKERS := 2
test-unit: setup ## Run the unit tests alone, without Kafka, Spark and Prometheus
	@$(PYTEST) --durations 10 -m "not lab and not long and not spark and not promtool" tests/unit

test-long: setup java prometheus postgres chromium axe splunk-logging image-tools ## Run the long suite (Kafka Connect, other versions of Kafka, long faults, deep searches)
	@HYPOTHESIS_PROFILE=deep $(PYTEST) -m "long or property"

test-deploy: setup ## Install the Helm chart on a kube-apiserver, which the first run builds
	@KUBE_APISERVER=$$(deploy/scripts/kube-apiserver) && export KUBE_APISERVER && $(PYTEST) -n 0 -m deploy

check: setup ## Lint, types, import contracts, generated files
	@deploy/scripts/check

generate: setup ## Write all files generated from the code: pages of docs, alerts, dashboards
	@$(BIN)/python -m mm2slo_cli.docs

docs: ## Build the documentation as a site in site/, with search, links and anchors checked
	@PYTHON=$(PYTHON) deploy/scripts/docs

fmt: setup ## Format the code and fix what ruff can fix
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix-only --quiet .

bench: setup java ## Run the benchmarks and print their figures (docs/performance.md)
	@deploy/scripts/bench

screenshots: setup java prometheus chromium ## Run outages and create the screenshots in docs/images
	@deploy/scripts/screenshots

setup: $(READY) ## Create the virtual environment and install the locked packages

$(READY): pyproject.toml requirements-dev.lock
	@deploy/scripts/setup $(PYTHON) $(VENV)
	@touch $(READY)

java: ## Find Java 17 or newer, or install Debian's openjdk-17-jre-headless
	@deploy/scripts/java

prometheus: ## Find Prometheus and Alertmanager, or install Debian's packages
	@deploy/scripts/prometheus

postgres: ## Find PostgreSQL's initdb and postgres, or install Debian's package
	@deploy/scripts/postgres

chromium: ## Find Chromium, or install Debian's package
	@deploy/scripts/chromium

axe: ## Find axe (accessibility checks of pages), or fetch it with npm
	@deploy/scripts/axe

splunk-logging: ## Find splunk-logging (a sender of events, in tests), or fetch it with npm
	@deploy/scripts/splunk-logging

appinspect: ## Install AppInspect (checks of Splunk apps) in its own environment, for the long suite
	@PYTHON=$(PYTHON) deploy/scripts/appinspect

image-tools: ## Find buildah, mmdebstrap and bubblewrap, or install Debian's packages
	@deploy/scripts/image-tools

release-check: setup ## Build the files of a release in dist/ and check them (docs/release.md)
	@deploy/scripts/release-check

clean: ## Remove the virtual environment and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
