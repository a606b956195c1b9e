# Each target sets up all that it needs in .venv; Python 3.11+ and network to PyPI are enough.
# make room R=emulator/ptx: the linters, and for a minute the tests that mirror one room (tools/room.py; R=? lists the rooms).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCE ?= /usr/src/linux-source-6.12.tar.xz
JOBS ?= 2
DEVICE ?= NV

SECONDS ?= 600
SEED ?= 0
RESULTS ?= .venv/campaign.sqlite

.PHONY: demo test units room test-nv sweep lint docs bench fuzz gen-check clean

demo: $(VENV)/.run
	@$(BIN)/tinyhw demo

# THOROUGH=1: many times the examples, from new seeds (tests/strength.py); about an hour.
test: export THOROUGH := $(THOROUGH)
test: $(VENV)/.test
	@$(MAKE) --no-print-directory -j2 lint units

# pytest's rewriting of assertions takes longer than it takes to collect all tests: what has failed runs again with it.
units: PYTEST = $(BIN)/python -m pytest --dist worksteal -n $(JOBS)
units: $(VENV)/.test
	$(if $(TESTS),$(PYTEST) $(TESTS),$(PYTEST) --assert=plain || { $(PYTEST) --last-failed --last-failed-no-failures none; false; })

room: $(VENV)/.test
	@tests=$$($(BIN)/python -m tinyhw.tools.room $(R)) && $(MAKE) --no-print-directory -j2 lint units TESTS="--within 60 $$tests"

# The ladder that an NVIDIA card is brought up by; ARGS="--qmd 3.0" and so on. Then all operators on
# it, and its figures beside CUDA's. MOCKGPU=sm_90 has a mock card take them.
test-nv: $(VENV)/.test
	MOCKGPU=$(MOCKGPU) $(BIN)/tinyhw bringup NV $(ARGS)
	MOCKGPU=$(MOCKGPU) $(BIN)/python -m tests.tensor.operators.sweep --device NV --jobs 1
	$(BIN)/tinyhw bench --device NV

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/mypy

# Every operator's cases on one device: DEVICE=NV, CUDA, AMD (mocks), LLVM, ...
sweep: $(VENV)/.test
	$(BIN)/python -m tests.tensor.operators.sweep --device $(DEVICE) --jobs $(JOBS) --slowest 5

docs: $(VENV)/.test
	$(BIN)/python -m mkdocs build --strict --quiet

bench: $(VENV)/.test
	$(BIN)/tinyhw bench

fuzz: $(VENV)/.test
	$(BIN)/python -m tinyhw.tools.fuzz.campaign --seconds $(SECONDS) --seed $(SEED) --jobs $(JOBS) --results $(RESULTS)

gen-check: $(VENV)/.gen
	$(BIN)/tinyhw gen check --source $(SOURCE)

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("tinyhw needs Python 3.11 or newer, this is " + sys.version) if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@ $(VENV)/.run

$(VENV)/.gen: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --editable '.[gen]'
	$(BIN)/python -m pip install --quiet --no-deps --force-reinstall libclang==18.1.1
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
