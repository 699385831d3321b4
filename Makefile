# `make demo` shows what the project is for, `make test` proves it; both install what they need (scripts/setup).
# PHP=/path/to/php chooses the PHP.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help build demo serve test fuzz sanitize miri test-sdk check-model mutants torture soak lint api fmt cli dist deb bench bench-renew faults clean

setup = @scripts/setup
env = . build/env.sh &&

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

build: ## the extension for the PHP at hand, and the C library: build/mcp_state.so, build/libmcp_state.so
	$(setup) build
	@scripts/build

demo: ## a real MCP server under parallel calls: JSON blob, blob under a lock, mcp-state
	$(setup) demo
	@scripts/build
	@$(env) "$$PYTHON" examples/client/demo.py $(ARGS)

serve: ## the example server for a client of your own (PORT=8080)
	$(setup) demo
	@scripts/build
	@$(env) "$$PYTHON" scripts/serve.py $(if $(PORT),--port $(PORT)) -d extension="$$PWD/build/mcp_state.so"

test: ## everything: Rust, phpt, PHPUnit, lints, whole-system tests
	$(setup) test
	@$(env) "$$PYTHON" tests/run $(ARGS)

fuzz: ## the fuzz targets: SECONDS=60 each [TARGET=record]
	$(setup) build
	@scripts/fuzz $(or $(SECONDS),60) $(TARGET)

sanitize: ## AddressSanitizer, ThreadSanitizer, valgrind, leaks: what this machine has
	$(setup) test
	@scripts/build
	@scripts/sanitize

miri: ## the state machine and the parsers under Miri, where the toolchain has it
	$(setup) build
	@scripts/sanitize miri

test-sdk: ## the drop-ins on the real mcp/sdk: MCP_SDK_AUTOLOAD=/path/to/vendor/autoload.php
	$(setup) test
	@scripts/build
	@$(env) MCP_SDK_AUTOLOAD="$(MCP_SDK_AUTOLOAD)" "$$PYTHON" tests/sdk/all.py $(ARGS)

check-model: ## the state machine in all interleavings, DEPTH steps deep (5)
	$(setup) build
	@$(env) python3 tests/model.py explore --depth $(or $(DEPTH),5)

soak: ## a server under php-fpm for MINUTES=10 while workers come and go; SEED=, DSN=; figures and a plot in build/soak
	$(setup) test
	@scripts/build
	@scripts/build-cli
	@$(env) MCP_STATE_CLI="$$PWD/build/cli/mcp-state" "$$PYTHON" tests/soak/run.py --minutes $(or $(MINUTES),10) \
		--seed $(or $(SEED),1) $(if $(DSN),--dsn '$(DSN)') $(ARGS)

mutants: ## rules of the state machine broken one by one: the model checker must find each
	$(setup) build
	@$(env) python3 tests/model.py mutants $(ARGS)

torture: ## processes that are killed, stopped and forked on one store: SECONDS=60 SEED=1 DSN=
	$(setup) build
	@scripts/cargo test --quiet -p mcp-state --test torture -- --torture $(or $(SECONDS),60) $(or $(SEED),1) $(if $(DSN),'$(DSN)')

lint: ## formatting, clippy, PSR-12, dependency rules
	$(setup) test
	@$(env) "$$PYTHON" tests/run lint

api: ## the PHP reference in docs/api, from the doc comments
	$(setup) test
	@$(env) "$$PHP" scripts/api-docs

fmt: ## formats Rust and PHP in place
	$(setup) test
	@scripts/cargo fmt --all
	@$(env) "$$PHP" "$${PHPCS/%phpcs/phpcbf}" -q || [ $$? -eq 1 ]

cli: ## the command line: build/cli/mcp-state, man pages, completions
	$(setup) build
	@scripts/build-cli

dist: ## release archives of extension, C library and command line, in build/dist
	$(setup) build
	@scripts/build
	@scripts/build-cli
	@scripts/dist

deb: ## Debian packages for the PHP at hand, in build/dist
	$(setup) build
	@scripts/build
	@scripts/build-cli
	@scripts/deb

bench: ## mcp-state and its peers on the same work, side by side (QUICK=1, ONLY=round,wake, DSN=…, DOCS=1)
	$(setup) bench
	@scripts/build
	@scripts/cargo build --quiet --release --package mcp-state-bench
	@$(env) "$$PYTHON" benches/run $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) $(if $(DSN),--dsn '$(DSN)') \
		$(if $(DOCS),--docs) $(ARGS)

bench-renew: ## the instruction counts that the tests compare with, as they are today
	$(setup) bench
	@scripts/cargo build --quiet --release --package mcp-state-bench
	@$(env) "$$PYTHON" benches/instructions --renew

faults: ## every fault of the store's place and files, injected (minutes); SEED=n for other garbage
	$(setup) build
	@$(env) MCP_STATE_FAULTS=all MCP_STATE_SEED="$(or $(SEED),1)" scripts/cargo test --package mcp-state --test faults -- $(ARGS)

clean: ## removes everything that was built or fetched
	rm -rf build target
