# `make` alone prints what there is. Tests are bounded in time by themselves.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LINT    := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
COMPAT  := compat-tests
LDFLAGS := -s -w -X main.version=$(VERSION)

# How long `make fuzz` spends on each target.
FUZZTIME ?= 30s

# What `make sim` and `make oracle-search` run.
SEED ?= 1
N    ?= 1

# A regular expression: the scenarios that `make oracle` records.
ONLY ?=

.DEFAULT_GOAL := help
.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/rollcall, one static binary
	CGO_ENABLED=0 $(GO) build -trimpath -pgo=cmd/rollcall/cpu.pgo -ldflags '$(LDFLAGS)' -o bin/rollcall ./cmd/rollcall

.PHONY: run
run: build ## build and start the standalone gateway
	@bin/rollcall config show | awk '/^(advertised.)?listeners:|^admin.listen:|^data.dir:/ {print "  " $$1, $$2}'
	@echo "  try, in another terminal: (cd $(COMPAT) && go run ./example)"
	@echo "  and with kcat:            echo hello | kcat -b 127.0.0.1:9092 -P -t greetings"
	exec bin/rollcall serve

.PHONY: test
test: ## unit tests, and one run of each pure-Go client's group test
	$(GO) test ./...
	cd $(COMPAT) && $(GO) test -timeout 5m -parallel 6 . ./bench ./sim/... ./oracle

.PHONY: check
check: ## format, vet, lint, layout rules, go.mod, static build
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not formatted:"; echo "$$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags invariants ./...
	cd $(COMPAT) && $(GO) vet ./...
	$(GO) run $(LINT) run ./...
	cd $(COMPAT) && $(GO) run $(LINT) run -c ../.golangci.yml ./...
	$(GO) test -count=1 -run Tidy .
	$(GO) mod tidy -diff
	cd $(COMPAT) && $(GO) mod tidy -diff
	$(MAKE) build
	@$(GO) version -m bin/rollcall | grep -q 'CGO_ENABLED=0' && echo "bin/rollcall is static"

.PHONY: race
race: ## unit tests under the race detector
	$(GO) test -race ./...

.PHONY: invariants
invariants: ## unit tests with the costly checks compiled in
	$(GO) test -tags invariants ./...

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (30s)
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x $$pkg; \
		done; \
	done

.PHONY: explore
explore: ## every order of events of a small group, to a fixed point
	$(GO) test -count=1 -timeout 20m -v -run Explore ./coordinator/group -explore

.PHONY: crash
crash: ## a crash at every commit boundary
	$(GO) test -count=1 -timeout 15m -run 'Crash|Recover|Kill' ./coordinator/... ./store/...

.PHONY: sim
sim: ## exact simulations with faults: SEED, or N of them from SEED on
	cd $(COMPAT) && $(GO) run ./sim -seed $(SEED) -n $(N)

.PHONY: nightly
nightly: ## the simulations for longer: 3000 exact runs, 300 of the whole server, a week of it
	$(MAKE) sim N=3000
	cd $(COMPAT) && $(GO) test -count=1 -timeout 60m ./sim/bubble -v -seeds 300 -soak

.PHONY: oracle
oracle: ## ask Apache Kafka again what it answers in compat-tests/oracle/testdata
	cd $(COMPAT) && $(GO) test -count=1 -timeout 30m -v -run TestRecord ./oracle -record -only '$(ONLY)'

.PHONY: oracle-search
oracle-search: ## N random scenarios from SEED on, against Apache Kafka and Rollcall
	cd $(COMPAT) && $(GO) test -count=1 -timeout 0 -v -run TestSearch ./oracle -search -seed $(SEED) -lists $(N)

.PHONY: compat
compat: ## real clients, tools and registries; installs them by name
	-$(COMPAT)/tools/install
	cd $(COMPAT) && $(GO) test -count=1 -timeout 25m -parallel 6 -args -runs 10 -rdkafka -full -real $(UPDATE)

.PHONY: bench
bench: ## benchmarks; docs/performance.md says what they measure
	$(GO) test -run '^$$' -bench . -benchmem ./...
	cd $(COMPAT) && $(GO) test -run '^$$' -bench . -benchtime 1x -timeout 20m .

.PHONY: bench-peers
bench-peers: ## Rollcall beside Apache Kafka and kfake; writes docs/performance.md (10 minutes, needs Java 17 and Maven)
	cd $(COMPAT) && $(GO) run ./bench -docs ../docs

.PHONY: mutants
mutants: ## break each rule on purpose and see its test fail
	./mutants/run.sh

.PHONY: cover
cover: ## coverage of the unit tests, by package
	$(GO) test -coverprofile=bin/cover.out ./... | awk '/coverage:/'
	$(GO) tool cover -func=bin/cover.out | tail -1

.PHONY: image
image: build ## a container image, FROM scratch
	docker build -f docker/Dockerfile -t rollcall:latest .
