# SPDX-License-Identifier: Apache-2.0
# Thin verbs over meson and ninja; `make help` lists them.
FAULT ?= io
OUT ?= out/demo-$(FAULT)
PYTHON = .venv/bin/python
export OMP_NUM_THREADS = 1

.PHONY: all install dist test demo demo-cluster chaos asan tsan bench fuzz fmt check clean help

all: ## build the program and its libraries into build/, without the tests
	@tools/bootstrap build
	@tools/build build program

install: all ## install below PREFIX (/usr/local), or below DESTDIR for packages
	@meson configure build -Dprefix=$(or $(PREFIX),/usr/local)
	@tools/build build program
	@meson install -C build --no-rebuild

dist: ## the wheel, its hashes and its SBOM into dist/, twice, compared
	@tools/bootstrap --system build dist
	@tools/dist

test: ## every test; the last line is "N passed, N failed"
	@tools/bootstrap --system build test
	@python3 tests/run $(PARTS)

demo: all ## a 4-rank training job in which FAULT happens (io cpu gc lock noise imbalance all stall stop quota none)
	@tools/bootstrap demo
	@tools/demo $(FAULT) $(OUT)

demo-cluster: all ## a job on three hosts (network namespaces, else loopback) in which FAULT happens (sleep hang crash none)
	@tools/bootstrap demo cluster
	@$(PYTHON) tools/demo-cluster $(or $(CLUSTER_FAULT),sleep)

chaos: all ## trouble at CHAOS_POINTS random moments of profiles over three hosts (200 of each kind)
	@tools/bootstrap demo cluster
	@PERFTRACKER_CHAOS_POINTS=$(or $(CHAOS_POINTS),200) build/src/live/follower_guard_test
	@PERFTRACKER_CHAOS_POINTS=$(or $(CHAOS_POINTS),200) build/src/live/leader_up_test
	@cd tests/chaos && PERFTRACKER_CHAOS_POINTS=$(or $(CHAOS_POINTS),200) python3 -m unittest -v chaos_test spool_test

asan: ## unit tests with AddressSanitizer and UBSan
	@tools/bootstrap build && tools/build build-asan && meson test -C build-asan

tsan: ## unit tests with ThreadSanitizer
	@tools/bootstrap build && tools/build build-tsan && meson test -C build-tsan

bench: all ## benchmarks: live faults (REPEATS times each), then those of bench/run if there are any
	@tools/bootstrap demo bench
	@tools/build build
	@$(PYTHON) bench/live_faults --repeats $(or $(REPEATS),5)
	@if [ -x bench/run ]; then bench/run; fi

fuzz: ## every fuzz target for FUZZ_SECONDS (default 60)
	@tools/bootstrap --system build test
	@python3 tests/run fuzz --fuzz-seconds $(or $(FUZZ_SECONDS),60)

fmt: ## format the C and Python sources
	@tools/bootstrap check && tools/check --fix

check: ## formatting, static analysis, include rules, shell and Python lint
	@tools/bootstrap build check && tools/build build && tools/check

clean: ## remove build folders (keeps .venv and out)
	rm -rf build build-asan build-tsan build-fuzz build-lean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 8
