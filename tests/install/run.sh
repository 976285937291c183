#!/usr/bin/env bash
# Installs the library, then builds the example against the installed tree twice, with pkg-config and with CMake, and runs it.
# usage: run.sh BUILD_DIR SOURCE_DIR MAKE_MODEL
set -euo pipefail
build=$1 source=$2 make_model=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/usr" >/dev/null
library=$(dirname "$(find "$work/usr" -name libcleave.so)")
export PKG_CONFIG_PATH=$library/pkgconfig LD_LIBRARY_PATH=$library
"$make_model" "$work/model.onnx"
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$source/examples/run_model.c" $(pkg-config --cflags --libs cleave) -o "$work/by_pkg_config"
cmake -S "$source/examples" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/usr" >/dev/null
cmake --build "$work/build" >/dev/null
expected='y f32['
for program in "$work/by_pkg_config" "$work/build/run_model"; do
  for devices in cpu npu,cpu; do
    "$program" "$work/model.onnx" "$devices" | tee "$work/out"
    grep -qF "$expected" "$work/out"
  done
done
if "$work/by_pkg_config" "$work/nothing.onnx" 2>"$work/error"; then echo "a missing model must fail"; exit 1; fi
grep -q 'nothing.onnx' "$work/error"
objdump -p "$library/libcleave.so" | grep -q 'SONAME *libcleave.so.0'
