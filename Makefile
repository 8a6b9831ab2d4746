# krane. `make dev` runs it, `make test` checks everything; both install what they need.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/sh

TS := node --import tsx
# Folders are listed too: a deleted file changes the time of its folder, but of no other file.
SOURCES := $(shell find src packages sim test tools bench proto -mindepth 1 \( -name node_modules -o -name dist \) -prune -o -print) \
	src/. packages/. sim/. test/. tools/. bench/. proto/.
PRODUCT := $(filter src/% packages/%,$(SOURCES))
# `make dev` alone installs what it takes to build and run the program, a third of everything. Once everything is installed,
# that serves as well. All other commands install everything.
INSTALLED := .cache/installed
ifeq ($(MAKECMDGOALS)$(wildcard .cache/installed),dev)
INSTALLED := .cache/installed-to-run
endif

.PHONY: help dev test test-long test-browser screenshots test-node sim sim-mutants image check build pack release gen deploy kube node cluster bench install clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

dev: bin/krane ## Run a cluster, a control plane and the agent in one process, to try krane out
	bin/krane dev

test: ## Install, check and run every test
	@$(MAKE) --no-print-directory --jobs=2 check build .cache/node24
	$(TS) tools/run-tests.ts

test-long: check build .cache/node24 ## Run the exhaustive versions of the tests that `make test` samples (hours)
	KRANE_TEST_LONG=1 $(TS) tools/run-tests.ts

test-browser: .cache/installed ## Run test/browser: the dashboard in Chromium
	$(TS) test/support/run-browser-tests.ts

screenshots: .cache/installed ## Make the screenshots in docs/images, with Chromium
	$(TS) test/support/run-browser-tests.ts test/browser/screenshots.ts

test-node: bin/krane .cache/agent/krane.mjs .cache/node24 ## Run test/node: krane's image and chart on a real node with gVisor (as root)
	$(TS) test/support/run-node-tests.ts

sim: .cache/sim/main.mjs ## Simulate the whole system under faults: make sim [seed=N | from=N] [hours=N] [for=10m] [jobs=N] [acts=N] [trace=1] [all=1], or make sim plans=all
	node .cache/sim/main.mjs $(foreach name,seed from seeds hours for jobs acts trace all only plans plan shrink,$(if $($(name)),'$(name)=$($(name))'))

sim-mutants: .cache/installed ## Plant bugs in krane and see whether the simulation finds them: make sim-mutants [only=WORD] [seeds=N]
	$(TS) tools/sim-mutants.ts

image: bin/krane .cache/agent/krane.mjs .cache/node24 ## Build krane's image without Docker and without a registry, into .cache/image/krane.tar
	$(TS) tools/build-image.ts

check: .cache/checked ## Check format, lint, layers and types
	@echo "check: clean"

build: bin/krane .cache/agent/krane.mjs dist/index.js ## Bundle the program into one file, bin/krane, the agent for the image, and the libraries into dist/

pack: build ## Pack krane and @krane/kube-apiserver as npm would publish them, into .cache/packed
	@mkdir -p .cache/packed
	npm pack --pack-destination .cache/packed
	cd packages/kube-apiserver/dist && npm pack --pack-destination $(CURDIR)/.cache/packed

release: .cache/installed .cache/node24 ## Make all files of a release into release/ and install from them: make release version=X.Y.Z (as root on Debian)
	$(TS) tools/release.ts "$(version)"

gen: .cache/installed ## Generate src/gen from proto/
	$(TS) tools/generate.ts

deploy: .cache/installed ## Generate the RBAC rules and the plain manifests in deploy/
	$(TS) tools/render-deploy.ts

kube: .cache/installed ## Build the real Kubernetes for tests into the cache (the first time takes 6 minutes or more)
	$(TS) tools/build-kube.ts

node: .cache/installed ## Build a real Kubernetes node with gVisor for tests into the cache (the first time takes 5 minutes or more)
	$(TS) tools/build-node.ts

cluster: .cache/installed $(if $(filter real,$(node)),bin/krane .cache/agent/krane.mjs .cache/node24) ## Run a real Kubernetes control plane until Ctrl-C; with node=real also a node (as root)
	$(TS) test/support/$(if $(filter real,$(node)),run-real-cluster.ts,run-cluster.ts)

bench: build .cache/node24 ## Run the benchmarks; prints each figure with its ratio to the raw limit
	$(TS) bench/run.ts

install: .cache/installed ## Install the pinned npm packages

clean: ## Remove build results (not the Kubernetes cache)
	rm -rf bin dist release packages/*/dist .cache node_modules tools/node24/node_modules

MANIFESTS := package.json package-lock.json .npmrc tools/build/package.json $(wildcard packages/*/package.json)

# npm begins by deleting what is installed, so that an install which is cut off leaves neither.
.cache/installed: $(MANIFESTS)
	@mkdir -p .cache
	@rm -f .cache/installed-to-run
	@echo "Installing npm packages (425 MB on disk)"
	npm ci --ignore-scripts
	@touch $@

.cache/installed-to-run: $(MANIFESTS)
	@mkdir -p .cache
	@echo "Installing the npm packages that krane needs to run (165 MB on disk)"
	npm ci --ignore-scripts --omit=dev
	@touch $@

.cache/node24: tools/node24/package.json tools/node24/package-lock.json tools/node24/install.mjs
	@mkdir -p .cache
	node tools/node24/install.mjs
	@touch $@

.cache/checked: .cache/installed biome.json tsconfig.json Makefile $(SOURCES)
	node_modules/.bin/biome check --error-on-warnings .
	node_modules/.bin/tsc --noEmit -p . --incremental --tsBuildInfoFile .cache/types
	node_modules/.bin/tsc --noEmit -p src/dashboard/page --incremental --tsBuildInfoFile .cache/page-types
	$(TS) tools/check-layers.ts
	@touch $@

bin/krane: $(INSTALLED) package.json tools/bundle.ts $(wildcard tools/lean/*.ts) $(PRODUCT)
	$(TS) tools/bundle.ts program

.cache/agent/krane.mjs: $(INSTALLED) package.json tools/bundle.ts tools/agent-parts.ts $(wildcard tools/lean/*.ts) $(PRODUCT)
	$(TS) tools/agent-parts.ts

.cache/sim/main.mjs: .cache/installed tools/bundle.ts $(PRODUCT) $(filter sim/%,$(SOURCES))
	$(TS) tools/bundle.ts sim

dist/index.js: .cache/installed package.json tools/bundle.ts tools/bundle-package.ts tools/emit-types.ts $(PRODUCT)
	$(TS) tools/bundle.ts library
