# Everything runs in environments that these rules create: only Python 3.11+ and make are needed.
PYTHON ?= python3
UV_VERSION := 0.13.9
BIN := .venv/bin
UV := .uv/bin/uv
export UV_PROJECT_ENVIRONMENT := .venv
export UV_PYTHON_DOWNLOADS := never
# An environment of the caller's own must not leak into ours.
unexport VIRTUAL_ENV PYTHONPATH

.PHONY: help demo test check lint types imports unit interop envs bench docs format build clean

help:  ## Show the rules
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(UV):
	$(PYTHON) -m venv .uv
	.uv/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

# The stamp of the demo environment: the package and one real server, nothing for development.
.venv/.demo: $(UV) uv.lock pyproject.toml
	$(UV) sync --quiet --locked --inexact --no-default-groups --group demo --python $(PYTHON)
	@touch $@

.venv/.dev: $(UV) uv.lock pyproject.toml
	$(UV) sync --quiet --locked --all-groups --python $(PYTHON)
	@touch $@ .venv/.demo

.envs/demo/.stamp: $(UV) scripts/demo-old.txt
	$(UV) venv -q --no-project --clear --python $(PYTHON) .envs/demo
	$(UV) pip sync -q --require-hashes --python .envs/demo/bin/python scripts/demo-old.txt
	@touch $@

demo: .venv/.demo .envs/demo/.stamp  ## The gateway before two real servers of different eras and two that ask, used, audited and stopped
	$(BIN)/python scripts/demo.py --old .envs/demo/bin/python

test: check unit  ## Everything: checks, then all tests with coverage

check: lint types imports  ## Style, types, import directions

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.dev
	$(BIN)/pyright

imports: .venv/.dev
	$(BIN)/lint-imports

envs: .venv/.dev  ## The separate environments of the interop tests (old SDK, npm servers)
	$(BIN)/python tests/interop/envs/install.py

unit: .venv/.dev envs
	$(BIN)/python -m coverage erase
	$(BIN)/python scripts/run_tests.py
	$(BIN)/python -m coverage combine -q
	$(BIN)/python scripts/coverage_gate.py

bench: .venv/.dev  ## Measure the gateway beside others, and write benchmarks/RESULTS.md; BENCH=quick is shorter
	$(BIN)/python -m benchmarks.gateway $(if $(filter quick,$(BENCH)),--quick)

docs: .venv/.dev  ## Regenerate the generated pages
	$(BIN)/python scripts/generate_schema.py
	$(BIN)/python scripts/generate_docs.py

format: .venv/.dev  ## Format and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

build: .venv/.dev  ## Wheel and source distribution in dist/
	$(UV) build --quiet

clean:  ## Remove every environment and cache
	rm -rf .venv .uv .envs dist build .coverage* .pytest_cache .ruff_cache .hypothesis .import_linter_cache
