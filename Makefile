# `make` or `make help` lists what there is. Everything real is in scripts/, which also work on their own.
PRESET ?= release
PREFIX ?= /usr/local
TORCH ?= 1
.DEFAULT_GOAL := help
.PHONY: help deps build demo test bench lint install package clean

help:  ## this list
	@echo "usage: make TARGET [PRESET=release|debug|asan|cuda]"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 12

deps:  ## install what is missing: Debian packages, torch in .deps/
	@scripts/setup.sh $(filter asan,$(PRESET))

build: deps  ## build everything into build/PRESET
	@scripts/build.sh $(PRESET)

demo: deps  ## train a small model on Python's library, print text before and after
	@scripts/build.sh $(PRESET) kf-host
	@scripts/demo.sh $(PRESET)

test: build  ## build and run every test
	@scripts/test.sh $(PRESET)

bench: deps  ## print speed ratios against references measured in the same run
	@scripts/bench.sh $(PRESET)

lint:  ## formatting, clang-tidy, luacheck (FULL=1: every file, not only changed ones)
	@scripts/setup.sh lint
	@scripts/lint.sh

install: deps  ## install into PREFIX (/usr/local) with torch for CPUs; TORCH=0: without it
	@scripts/build.sh $(PRESET) kf-host
	@scripts/install.sh $(PRESET) "$(PREFIX)" $(TORCH)

package: deps  ## a .tar.gz that can be unpacked anywhere, and a .deb, in build/PRESET/packages
	@scripts/build.sh $(PRESET) kf-host
	@scripts/package.sh $(PRESET) $(TORCH)

clean:  ## remove what was built (build/); .deps/ and runs/ stay
	rm -rf build
