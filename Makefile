# Two commands for a newcomer: `make demo` and `make test`. Needs Python 3.11+, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

# The tests start hundreds of commands, and each would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: lock release-files try-wheel zipapp image demo fleet-demo check test test-fleet test-kerberos test-matrix soak bench bench-peers site pictures lint format clean

# Of what pip installs a small part is ever imported, and compiled then. PySpark comes as a source
# archive, of which pip makes a package first: without compressing it, which takes longer than all
# the rest, and beside that. What these two leave out is for the last line, or said there.
$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "kafkaform needs $(PYTHON) (3.11 or newer); set PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "kafkaform needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Installing into $(VENV) (once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --no-deps --config-settings=--build-option=--compression=stored pyspark 2>/dev/null & \
	  grep -v -e '^#' -e '^pyspark=' -e '^regopy=' -e '^gssapi=' constraints.txt | \
	  $(PIP) --no-deps -r /dev/stdin 2>/dev/null; wait
	@$(PIP) -e '.[dev]'
	@$(PIP) --only-binary=regopy regopy 2>/dev/null || \
	  echo "There is no regopy for this computer: the test of the Rego example needs conftest."
	@touch $@

demo: $(STAMP)
	@$(BIN)/python examples/01-topics/demo.py

fleet-demo: $(STAMP)
	@$(BIN)/python examples/fleet/demo.py

# Everything; what a minute shows comes first, and the rest only if that is right. Tests with random
# examples run once, in the rest.
test: QUICK = --quick --no-examples
test: check
	@$(BIN)/python -m pytest -q -n 3 --rest --dist loadfile --no-loadscope-reorder

# Those that need Spark alone, one after the other: they share one session.
test-fleet: $(STAMP)
	@$(BIN)/python -m pytest -q -n 0 -m spark

# Needs MIT Kerberos: on Debian krb5-kdc, krb5-admin-server, krb5-user and libkrb5-dev. Elsewhere these
# tests are skipped in `make test`.
test-kerberos: $(STAMP)
	@$(PIP) gssapi
	@$(BIN)/python -m pytest -q -n 0 -rs tests/cluster/kafka/test_kerberos.py

# The same tests on each version of Kafka; writes docs/compatibility.md. It takes hours.
test-matrix: $(STAMP)
	@$(BIN)/python -m tests.matrix

soak: $(STAMP)
	@$(BIN)/python -m tests.long

bench: $(STAMP)
	@$(BIN)/python -m tests.bench

# kafkaform beside other tools, see docs/performance.md: make bench-peers ARGS="--rows no-op --sizes 100x3"
bench-peers: $(STAMP)
	@$(BIN)/python -m tests.bench.peers $(ARGS)

# The documentation, in build/site; its test also builds it, without a network.
site: $(STAMP)
	@$(BIN)/python -m mkdocs build --strict --quiet

# The pictures of the site, from a sandbox and a browser. Look at them afterwards.
pictures: $(STAMP)
	@$(BIN)/python -m tests.kit.pictures

# What a change needs first: lint, types and the tests that need neither a broker nor Spark.
QUICK = --quick
check: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy & types=$$!; \
	  $(BIN)/python -m pytest -q -n 3 $(QUICK); tests=$$?; \
	  wait $$types || { echo "mypy has found faults, see above"; exit 1; }; exit $$tests

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(STAMP)
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Pinned versions with hashes for the pipelines, after a change of constraints.txt; needs pip-tools.
lock: $(STAMP)
	@$(BIN)/python -m docs.release lock

# Installs the wheel of dist/, which `make release-files` makes, into an empty environment and makes a plan with it;
# then the fleet's small extras, whose commands it runs.
try-wheel: $(STAMP)
	@$(BIN)/python -m docs.release try

# kafkaform in one file, dist/kafkaform.pyz, for the Python of .venv.
zipapp: $(STAMP)
	@$(BIN)/python -m docs.release zipapp

# A container image, with the Dockerfile and docker (or CONTAINERS=podman).
CONTAINERS ?= docker
image:
	@version=$$($(PYTHON) -c 'from kafkaform.version import VERSION; print(VERSION)') && \
	  $(CONTAINERS) build --build-arg VERSION=$$version --tag kafkaform:$$version .

# The wheel, its lock file and the bill of materials, in dist/.
release-files: $(STAMP)
	@$(BIN)/python -m docs.release build
