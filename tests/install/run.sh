#!/usr/bin/env bash
# Installs the library, then builds the examples against the installed tree twice, with pkg-config and with CMake, and runs them.
# usage: run.sh BUILD_DIR SOURCE_DIR MAKE_MODEL
set -euo pipefail
build=$1 source=$2 make_model=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/usr" >/dev/null
library=$(dirname "$(find "$work/usr" -name libcleave.so)")
export PKG_CONFIG_PATH=$library/pkgconfig LD_LIBRARY_PATH=$library
"$make_model" "$work/model.onnx"
for example in minimal run_model own_backend; do
  # shellcheck disable=SC2046
  cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$source/examples/$example.c" $(pkg-config --cflags --libs cleave) -o "$work/$example"
done
cmake -S "$source/examples" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/usr" >/dev/null
cmake --build "$work/build" >/dev/null
for folder in "$work" "$work/build"; do
  "$folder/minimal" "$work/model.onnx" | tee "$work/out"
  grep -q '^y: [0-9]' "$work/out"
  for devices in cpu npu,cpu; do
    "$folder/run_model" "$work/model.onnx" "$devices" | tee "$work/out"
    grep -qF 'y f32[' "$work/out"
  done
  "$folder/own_backend" "$work/model.onnx" | tee "$work/out"
  grep -q "^y: [0-9].*; 'mine' ran [1-9]" "$work/out"
done
if "$work/run_model" "$work/nothing.onnx" 2>"$work/error"; then echo "a missing model must fail"; exit 1; fi
grep -q 'nothing.onnx' "$work/error"
objdump -p "$library/libcleave.so" | grep -q 'SONAME *libcleave.so.0'
