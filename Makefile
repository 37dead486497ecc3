# Short names for the commands; ./test is where the work is.
.PHONY: build test demo spec-coverage bench fuzz

build:
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/longstop ./cmd/longstop

test:
	./test

demo: build
	bin/longstop demo

# Writes docs/spec-coverage.md and says how far the specifications are held.
spec-coverage:
	UPDATE=1 go test -count=1 -v -run '^TestSpecCoverage$$' ./internal/house

# With PostgreSQL: a cluster of its own, with syncs, which ends with the bench.
# make bench ARGS="--quick --only throughput"
bench: build
	@set -e; run=$$(mktemp -d); mkfifo $$run/in $$run/out; \
	sh internal/pgtest/cluster.sh $$run-pg fsync <$$run/in >$$run/out & \
	exec 9>$$run/in; read ready <$$run/out; rm -r $$run; \
	LONGSTOP_DATABASE_URL="postgres://postgres@/postgres?host=$$run-pg" bin/longstop bench $(ARGS)

# Every fuzz target there is, one after the other, on one CPU and out of the
# way of others: make fuzz FUZZTIME=10m. What they find lies in the package's
# testdata/fuzz and is a failing test from then on: mend it and commit both.
FUZZTIME ?= 1m
fuzz:
	@grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9]+' internal | while IFS=: read -r file func; do \
		nice -n 19 go test -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) -parallel=1 "./$$(dirname $$file)" </dev/null || exit 1; \
	done
