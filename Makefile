# Needs Python 3.11+ and make; everything else is found, fetched or built on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet
SOURCES := autoscaler bench common dashboards deploy examples metrics_adapter operator pe_runtime sdk tests website

export PYTHONDONTWRITEBYTECODE ?=

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types imports unit simulation soak replay torture torture-consistent integration test-long test-node fuzz docs audit generate clean

help: ## Show this help
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 22

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Streamgraft needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing Streamgraft and its dependencies into $(VENV) (about a minute)"
	@$(PIP) 'pip>=25.1'
	@$(PIP) -c constraints.txt -e '.[local]' --group demo
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@$(PIP) -c constraints.txt --group dev
	@touch $@

demo: $(VENV)/.run ## All set-up plus the main job; DAYS=N: days to replay (31)
	@$(BIN)/python -m examples.flights.demo $(if $(DAYS),--days $(DAYS))

test: lint types imports unit simulation integration ## All set-up plus all tests but the long ones

check: lint types imports unit simulation ## Lint, types, unit tests, half of the simulation: no cluster, 3 minutes
check: SEEDS ?= 1000

lint: $(VENV)/.dev ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.dev ## mypy, strict
	@$(BIN)/mypy

imports: $(VENV)/.dev ## Who may import whom
	@$(BIN)/lint-imports

unit: $(VENV)/.dev ## Unit tests, on all cores
	@$(BIN)/python -m pytest -q -n auto --dist worksteal -m 'not integration and not e2e'

simulation: $(VENV)/.dev ## SEEDS=N (2,000) of the operator in a simulated cluster (docs/develop/simulation.md)
	@$(BIN)/python -m tests.simulation $(if $(SEEDS),--seeds $(SEEDS))

soak: $(VENV)/.dev ## New seeds of the simulation for SECONDS=N or HOURS=N (default: one hour)
	@$(BIN)/python -m tests.simulation --first $$(date +%s)0000 \
		--seconds $(or $(SECONDS),$$(( $(or $(HOURS),1) * 3600 )))

replay: $(VENV)/.dev ## SEED=N: the trace of one seed of the simulation
	@$(BIN)/python -m tests.simulation --replay $(SEED)

torture: $(VENV)/.dev ## CHANGES=N random width changes (default: 200) with kills and edits, SEED=N to repeat, KIND: of region
	@$(BIN)/python -m tests.e2e.torture $(if $(CHANGES),--changes $(CHANGES)) \
		$(if $(SEED),--seed $(SEED)) $(if $(KIND),--kind $(KIND))

torture-consistent: $(VENV)/.dev ## CHANGES=N cuts, rollbacks and width changes (100) with kills amid them, SEED=N to repeat
	@$(BIN)/python -m tests.e2e.torture.consistent $(if $(CHANGES),--changes $(CHANGES)) \
		$(if $(SEED),--seed $(SEED))

integration: $(VENV)/.dev ## Integration tests on real parts, two files at a time, then end-to-end tests
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile -rs --durations=40 -m 'integration and not e2e and not long'
	@$(BIN)/python -m pytest -q -rs --durations=20 -m 'e2e and not long'

test-long: $(VENV)/.dev ## Tests that take many minutes each (long forms of those in make test)
	@$(BIN)/python -m pytest -q -m long

test-node: $(VENV)/.dev ## The chart and a job on a real kubelet with containerd: root, Linux (docs/develop/release-checks.md)
	@$(BIN)/python -m tests.node

fuzz: $(VENV)/.dev ## Hostile data and requests, 10,000 cases and more: CASES=N of each kind
	@FUZZ_CASES=$(or $(CASES),1700) $(BIN)/python -m pytest -q tests/fuzz

docs: $(VENV)/.dev ## The documentation's site, into build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "build/site/index.html"

audit: ## Known vulnerabilities of what is pinned: asks the package index
	@$(PYTHON) -m venv .audit
	@.audit/bin/python -m pip install --disable-pip-version-check --quiet pip-audit
	@.audit/bin/pip-audit --strict --no-deps --disable-pip -r constraints.txt

generate: $(VENV)/.run ## Write generated files again (definitions, roles, dashboards, licences)
	@$(BIN)/python -m streamgraft_common.resources.crds deploy/crds
	@$(BIN)/python -m streamgraft_common.access deploy
	@$(BIN)/python -m dashboards.generate
	@$(BIN)/python -m tests.licences

generate-cluster: $(VENV)/.dev ## Render deploy/cluster from the Helm chart again (builds Helm once)
	@$(BIN)/python -m tests.chart.helm

bench-%: $(VENV)/.run ## bench-NAME: one benchmark (CASES: some of it); writes bench/results/NAME.json
	@$(BIN)/python -m bench.$(subst -,_,$*) $(CASES)

clean: ## Remove the virtual environment (the build cache in ~/.cache/streamgraft stays)
	rm -rf $(VENV)
