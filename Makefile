# Every target sets up what it needs; all are safe to repeat.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test lint soak bench faults setup clean
.DELETE_ON_ERROR:

demo: $(READY)
	$(BIN)/pytest --captcha-env=demo

# Long proofs run under `make soak`. Tests wait for processes more than they compute: three workers keep two cores busy.
# The limit catches a test that hangs.
test: $(READY)
	$(BIN)/python -m pytest tests -n 3 --dist worksteal --timeout 240 -m "not soak and not bench" -p no:cacheprovider

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

soak: $(READY)
	$(BIN)/python -m pytest tests -m soak --timeout 3000 -p no:cacheprovider

bench: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,bench]'
	$(BIN)/python -m pytest tests -m bench -s -p no:cacheprovider

# What real SDKs and our own client make of everything a solving service can do wrong; needs the registry once.
faults: $(READY)
	PYTHONPATH=benchmarks $(BIN)/python -m faults

setup: $(READY)

$(READY): pyproject.toml constraints.txt .ci/setup
	PYTHON="$(PYTHON)" VENV="$(VENV)" sh .ci/setup
	@touch $@

clean:
	rm -rf $(VENV)
