# Short names for the commands; ./test is where the work is.
.PHONY: build test demo

build:
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/longstop ./cmd/longstop

test:
	./test

demo: build
	bin/longstop demo
