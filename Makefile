# Everything a user or a contributor runs. `make help` lists the targets.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
N      ?= 2000
SEED   ?= 1
LAB    := .lab
SEEDS  ?= 101 102 103
LAB_N  := $(if $(filter command line environment,$(origin N)),$(N),100)
MUTANTS_N := $(if $(filter command line environment,$(origin N)),$(N),240)
STAMP  := $(VENV)/.ready
SITE   := build/site-env
# what a slim installation leaves out is needed for a few exports and the interactive page alone
LEAN   := import re, tomllib; \
	print(*(one for one in tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'] \
	if re.match(r'[\w-]+', one)[0] not in ('wandb', 'tensorboard', 'plotly', 'pandas')), sep='\n')

.DEFAULT_GOAL := help
.PHONY: help setup demo test types check fuzz oracles coverage lab lab-lock accuracy golden anywhere mutants bench docs words pictures site dist lock fixtures

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q $(VENV)/lib forensics || true
	@touch $@

setup: $(STAMP) ## make .venv with the locked dependencies

demo: setup ## the verdict of a bundled failed run
	@$(BIN)/forensics triage fixtures/runs/nan-blowup-kempnerforge --exit-zero

test: setup ## run the test suite; what fails is run again with the values of its asserts
	$(BIN)/python -m pytest -n auto --dist worksteal --assert=plain || \
		{ $(BIN)/python -m pytest --last-failed --last-failed-no-failures none; exit 1; }

types: setup ## check the types of the package
	$(BIN)/basedpyright --pythonpath $(BIN)/python

coverage: setup ## the suite, and the share of lines and branches that it runs
	$(BIN)/python -m pytest -n auto --dist worksteal --cov=forensics --cov-branch --cov-report=term:skip-covered

check: setup ## format, lint, types, tests: what CI runs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(MAKE) -j2 types test

fuzz: setup ## mutate and amplify inputs of every ingester, and ask rules and renderers: make fuzz N=2000
	$(BIN)/python tests/fuzz/harness.py --n $(N) --amplify

oracles: setup ## every reader against its peer by value: 500 examples each, and at true size (minutes, 4 GB of disk)
	FORENSICS_EXAMPLES=500 FORENSICS_TRUE_SIZE=1 $(BIN)/python -m pytest tests/oracles

$(LAB)/.ready: tests/lab/requirements.lock
	$(PYTHON) -m venv $(LAB)/env
	$(LAB)/env/bin/python -m pip install -q --disable-pip-version-check -r tests/lab/requirements.lock
	@touch $@

lab-lock: # pin what tests/lab/requirements.txt asks for
	$(PYTHON) -m venv $(LAB)/env
	$(LAB)/env/bin/python -m pip install -q --disable-pip-version-check -r tests/lab/requirements.txt
	$(LAB)/env/bin/python -m pip list --format=freeze --exclude pip | sed 's/+.*//' > tests/lab/requirements.lock

lab: setup $(LAB)/.ready ## real small jobs with injected faults, and how often the answers are right: make lab SEED=7 N=100
	$(BIN)/python tests/lab/lab.py --seed $(SEED) --n $(LAB_N) --out $(LAB)/out/$(SEED) --python $(LAB)/env/bin/python \
		--forensics $(BIN)/forensics -v

accuracy: setup $(LAB)/.ready ## score some seeds, and write the page that says how often answers are right
	for seed in $(SEEDS); do $(MAKE) lab SEED=$$seed N=$(LAB_N) || exit 1; done
	$(BIN)/python tests/lab/accuracy.py $(SEEDS:%=$(LAB)/out/%) > docs/explanation/accuracy.md

golden: setup ## the golden runs whose diagnosis changed
	$(BIN)/python tests/golden/runs.py

anywhere: setup ## all golden runs by every engine and from a bucket (install ray, obstore and moto[server] beside; an hour)
	POLARS_MAX_THREADS=1 $(BIN)/python tests/golden/anywhere.py --ways processes fleet shards bucket --jobs 2
	POLARS_MAX_THREADS=1 $(BIN)/python tests/golden/anywhere.py --ways ray

mutants: setup ## change what decides, one number or operator at a time: does an answer notice? make mutants SEED=1 N=240
	$(BIN)/python tests/mutants/killed.py --n $(MUTANTS_N) --seed $(SEED)

bench: setup ## speed and memory as ratios against peers
	$(BIN)/python bench/startup.py
	$(BIN)/python bench/text_log.py
	$(BIN)/python bench/tensorboard.py
	$(BIN)/python bench/wandb.py
	$(BIN)/python bench/trace.py
	$(BIN)/python bench/memory_snapshot.py
	$(BIN)/python bench/commands.py
	$(BIN)/python bench/growth.py

docs: setup ## write docs/reference, what commands print on the pages, and the picture of the terminal
	$(BIN)/python docs/make_reference.py docs/reference
	$(BIN)/python docs/make_pictures.py terminal

words: setup ## every sentence that users read, with its place
	$(BIN)/python docs/words.py

pictures: setup ## draw docs/pictures anew (report.png needs playwright and chromium)
	$(BIN)/python docs/make_pictures.py

$(SITE)/.ready: pyproject.toml
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['dependency-groups']['docs'])" \
		| xargs $(SITE)/bin/python -m pip install -q --disable-pip-version-check
	@touch $@

site: setup $(SITE)/.ready ## build the site into build/site, with a page for each rule; it opens without a server
	$(BIN)/python docs/make_site.py docs build/docs
	$(SITE)/bin/zensical build --strict -f mkdocs.yml

dist: setup ## the source archive, and the wheel built from it; both tried apart from the checkout
	rm -rf build/dist
	$(BIN)/python -m hatchling build -t sdist -d build/dist
	mkdir build/dist/unpacked && tar -xf build/dist/*.tar.gz -C build/dist/unpacked --strip-components 1
	$(MAKE) -C build/dist/unpacked setup PYTHON=$(PYTHON) VENV=$(CURDIR)/build/dist/env
	cd build/dist/unpacked && $(CURDIR)/build/dist/env/bin/python -m hatchling build -t wheel -d ..
	$(MAKE) -C build/dist/unpacked test PYTHON=$(PYTHON) VENV=$(CURDIR)/build/dist/env

fixtures: setup ## make the fixtures anew
	@for script in fixtures/make/*.py; do $(BIN)/python $$script || exit 1; done

lock: setup ## resolve the dependencies anew
	uv pip compile -q --universal --generate-hashes --no-strip-extras --no-emit-index-url --no-header --group dev --group build \
		-o requirements.lock pyproject.toml
	$(BIN)/python -c "$(LEAN)" | uv pip compile -q --universal --generate-hashes --no-strip-extras --no-emit-index-url --no-header \
		-c requirements.lock -o requirements-slim.lock -
