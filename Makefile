# Needs Go, make and git; all else is built from Go modules.
# KUBERNETES_VERSION chooses the control plane: 1.34, 1.35, 1.36 (default), 1.37.
# RELEASE_BINARIES=0 compiles Kubernetes, etcd and kwok, =1 downloads them; without it they
# are downloaded where their servers answer, and compiled where not.

GO ?= go
export CGO_ENABLED ?= 0
export GOWORK = off
# All is compiled with the same flags, once: without paths of this machine, so that
# the module cache may be anywhere, and without what only debuggers need.
SAME := -trimpath -gcflags=all=-dwarf=false -ldflags=-w
export GOFLAGS := $(strip $(filter-out $(SAME),$(shell $(GO) env GOFLAGS)) $(SAME))

VERSION ?= $(shell git describe --tags --always --abbrev=12 --dirty 2>/dev/null)
LDFLAGS = -s -w -X github.com/kwok-dra/kwok-dra/internal/util/version.version=$(VERSION)
# The name of the image in what is released. To push it to a registry, give the
# registry's name too: make release VERSION=v1.2.3 IMAGE=ghcr.io/OWNER/kwok-dra.
export IMAGE ?= kwok-dra/kwok-dra
VULNERABILITIES ?= https://vuln.go.dev
# Compiles a program of a module, with progress, and runs it.
RUN = $(GO) -C test/cluster build -buildvcs=false -o $(CURDIR)/bin/gorun ./cmd/gorun && bin/gorun
HOT = ./internal/claims/templates ./internal/devices ./internal/extensions/inventory ./internal/observe/lifecycle ./internal/observe ./internal/resourceslice/...
MODULES = . test/cluster test test/e2e/dashboards test/e2e/helm test/karpenter test/others

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Start a real cluster with fake GPU nodes and show what they do, or show where it runs.
	@$(RUN) test ./tools/demo

.PHONY: demo-new
demo-new: ## Remove the demo that runs, and start afresh.
	@$(RUN) test ./tools/demo -new

.PHONY: demo-karpenter
demo-karpenter: ## Show Karpenter make nodes for Pods that claim devices, on a real cluster.
	@$(RUN) test/karpenter ./demo

.PHONY: demo-down
demo-down: ## Remove what a demo has left running.
	@$(RUN) test ./tools/demo -down

.PHONY: test
test: ## Run what to run after each change: unit tests, and one pass over real clusters (ONLY=REGEX chooses parts).
	@$(RUN) test ./tools/suite -only '$(value ONLY)'

.PHONY: test-all
test-all: ## Run all tests (ONLY=REGEX chooses parts).
	@$(RUN) test ./tools/suite -ring all -only '$(value ONLY)'

.PHONY: test-rest
test-rest: ## Run the tests of test-all that test has not run (ONLY=REGEX chooses parts).
	@$(RUN) test ./tools/suite -ring rest -only '$(value ONLY)'

.PHONY: build
build: ## Build bin/kwok-dra, bin/kwok-dractl, and bin/kubectl-dra, a plugin of kubectl.
	@rm -f bin/kubectl-dra
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/kwok-dra ./cmd/kwok-dractl ./cmd/kubectl-dra
	@ln -sf kubectl-dra bin/kubectl_complete-dra

.PHONY: image
image: ## Build bin/kwok-dra-VERSION.tar, an image for amd64 and arm64.
	@echo "Building the image of kwok-dra $(VERSION) ..."
	@$(RUN) test ./tools/image -version '$(VERSION)'

.PHONY: release
release: ## Make dist/, all that users install: make release VERSION=v1.2.3.
	@$(RUN) test ./tools/release -version '$(if $(filter file,$(origin VERSION)),,$(VERSION))'

.PHONY: control-plane
control-plane: ## Download or compile the control plane for tests and demo, once.
	@$(RUN) test/cluster ./cmd/cluster build

.PHONY: generate
generate: ## Make the custom resource definitions and the deep copies from the Go types (needs the network).
	$(GO) run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd paths=./pkg/api/v1alpha1 output:crd:dir=kustomize/crd
	$(MAKE) generate-docs

.PHONY: generate-docs
generate-docs: ## Fill in the parts of docs/reference that are made from the code.
	$(GO) run ./docs/generate

.PHONY: verify
verify: lint ## Run the linters, and check that go.mod files are tidy.
	@for module in $(MODULES) test/tools/krew test/tools/lint test/drivers/others test/others/kubevirt; do (cd $$module && $(GO) mod tidy -diff) || exit 1; done

.PHONY: lint
lint: ## Run golangci-lint, which checks formatting too.
	@echo "Compiling golangci-lint (5 minutes for the first time, seconds later) ..."
	@lint=$$($(GO) -C test/tools/lint tool -n golangci-lint) || exit 1; \
	for module in $(MODULES); do echo "golangci-lint in $$module"; (cd $$module && "$$lint" run) || exit 1; done

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in what is used (needs the network).
	@GO=$(GO) test/tools/lint/vulncheck $(VULNERABILITIES) $(MODULES)

.PHONY: outdated
outdated: ## Say which modules, tools and pinned versions are behind what the Go module proxy has (ARGS='-o json').
	@$(RUN) test ./tools/outdated $(ARGS)

.PHONY: test-unit
test-unit: ## Run the tests of the product that need no cluster.
	$(GO) test ./...

.PHONY: test-karpenter
test-karpenter: control-plane ## Run the tests with Karpenter, on real clusters, and print what kwok-dra adds to the way of a Pod.
	cd test/karpenter && $(GO) test -count 1 -v -p 1 -timeout 30m ./...

.PHONY: test-faults
test-faults: control-plane ## Run 200 seeds of faults of the network, the servers and the sidecars (an hour or more).
	cd test && $(GO) test -count 1 -timeout 12h -v ./faults -args -seeds 200 -clusters 2 -within 30s -edits 3

.PHONY: test-faults-long
test-faults-long: control-plane ## Run 1,000 seeds of faults (five hours or more).
	cd test && $(GO) test -count 1 -timeout 48h -v ./faults -args -seeds 1000 -clusters 2 -within 30s -edits 3

.PHONY: test-faults-mutants
test-faults-mutants: control-plane ## Put back faults that kwok-dra once had, one at a time, and have the fault suite find each (hours; ONLY=REGEX chooses faults).
	@$(RUN) test ./faults/mutants -only '$(ONLY)'

.PHONY: test-conformance-mutants
test-conformance-mutants: control-plane ## Build kube-scheduler and Karpenter with one fault at a time, and have check-scheduler and check-autoscaler find each (hours; ONLY=REGEX chooses faults).
	@$(RUN) test ./conformance/mutants -only '$(ONLY)'

.PHONY: conformance
conformance: ## Have schedulers and autoscalers play stories, and write docs/conformance.md (hours; ONLY=REGEX SEEDS=100 SHRINK=10m SRC=FOLDER with checkouts).
	@$(RUN) test ./conformance -only '$(value ONLY)' -src '$(if $(SRC),$(abspath $(SRC)))' $(if $(SEEDS),-seeds $(SEEDS) -autoscaler-seeds $(SEEDS)) $(if $(SHRINK),-shrink $(SHRINK))

.PHONY: conformance-page
conformance-page: ## Write docs/conformance.md again from docs/conformance.
	@$(RUN) test ./conformance -page

.PHONY: test-driver-pods
test-driver-pods: control-plane ## Roll a driver's DaemonSet on 1,000 nodes by a tenth, and check all slices at all moments (NODES=1000).
	cd test && $(GO) test -count 1 -timeout 2h -v -run TestRollingUpdate ./e2e/publish -args -rolled-nodes $(or $(NODES),1000)

.PHONY: test-fleets
test-fleets: control-plane ## Ask kubectl dra fit of the Pods of 300 random fleets, and compare with kube-scheduler (4 minutes; SEEDS=300 SEED=1).
	cd test && $(GO) test -count 1 -timeout 1h -v -run TestFitAsTheScheduler ./e2e/dractl -args -seeds $(or $(SEEDS),300) -schedule-seed $(or $(SEED),1)

.PHONY: test-browser
test-browser: ## Test the page in a headless Chromium, if there is one, with pictures of it in bin/pictures.
	cd test && PICTURES=$(CURDIR)/bin/pictures $(GO) test -count 1 -v ./e2e/browser

.PHONY: picture
picture: ## Make the README's pictures of the page from the page (needs Chromium).
	cd test && PICTURES=$(CURDIR)/docs/images $(GO) test -count 1 -v -run '^TestPicture$$' ./e2e/browser

.PHONY: test-matrix
test-matrix: ## Run the tests on real clusters of every supported Kubernetes, and print one table.
	@$(RUN) test ./tools/matrix

.PHONY: test-others
test-others: ## Run test suites of other projects, unmodified, on fake nodes (SUITE=kueue, SRC=../perf-tests, ARGS='-o json').
	@$(RUN) test/others . -suite '$(SUITE)' -src '$(abspath $(SRC))' $(ARGS)

.PHONY: race
race: ## Run the tests that need no cluster with the race detector (needs a C compiler).
	CGO_ENABLED=1 $(GO) test -race ./...

.PHONY: bench
bench: control-plane ## Measure speed and CPU against writers that do nothing else and a kwok Stage, on a real cluster (ROUNDS=11).
	@$(RUN) test ./perf/bench $(if $(ROUNDS),-rounds $(ROUNDS))

.PHONY: bench-plugins
bench-plugins: control-plane ## Measure 100 fake nodes with a process of a real driver each, and 1,000 Pods (2 minutes).
	@$(RUN) test ./perf/plugins

.PHONY: bench-node-load
bench-node-load: control-plane ## Measure the load of --node-load against 50 processes of a real driver, and a fleet of 1,000 nodes with it (25 minutes; NODES=50 PODS=200 ROUNDS=5 FLEET=1000).
	@$(RUN) test ./perf/nodeload $(if $(NODES),-nodes $(NODES)) $(if $(PODS),-pods $(PODS)) $(if $(ROUNDS),-rounds $(ROUNDS)) $(if $(FLEET),-fleet $(FLEET))

.PHONY: bench-asking
bench-asking: control-plane ## Measure questions to 5,000 nodes with 40,000 devices and 20,000 claims beside plain lists of the same objects (5 minutes).
	@$(RUN) test ./perf/asking

.PHONY: bench-hot
bench-hot: ## Measure the functions that run for each node, Pod, claim and slice (under a minute).
	@echo "Measuring the functions that run for each node, Pod, claim and slice ..."
	@figures=$$($(GO) test -run '^$$' -bench . -benchmem -benchtime 200ms $(HOT)) || { echo "$$figures"; exit 1; }; echo "$$figures" | grep '^Benchmark'

.PHONY: bench-scale
bench-scale: control-plane ## Measure 10,000 nodes with 80,000 devices and 20,000 claims, with a plot in bin/scale.svg (20 minutes; NODES=65000 PODS=1 for more).
	@$(RUN) test ./perf/scale $(if $(NODES),-nodes $(NODES)) $(if $(PODS),-pods $(PODS))

.PHONY: envelope
envelope: control-plane ## Measure how Kubernetes copes with more of all that DRA has, or compare it with AGAINST=1.35 (half an hour, an hour; ONLY=REGEX ROUNDS=6 PATCH=FILE).
	@$(RUN) test ./perf/envelope -against '$(AGAINST)' -patch '$(abspath $(PATCH))' -only '$(value ONLY)' $(if $(ROUNDS),-rounds $(ROUNDS)) $(ARGS)

.PHONY: envelope-page
envelope-page: ## Write docs/envelope.md about what make envelope has measured (REPORTS='bin/envelope.json').
	@$(RUN) test ./perf/envelope -page '$(CURDIR)/docs/envelope.md' $(abspath $(or $(REPORTS),bin/envelope.json))

.PHONY: soak
soak: control-plane ## Have nodes, Pods, templates and taints come and go for an hour, and tell whether memory and lag stay flat.
	@$(RUN) test ./perf/soak

.PHONY: clean
clean: ## Remove what was built in the work tree.
	rm -rf bin dist
