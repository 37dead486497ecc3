# Short names for the commands; ./test is where the work is.
.PHONY: build test demo spec-coverage

build:
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/longstop ./cmd/longstop

test:
	./test

demo: build
	bin/longstop demo

# Writes docs/spec-coverage.md and says how far the specifications are held.
spec-coverage:
	UPDATE=1 go test -count=1 -v -run '^TestSpecCoverage$$' ./internal/house
