# Each target installs what it needs (tools/setup), so it works on a fresh clone.
#   make build      builds the command build/cleave and the library
#   make demo       splits a ResNet-50 between a virtual NPU and the CPU, runs it, checks the result and draws the plan
#   make test       runs the main tests: unit tests under sanitizers, and all operators and random graphs against oracles
#   make sweeps     runs the other checks of continuous integration: lint, threads, OpenCL, frameworks, pages (test-all: everything)
#   make bench      compares speed with ONNX Runtime and OpenVINO; BENCH='resnet50 --threads 2' selects a part
#   make lint, make format, make coverage (docs/operators.md), make conformance (the report in docs/), make install PREFIX=/usr/local DESTDIR=
#   make wheel      builds the Python package as a wheel in dist/
.PHONY: build demo test sweeps test-all bench lint format coverage conformance install wheel clean

PREFIX ?= /usr/local
PYTHON := .venv/bin/python

# Tests need packages that the build does not. So the first configuration leaves the tests out, and `make test` turns them on.
build:
	@tools/setup build
	@mkdir -p build
	@cmake --preset release $(if $(wildcard build/CMakeCache.txt),,-DCLEAVE_TESTS=OFF) >build/configure.log || \
	  { cat build/configure.log; exit 1; }
	@cmake --build build --target cleave_command cleave_shared

demo: build
	@tools/setup demo
	@$(PYTHON) tools/demo.py

test:
	@tools/setup test
	@python3 tools/run_tests.py

sweeps:
	@tools/setup sweeps
	@python3 tools/run_tests.py --sweeps

test-all:
	@tools/setup sweeps
	@python3 tools/run_tests.py --all

bench: build
	@tools/setup demo
	@cmake --preset release -DCLEAVE_BENCH=ON >build/configure.log && cmake --build build
	@$(PYTHON) bench/bench.py $(BENCH)

lint: build
	@tools/setup sweeps
	@tools/lint

format:
	@tools/setup sweeps
	@find src backends integrations include tests examples fuzz bench -name '*.[ch]' -o -name '*.cpp' | xargs clang-format -i

coverage: build
	@tools/setup demo
	@$(PYTHON) tests/python/test_node_cases.py --write-table
	@$(PYTHON) tests/python/test_node_cases.py --write-table --devices npu
	@$(PYTHON) tests/python/test_node_cases.py --write-table --devices opencl

conformance: build
	@python3 tools/conformance.py --write

wheel: build
	@tools/wheel

install: build
	@cmake --install build --prefix $(PREFIX)

clean:
	@rm -rf build build-dev build-asan build-tsan demo
