# Everything happens in .venv and build; `make clean` takes both away. Works with GNU make 3.81 on.
#
#   PYTHON=python3.12 make test     with another Python (3.11 or newer; after `make clean`)
#   JOBS=1 make test                with fewer processors
#   PYTEST_FLAGS="-k svmlight" make test-python    a part of the tests

PYTHON ?= python3
JOBS ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
PYTEST_FLAGS ?= -q
PYTEST_MARKS ?= not slow and not docs and not hostile
# One process more than processors, since many tests wait for others that they started; the tests of a file stay
# together, so that they share what its fixtures have made.
PYTEST = $(BIN)/python -m pytest -n $$(($(JOBS) + 1)) --dist loadfile $(PYTEST_FLAGS)

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
# Quiet, but for errors. What a build printed is shown when it fails.
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq
# Python compiles a module when it is first imported: pip would compile all of them, one after another.
INSTALL := $(PIP) install --no-compile
REQUIREMENTS := $(BIN)/python tools/requirements.py
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
# Compiling the tests anew in each process would take a tenth of the time.
unexport PYTHONDONTWRITEBYTECODE
# Where the package is compiled (build-dir in pyproject.toml).
TREE := build/package

SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE \
	$(shell find src cpp/unkernel bindings -type f ! -name '*.pyc' ! -name '_core.pyi' 2>/dev/null)
CXX_FILES = $(shell find cpp bindings -name '*.cpp' -o -name '*.hpp')
STUB := src/unkernel/_core.pyi

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-all test-python test-hostile test-other test-clang test-char test-musl test-windows test-pythons \
	test-sanitized test-threads campaign-kills campaign-disks campaign-threads campaign-memory campaign-numerical \
	campaign-reloads campaign-answers native native-sanitized fuzz fuzz-long fuzz-python bench papers lint docs docs-outputs reproducible audit clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(STAMPS)/package $(STAMPS)/demo ## build and install into .venv, then show what unkernel does
	@$(BIN)/python examples/demo.py

test: test-python native ## the Python and native tests that need no data and no signals

test-python: $(STAMPS)/package $(STAMPS)/test
	$(PYTEST) -m "$(PYTEST_MARKS)"

test-hostile: $(STAMPS)/package $(STAMPS)/test ## signals, kills, full disks, damaged and odd files
	$(PYTEST) -m "hostile and not slow"

test-all: $(STAMPS)/package $(STAMPS)/test native native-sanitized ## the slow tests and sanitizers as well
	$(PYTEST) -m "not slow" --hypothesis-profile=thorough
	$(BIN)/python -m pytest $(PYTEST_FLAGS) -m slow

# The figures go to benchmarks/results, and into the pages that are made of them.
bench: $(STAMPS)/package $(STAMPS)/bench ## every benchmark, and the pages of their figures; QUICK=1 make bench: in minutes
	$(BIN)/python benchmarks/run.py $(if $(QUICK),--quick)

PAPERS := chang2010 goldberg2008 yoshinaga2009 joachims2006 severyn2011
papers: $(STAMPS)/package $(STAMPS)/bench ## the tables and figures of the five papers, measured again; QUICK=1 make papers: small ones
	@for paper in $(PAPERS); do $(BIN)/python benchmarks/paper_$$paper.py $(if $(QUICK),--quick) --save || exit 1; done
	@$(BIN)/python benchmarks/papers.py

lint: $(STAMPS)/package $(STAMPS)/lint $(STUB) ## formatting, types, imports and docstrings
	$(BIN)/ruff check --extend-exclude $(STUB),build
	$(BIN)/ruff format --check --extend-exclude $(STUB),build
	$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)
	$(BIN)/mypy
	@mkdir -p build
	@PYTHONPATH=src $(BIN)/lint-imports --no-cache > build/lint-imports.txt 2>&1 \
		|| { cat build/lint-imports.txt; exit 1; }
	$(BIN)/python tools/check_includes.py
	$(BIN)/python tools/check_names.py
	$(BIN)/python tools/check_docstrings.py
	$(BIN)/python tools/pipelines_page.py --check
	$(BIN)/python tools/platforms_page.py --check
	$(BIN)/python tools/rooms_table.py --check

docs: $(STAMPS)/package $(STAMPS)/docs $(STAMPS)/test ## the documentation, into site, and its examples
	@rm -rf site docs/api/generated  # pages that are no longer made
	$(BIN)/python -m sphinx -E -W --keep-going -q -j $(JOBS) -b html -d build/docs docs site
	$(PYTEST) -m docs tests/docs

docs-outputs: $(STAMPS)/package $(STAMPS)/docs $(STAMPS)/test ## write what the examples of the pages print into the pages
	$(BIN)/python tools/page_outputs.py

# From copies in two folders, each compiled anew; SOURCE_DATE_EPOCH stands for the times of files.
reproducible: $(STAMPS)/build-system ## check that two builds of the wheel are the same to the byte
	@rm -rf build/reproducible
	@for folder in one the/other; do \
		mkdir -p build/reproducible/$$folder && \
		cp -R pyproject.toml CMakeLists.txt README.md LICENSE src cpp bindings tools build/reproducible/$$folder && \
		rm -f build/reproducible/$$folder/src/unkernel/_core.* && \
		SOURCE_DATE_EPOCH=1700000000 CCACHE_DISABLE=1 $(PIP) wheel --no-deps --no-build-isolation --no-cache-dir -w build/reproducible/$$folder/dist \
			build/reproducible/$$folder || exit 1; done
	cmp build/reproducible/one/dist/*.whl build/reproducible/the/other/dist/*.whl
	@echo "both are $$(sha256sum build/reproducible/one/dist/*.whl)"

audit: $(STAMPS)/package ## look for known vulnerabilities of what the package needs (asks the index)
	@$(INSTALL) pip-audit
	$(BIN)/pip-audit --skip-editable --desc off

clean: ## remove .venv, build, site and every cache
	rm -rf $(VENV) build dist site docs/api/generated docs/commands docs/gallery $(STUB) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- The environment -------------------------------------------------------------------------------

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "unkernel needs Python 3.11 or newer, and \
	$(PYTHON) is " + sys.version.split()[0] + ": name another with PYTHON=python3.12 make ...")'
	@echo "making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) --upgrade pip  # the one that comes with Python 3.11 takes twice the time of a current one
	@mkdir -p $(STAMPS) && touch $@

# What builds stays in the environment, instead of being fetched for each build: CMake then finds
# everything where it was, and compiles only what has changed.
$(STAMPS)/build-system: $(STAMPS)/venv $(STAMPS)/cmake pyproject.toml tools/requirements.py
	@$(INSTALL) $$($(REQUIREMENTS) $(@F))
	@touch $@

$(STAMPS)/package: $(STAMPS)/build-system $(SOURCES)
	@echo "building and installing unkernel ..."
	@$(INSTALL) --no-build-isolation -C cmake.define.UNKERNEL_TESTS=ON .
	@touch $@

# Tools come one extra at a time, so that a demo need not wait for test tools.
$(STAMPS)/demo $(STAMPS)/test $(STAMPS)/lint $(STAMPS)/docs: $(STAMPS)/venv pyproject.toml tools/requirements.py
	@echo "installing what $(@F) needs ..."
	@$(INSTALL) $$($(REQUIREMENTS) $(@F))
	@touch $@

# A peer that has no wheel for this machine is left out; its benchmark says so. Others: benchmarks/peers.py.
$(STAMPS)/bench: $(STAMPS)/venv pyproject.toml tools/requirements.py
	@echo "installing the peers that the benchmarks measure against ..."
	@for peer in $$($(REQUIREMENTS) bench); do \
		$(INSTALL) "$$peer" > /dev/null 2>&1 || echo "  $$peer cannot be installed here: left out"; done
	@touch $@

$(STUB): $(STAMPS)/package $(STAMPS)/lint
	@$(BIN)/python -m nanobind.stubgen -q -m unkernel._core -o $@

# --- The native tests ------------------------------------------------------------------------------

# The system's CMake, or one from the index where there is none.
CMAKE := $(shell command -v cmake || echo $(BIN)/cmake)
CTEST := $(shell command -v ctest || echo $(BIN)/ctest)
GENERATOR := $(if $(shell command -v ninja),-G Ninja,)

# They are built in the tree that the package was built in: the core is compiled once for both.
native: $(STAMPS)/package ## the native tests alone
	@$(CMAKE) --build $(TREE) --target native_tests > $(TREE)/native.txt 2>&1 || { cat $(TREE)/native.txt; exit 1; }
	$(CTEST) --test-dir $(TREE) --output-on-failure --parallel $(JOBS)

# With the other sign of char than this machine has, so that no code relies on either.
native-sanitized: build/sanitized/.configured ## the native tests under sanitizers, with the other sign of char
	@$(CMAKE) --build build/sanitized > build/sanitized/log.txt 2>&1 || { cat build/sanitized/log.txt; exit 1; }
	$(CTEST) --test-dir build/sanitized --output-on-failure --parallel $(JOBS)

build/sanitized/.configured: $(STAMPS)/cmake
	@mkdir -p $(@D)
	@$(CMAKE) -S . -B $(@D) $(GENERATOR) -DUNKERNEL_TESTS=ON -DUNKERNEL_PYTHON=OFF -DUNKERNEL_DEVELOPER=ON \
		-DUNKERNEL_UNITY=ON -DUNKERNEL_SANITIZE=ON -DUNKERNEL_OTHER_CHAR_SIGN=ON > $(@D)/log.txt 2>&1 || { cat $(@D)/log.txt; exit 1; }
	@touch $@

# Nightly work: each compiles the core anew. What ran is recorded in docs/trust/platforms, of which a page is made.
PLATFORM = $(BIN)/python tools/platforms.py
test-clang: $(STAMPS)/package $(STAMPS)/test ## native tests and a part of the others, with Clang and libc++
	$(PLATFORM) clang-libcxx

test-char: $(STAMPS)/package $(STAMPS)/test ## the same with the other sign of char
	$(PLATFORM) other-char-sign

test-other: $(STAMPS)/package $(STAMPS)/test ## the other architecture under emulation: native tests, golden models, text
	$(PLATFORM) other-architecture

test-musl: $(STAMPS)/package $(STAMPS)/zig ## native tests as static programs for musl
	$(PLATFORM) musl

test-windows: $(STAMPS)/package $(STAMPS)/zig ## native tests compiled for Windows, and run where Wine can
	$(PLATFORM) windows

test-pythons: $(STAMPS)/package $(STAMPS)/build-system ## one wheel on other Pythons: PYTHONS="python3.12 python3.13" make test-pythons
	$(PLATFORM) pythons $(PYTHONS)

$(STAMPS)/zig: $(STAMPS)/venv
	@echo "installing a compiler for other systems ..."
	@$(INSTALL) ziglang
	@touch $@

# Coverage-guided; needs Clang. RUNS are in sum over the targets; inputs that fail are kept in build/fuzz/failures.
fuzz: ## two million inputs to the readers under libFuzzer and sanitizers (needs Clang)
	$(PYTHON) tools/fuzz.py run --runs 2000000 --jobs $(JOBS)

fuzz-long: ## as many as RUNS, a hundred million by default, and the lines of the readers that the corpus reaches
	$(PYTHON) tools/fuzz.py run --runs $(or $(RUNS),100000000) --jobs $(JOBS)
	$(PYTHON) tools/fuzz.py coverage --least 95

# --- The Python tests under sanitizers -----------------------------------------------------------------

# Nightly work: these need GCC, and half an hour on two processors. Only the extension is built with sanitizers;
# Python is not, so their library is loaded before everything else, and that of C++, whose exceptions they watch.
# Python allocates with malloc, so that reading past the end of a text is seen. Leaks are not looked for here, as
# Python and the libraries keep what they have until they end: native-sanitized and the fuzzers look for them.
test-sanitized test-threads: PRELOAD = $(foreach name,$(LIBRARY) libstdc++.so.6,$(shell $(CXX) -print-file-name=$(name)))
test-sanitized test-threads: ENVIRONMENT = LD_PRELOAD="$(PRELOAD)" PYTHONPATH=$(CURDIR)/build/$@/python PYTHONMALLOC=malloc \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:handle_abort=1 UBSAN_OPTIONS=print_stacktrace=1 \
	TSAN_OPTIONS=die_after_fork=0:suppressions=$(CURDIR)/tests/threads.suppressions UNKERNEL_SANITIZER=$(LIBRARY)

test-sanitized: LIBRARY = libasan.so
test-sanitized: build/test-sanitized/python ## the Python tests under address and undefined-behaviour sanitizers
	$(ENVIRONMENT) $(PYTEST) -m "not slow and not docs"

# The tests that have to do with threads, by their own words.
test-threads: LIBRARY = libtsan.so
test-threads: build/test-threads/python ## native tests, and Python tests of threads, under the thread sanitizer
	$(CTEST) --test-dir build/test-threads --output-on-failure --parallel $(JOBS) -R '^test_'
	$(ENVIRONMENT) $(PYTEST) -m "not slow and not docs" -k "thread or jobs or parallel or sampl or grow" tests

build/test-sanitized/python: SANITIZE = ON
build/test-threads/python: SANITIZE = thread
build/test-sanitized/python build/test-threads/python: $(STAMPS)/package $(STAMPS)/test
	@mkdir -p $(@D)
	@echo "building the extension with sanitizers ..."
	@{ $(CMAKE) -S . -B $(@D) $(GENERATOR) -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=$(CXX) -DUNKERNEL_UNITY=ON \
		-DUNKERNEL_TESTS=$(if $(filter thread,$(SANITIZE)),ON,OFF) -DUNKERNEL_SANITIZE=$(SANITIZE) \
		-DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python \
		&& $(CMAKE) --build $(@D); } > $(@D)/log.txt 2>&1 || { cat $(@D)/log.txt; exit 1; }
	@rm -rf $@ && mkdir $@ && cp -R src/unkernel $@ && cp $(@D)/_core.abi3.so $@/unkernel

# --- Campaigns -----------------------------------------------------------------------------------------

# Programs of tests/campaigns, as long as wished: KILLS=100 make campaign-kills. They end with 0 if all held.
CAMPAIGN = cd tests && OPENBLAS_NUM_THREADS=1 $(CURDIR)/$(BIN)/python -m campaigns
KILLS ?= 1000
PROBLEMS ?= 10000
RELOADS ?= 10000
CASES ?= 10000
campaign-kills: $(STAMPS)/package $(STAMPS)/test ## processes killed at random moments of saving, packing, training, ...
	$(CAMPAIGN).kills --kills $(KILLS)
	$(CAMPAIGN).workers --kills $$(($(KILLS) / 20))

campaign-threads: $(STAMPS)/package $(STAMPS)/test ## ten threads, and processes of four kinds, on one model
	$(CAMPAIGN).threads

campaign-memory: $(STAMPS)/package $(STAMPS)/test ## compiling and training in little more memory than they promise
	$(CAMPAIGN).memory

campaign-disks: $(STAMPS)/package $(STAMPS)/test ## full disks, read-only folders, several who save at once
	$(CAMPAIGN).disks

campaign-numerical: $(STAMPS)/package $(STAMPS)/test ## generated problems: certificates and scores against LIBLINEAR's, LIBSVM's
	$(CAMPAIGN).numerical --problems $(PROBLEMS)

campaign-reloads: $(STAMPS)/package $(STAMPS)/test ## new model files of a server under load
	$(CAMPAIGN).reloads --reloads $(RELOADS)

campaign-answers: $(STAMPS)/package $(STAMPS)/test ## generated records, which must have one answer by every way of asking
	$(CAMPAIGN).answers --cases $(CASES)

# RUNS are in sum over the kinds of model files; 10^7 once, and far fewer in a night: each takes some milliseconds.
fuzz-python: $(STAMPS)/package $(STAMPS)/test ## changed model files with right digests, as many as RUNS, and other files that Python reads
	$(BIN)/python tools/fuzz_models.py --runs $(or $(RUNS),50000)
	$(BIN)/python tools/fuzz_python.py --runs 2000

$(STAMPS)/cmake: $(STAMPS)/venv
	@test -x "$(CMAKE)" || { echo "installing cmake ..."; $(INSTALL) 'cmake>=3.18'; }
	@touch $@
