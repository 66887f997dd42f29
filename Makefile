# The front door. Meson (meson.build) is the only description of the build; each target here
# installs what it needs and lacks, then calls it or a script of tools/.
.POSIX:
.PHONY: help build demo test long bench coverage fmt clean
.DEFAULT_GOAL := help
DEMO = --once

help:
	@echo 'make build     the program, at build/limpet'
	@echo 'make demo      three replicas, a round robin that loses sessions, a gateway that keeps them'
	@echo 'make test      every check and test (under half an hour on 2 cores); STAGES=a,b for some'
	@echo 'make long      bare Debian in a chroot, long fuzzing, 100,000 simulator seeds (hours, root)'
	@echo 'make bench     CPU per request beside HAProxy and a bare relay'
	@echo 'make coverage  lines, functions and branches that the tests reach; too few fail'
	@echo 'make fmt       format the sources'
	@echo 'make clean     remove the build folders'

build:
	@tools/install build
	@tools/build build --buildtype=release -Dtests=false
	@echo "The program is build/limpet."

demo: build
	@build/limpet demo $(DEMO)

test:
	@tools/install build test
	@tools/run-tests

long:
	@tools/install build test long
	@test/long/run

bench:
	@tools/install build bench
	@test/bench/run

coverage:
	@tools/install build test
	@STAGES=coverage tools/run-tests

fmt:
	@tools/install fmt
	@find $$(ls -d src include test doc 2>/dev/null) -name '*.[ch]' -not -path '*/node_modules/*' -exec clang-format-14 -i {} +

clean:
	rm -rf build build-*
