# Two commands are all a newcomer needs: `make demo` and `make test`.
# Both install what is missing (Debian packages, as root or through sudo).

CARGO ?= cargo
HOST := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
RELEASE := target/$(HOST)/release/ringfence
# Optimized too, but built in half the time; the tests use the same.
DEV := target/$(HOST)/debug/ringfence

.PHONY: help demo test lint build wheel bench bench-quick bench-driver

help: ## Show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

demo: ## Build, run commands on an example project in sandboxes, ask a server, also from Python, and show what happens
	@sh scripts/install-deps.sh demo
	$(CARGO) build --locked
	@sh examples/demo.sh $(DEV)
	@sh examples/server.sh $(DEV)
	@sh scripts/wheels.sh dev target/wheels --strip false
	@sh examples/python.sh target/wheels/ringfence-*-manylinux*.whl

test: ## Install what the tests need and run them all
	@sh scripts/install-deps.sh test
	$(CARGO) test --workspace --locked
	python3 -m unittest discover -s benches/tests
	python3 tests/all.py
	python3 tests/docker/engine.py env RINGFENCE_TEST_IMAGE=ringfence-test-full:1 $(CARGO) test --locked --package ringfence-cli --test sandbox -- --skip ::zsh:: --skip ::busybox --skip ::dash

lint: ## Formatting, clippy, types of the Python SDK, and dependency rules where cargo-deny is installed
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@sh scripts/venv.sh target/venv-sdk sdk/python/tests/requirements.txt
	cd sdk/python && ../../target/venv-sdk/bin/mypy
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny check; else echo "cargo-deny is not installed: skipped"; fi

build: ## Build the release binary
	$(CARGO) build --release --locked

wheel: ## Build the Python wheels, with and without the program, into target/wheels
	@sh scripts/install-deps.sh demo
	sh scripts/wheels.sh release target/wheels

bench: build bench-driver ## Measure against native and peers (root); report in target/bench
	@sh scripts/install-deps.sh bench
	python3 benches/run.py --binary $(RELEASE) --out target/bench

bench-quick: build bench-driver ## The same on a smaller tree, under two minutes
	@sh scripts/install-deps.sh bench
	python3 benches/run.py --quick --binary $(RELEASE) --out target/bench

bench-driver:
	$(CARGO) build --release --locked --package ringfence-cli --example bench_driver
