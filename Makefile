# Every target works in a fresh clone on Debian with cargo, node and python3. Nothing is installed outside the repository, except
# Debian packages that `xtask/prepare` finds missing (as root; otherwise it says which). Everything is built in ONE profile, release:
# the tests measure, and dependencies compile once.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: help build demo test functions prepare bench race soak cgroup-v2 deny clean secrets-layer

DANKI := target/release/danki
PIP := target/venv/bin/pip
NODE_FUNCTIONS := $(patsubst %/package-lock.json,%/node_modules/.package-lock.json,$(wildcard functions/*/package-lock.json))
PYTHON_FUNCTIONS := $(patsubst %/requirements.txt,%/.deps/installed,$(wildcard functions/*/requirements.txt))

help:
	@echo 'make demo       build, then S1 and S3 beside the published figures (4 min after the build)'
	@echo 'make test       every check, with the count at the end (20 to 30 min in a fresh clone, on 2 cores)'
	@echo 'make bench      what the instrument itself costs: link, envs, overhead; validation against T1 and T2'
	@echo 'make race       danki against its peers; the benchmarks carry them, interleaved'
	@echo 'make soak       long fuzzing, an hour of the secrets extension, real-time experiments, database drivers, audit of dependencies'
	@echo 'make cgroup-v2  danki under cgroup version 2 alone, in an emulated machine (4 min, as root, on Debian)'
	@echo 'make functions  what the sample functions depend on, from their lockfiles'
	@echo 'make clean      remove what was built, installed and measured here'

# The time of the build is printed, so that nobody mistakes it for the time of a run.
build: prepare
	@SECONDS=0; cargo build --locked --release --package danki-cli; echo "build: $$SECONDS s"

demo: build functions
	@xtask/demo

# It installs what the functions depend on, beside the builds.
test: prepare
	cargo xtask test

prepare:
	@xtask/prepare

functions: $(NODE_FUNCTIONS) $(PYTHON_FUNCTIONS)

# npm writes this file last, so it is the mark of a complete install.
functions/%/node_modules/.package-lock.json: functions/%/package-lock.json
	cd functions/$* && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

functions/%/.deps/installed: functions/%/requirements.txt | $(PIP)
	rm -rf functions/$*/.deps
	$(PIP) install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: \
		--target functions/$*/.deps/python --requirement $<
	touch $@

$(PIP):
	python3 -m venv target/venv

# danki-secrets as a layer, for experiments/secrets-danki.toml: a static binary under the name of AWS's extension.
SECRETS_LAYER := functions/danki-secrets/.deps
secrets-layer:
	CC_x86_64_unknown_linux_musl=cc cargo build --locked --profile layer --target x86_64-unknown-linux-musl --package danki-secrets
	install -D target/x86_64-unknown-linux-musl/layer/danki-secrets $(SECRETS_LAYER)/extensions/AWSParametersAndSecretsLambdaExtension

bench: build functions secrets-layer
	xtask/prepare tests
	xtask/install-peers
	conformance/secrets/layers
	conformance/secrets/run
	cargo bench --locked --workspace --bench '*'
	conformance/db-proxy/race
	$(DANKI) validate
	xtask/verify-advice
	$(DANKI) bench secrets-danki
	$(DANKI) bench secrets-inprocess-python
	$(DANKI) bench secrets-inprocess-node
	$(DANKI) bench secrets-extension

# The peers run inside the benchmarks, interleaved with danki, so that both see the same machine. AWS's Runtime Interface Emulator is built
# by Go into target/race (crates/cli/benches/race); where that cannot be, the race says so and goes on.
race: bench

soak: build functions deny
	xtask/prepare soak
	$(DANKI) bench experiments/idle-cutoff-real.toml
	cargo bench --locked --package danki-secrets --bench soak -- 3600
	xtask/compare-live
	conformance/db-proxy/suites
	conformance/db-proxy/soak
	xtask/install-fuzz
	fuzz/run 600 all

cgroup-v2: build
	xtask/cgroup-v2

# Licences, advisories and duplicates. Compiling cargo-deny takes minutes, which is why `make test` does without.
deny:
	command -v cargo-deny > /dev/null || cargo install --locked --root target/tools cargo-deny
	PATH="$$PWD/target/tools/bin:$$PATH" xtask/deny

clean:
	cargo clean
	rm -rf runs functions/*/node_modules functions/*/.deps fuzz/target fuzz/corpus fuzz/artifacts
