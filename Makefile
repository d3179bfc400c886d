# Everything from a bare clone: needs a Python 3.12 (or 3.13) with venv, and pip.
#   make test PYTEST_ARGS="-k router"     some of the tests
#   make demo MODEL=path/or/name          the demo on another model

VENV := .venv
# A checkout that was moved or copied gets its own environment: an editable install knows its old place.
STAMP := $(VENV)/made-$(shell pwd | cksum | cut -d' ' -f1)

.DEFAULT_GOAL := help
.PHONY: help setup test demo lint format clean

help:
	@echo "make setup    the tool in .venv, and the engine under SEATRIAL_HOME (default ~/.cache/seatrial)"
	@echo "make demo     set up, then serve a small model, load an adapter, compare   [MODEL=...]"
	@echo "make test     set up, then lint and every test                             [PYTEST_ARGS=...]"
	@echo "make lint     ruff and mypy, without the engine"
	@echo "make format   let ruff rewrite the code"
	@echo "make clean    remove .venv, caches and build products"

setup: $(STAMP)
	@$(VENV)/bin/seatrial setup engine

test: setup lint
	@$(VENV)/bin/pytest $(PYTEST_ARGS)

demo: setup
	@$(VENV)/bin/seatrial demo $(if $(MODEL),--model $(MODEL))

lint: $(STAMP)
	@$(VENV)/bin/ruff check
	@$(VENV)/bin/ruff format --check
	@$(VENV)/bin/mypy

format: $(STAMP)
	@$(VENV)/bin/ruff check --fix
	@$(VENV)/bin/ruff format

clean:
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache dist build src/*.egg-info
	@find src tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "cleaned; environments and models under SEATRIAL_HOME ($${SEATRIAL_HOME:-~/.cache/seatrial}) stay"

$(STAMP): pyproject.toml constraints.txt scripts/make-venv
	@scripts/make-venv $@
