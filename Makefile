# Everything a checkout needs is made in it: a virtual environment per Python version in .venv/, extensions in place.

PYTHON ?= python3
ARGS ?=

# The virtual environment's name, such as 3.13 or pypy3.11; empty if PYTHON is missing or too old.
TAG := $(shell $(PYTHON) -c 'import sys; v = sys.version_info; v < (3, 11) and sys.exit(); \
    print(sys.implementation.name.replace("cpython", "") + "%d.%d" % v[:2] + sys.abiflags)' 2>/dev/null)
PURE := $(filter-out 0,$(EPOQUE_PURE))$(filter pypy%,$(TAG))
VENV := .venv/$(TAG)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -q $(ARGS)

say = @echo "== $(1) (Python $(TAG))"

# Where the compiled form is built as on a system with kqueue, over a library from tests/; and how the model is switched on.
PORTABLE := $(CURDIR)/build/portable-$(TAG)
ON_MODEL := EPOQUE_PURE=1 EPOQUE_TEST_LOOP=epoque EPOQUE_SELECTOR=kqueue PYTHONPATH=$(CURDIR)/tests/simulated
ON_LIBRARY := EPOQUE_TEST_LOOP=epoque EPOQUE_SELECTOR=kqueue PYTHONPATH=$(PORTABLE)/lib

# Where epoque lies as a wheel has it, for each version of Python it was built for. Needs GCC; EPOQUE_PGO=0 does without.
OPTIMISED := $(CURDIR)/build/optimised

.PHONY: help test test-kqueue test-optimised demo bench compat lint build optimised clean python
.DELETE_ON_ERROR:

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' Makefile
	@echo "Variables: PYTHON=python3.13 (any >= 3.11), ARGS=\"...\" (for the command a target runs)"
	@echo "Environment: EPOQUE_PURE=1 (interpreted, no compiler needed), EPOQUE_OPT=-O0 (compile fast, run slow)"

test: $(VENV)/.test build ## test epoque compiled, epoque interpreted, and the tests themselves on stock asyncio
ifeq ($(PURE),)
	$(call say,epoque compiled)
	@env -u EPOQUE_PURE EPOQUE_TEST_LOOP=epoque $(PYTEST)
endif
	$(call say,epoque interpreted)
	@EPOQUE_PURE=1 EPOQUE_TEST_LOOP=epoque $(PYTEST)
	$(call say,stock asyncio)
	@EPOQUE_TEST_LOOP=asyncio $(PYTEST) || { code=$$?; test $$code = 5 && test -n "$(strip $(ARGS))"; }

test-kqueue: $(VENV)/.test ## the tests on kqueue (Linux): interpreted over a model of it, compiled over a library
	$(call say,epoque interpreted on a model of kqueue)
	@$(ON_MODEL) $(PYTEST)
	@$(ON_MODEL) $(BIN)/python -m compat cpython --pure
	@$(ON_MODEL) $(BIN)/python -m examples.demo
ifeq ($(PURE),)
	$(call say,epoque compiled on a library that supplies kqueue)
	@mkdir -p $(PORTABLE)
	@$(CC) -O1 -shared -fPIC -Itests/headers/freebsd tests/kqueue_lib.c -o $(PORTABLE)/libkqueue.so
	@EPOQUE_KQUEUE_LIB=$(PORTABLE)/libkqueue.so EPOQUE_KQUEUE_INCLUDE=$(CURDIR)/tests/headers/freebsd EPOQUE_OPT=-O0 \
	    $(BIN)/python setup.py -q build --build-lib $(PORTABLE)/lib --build-temp $(PORTABLE)/temp
	@env -u EPOQUE_PURE $(ON_LIBRARY) $(PYTEST) --ignore tests/test_packaging.py
endif

test-optimised: $(VENV)/.test optimised ## the tests on what a wheel has and "make bench" measures
	$(call say,epoque compiled by a profile)
	@env -u EPOQUE_PURE EPOQUE_TEST_LOOP=epoque PYTHONPATH=$(OPTIMISED) $(PYTEST) --ignore tests/test_packaging.py

demo: $(VENV)/.demo build ## serve the aiohttp example and drive it; with ARGS=--serve leave it running
	@$(BIN)/python -m examples.demo $(ARGS)

bench: $(VENV)/.bench optimised ## compare with asyncio and uvloop
	@PYTHONPATH=$(OPTIMISED) $(BIN)/python -m bench $(ARGS)

compat: $(VENV)/.compat build ## run other projects' asyncio tests on epoque and on asyncio
	@$(BIN)/python -m compat $(ARGS)

lint: $(VENV)/.lint ## ruff, and mypy on the public API
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

build: $(VENV)/.tools ## compile the extension modules in place
ifeq ($(PURE),)
	$(call say,extension modules)
	@$(BIN)/python setup.py -q build_ext --inplace
endif

optimised: $(VENV)/.tools ## compile twice, the second time by a profile of the first, into build/optimised
ifeq ($(PURE),)
	$(call say,extension modules optimised by a profile)
	@EPOQUE_PGO=$${EPOQUE_PGO:-1} $(BIN)/python setup.py -q build_py --build-lib $(OPTIMISED) \
	    build_ext --build-lib $(OPTIMISED) --build-temp build/optimised-$(TAG)
endif

clean: ## remove what was built; the virtual environments stay
	rm -rf build dist src/epoque.egg-info .pytest_cache .ruff_cache .mypy_cache
	find src -name '*.so' -delete
	find . -name .venv -prune -o -name __pycache__ -prune -exec rm -rf {} +

python:
	@test -n "$(TAG)" || { echo "epoque needs Python >= 3.11; $(PYTHON) answers: `$(PYTHON) --version 2>&1 | head -n 1`"; \
	    echo "Name another one, such as: make PYTHON=python3.13"; exit 1; } >&2

# Stamp files say what a virtual environment has: .tools the build requirements, .test epoque[test] from this tree.
$(VENV)/.tools: pyproject.toml | python
	$(call say,virtual environment $(VENV))
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])' | \
	    tr ' ' '\n' | $(PIP) -r /dev/stdin
	@touch $@

$(VENV)/.test $(VENV)/.demo $(VENV)/.bench $(VENV)/.compat $(VENV)/.lint: $(VENV)/.%: $(VENV)/.tools
	$(call say,installing what \"make $*\" needs)
	@EPOQUE_PURE=1 $(PIP) --no-build-isolation --editable '.[$*]'
	@touch $@
