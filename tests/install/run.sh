#!/usr/bin/env bash
# Installs the library, then builds the installed examples against the installed tree twice, with pkg-config and with CMake, and runs
# them. Then builds the installed plugin template as its author would, and checks every way in which Cleave finds the plugin.
# usage: run.sh BUILD_DIR MAKE_MODEL
set -euo pipefail
build=$1 make_model=$2 models=$(cd "$(dirname "$0")/../gnn/models" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/usr" >/dev/null
documents=$work/usr/share/doc/cleave
for file in "$documents"/{README.md,LICENSE,docs/runtime.md,docs/backend-guide.md} "$work"/usr/share/cleave/torch_to_ir.py; do test -s "$file"; done
test -x "$work/usr/share/cleave/torch_to_ir.py"
for page in cleave cleave-plan cleave-gnn-run; do grep -q '^.TH' "$work/usr/share/man/man1/$page.1"; done
for file in bash-completion/completions/cleave zsh/site-functions/_cleave fish/vendor_completions.d/cleave.fish; do
  grep -q 'Completion of `cleave`' "$work/usr/share/$file"
done
library=$(dirname "$(find "$work/usr" -name libcleave.so)")
export PKG_CONFIG_PATH=$library/pkgconfig LD_LIBRARY_PATH=$library
"$make_model" "$work/model.onnx"
for example in minimal run_model own_backend gnn; do
  # shellcheck disable=SC2046
  cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$documents/examples/$example.c" $(pkg-config --cflags --libs cleave) -o "$work/$example"
done
cmake -S "$documents/examples" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/usr" >/dev/null
cmake --build "$work/build" >/dev/null
for folder in "$work" "$work/build"; do
  "$folder/minimal" "$work/model.onnx" | tee "$work/out"
  grep -q '^y: [0-9]' "$work/out"
  for devices in cpu npu,cpu; do
    "$folder/run_model" "$work/model.onnx" "$devices" | tee "$work/out"
    grep -qF 'y f32[' "$work/out"
  done
  for model in graphsage_script.onnx gat.json; do
    "$folder/gnn" "$models/$model" npu,cpu | tee "$work/out"
    grep -q '^out \[1024,[0-9]*\] from [1-9]' "$work/out"
  done
  "$folder/own_backend" "$work/model.onnx" | tee "$work/out"
  grep -q "^y: [0-9].*; 'mine' ran [1-9]" "$work/out"
done
if "$work/run_model" "$work/nothing.onnx" 2>"$work/error"; then echo "a missing model must fail"; exit 1; fi
grep -q 'nothing.onnx' "$work/error"
objdump -p "$library/libcleave.so" >"$work/out" # not a pipe: grep -q would close it before objdump is done
grep -q 'SONAME *libcleave.so.0' "$work/out"
provider=$library/libcleave_onnxruntime_ep.so # ONNX Runtime loads it from there: it must find libcleave beside itself
test "$(nm -D --defined-only "$provider" | awk '{print $3}' | tr '\n' ' ')" = 'CreateEpFactories ReleaseEpFactory '
test "$(env -u LD_LIBRARY_PATH ldd "$provider" | awk '/libcleave/ {print $3}')" = "$library/libcleave.so.0"

# ---- A plugin from outside ----
cleave=$work/usr/bin/cleave plugin=$work/template/cleave_template.so
export CLEAVE_CACHE_DIR=
unset CLEAVE_PLUGIN_PATH LD_LIBRARY_PATH
says() { # says TEXT COMMAND...: the command must fail, and its standard error must contain TEXT
  if "${@:2}" >"$work/out" 2>"$work/error"; then echo "must fail: ${*:2}"; exit 1; fi
  if ! grep -qF -- "$1" "$work/error"; then echo "does not say '$1':"; cat "$work/error"; exit 1; fi
}
cmake -S "$documents/backends/template" -B "$work/template" -DCMAKE_PREFIX_PATH="$work/usr" >/dev/null
cmake --build "$work/template" >/dev/null
objdump -p "$plugin" >"$work/out"
if grep -q 'NEEDED.*libcleave' "$work/out"; then echo "the plugin must not be linked with the library"; exit 1; fi
test "$(nm -D --defined-only "$plugin" | awk '{print $3}')" = clv_backend_query
run=(run "$work/model.onnx" --devices template,cpu --strategy contiguous --verify)
# The plugin is given by its path, which must contain a slash.
"$cleave" "${run[@]}" --plugin "$plugin" --device-option template:trace=on -v 2>&1 | tee "$work/out"
grep -q 'template: [1-9][0-9]* steps' "$work/out"
cd "$work/template"
"$cleave" "${run[@]}" --plugin ./cleave_template.so -q
says 'write ./cleave_template.so' "$cleave" devices --plugin cleave_template.so
says "option 'colour' is unknown; the options of template are: trace (on or off)" \
  "$cleave" "${run[@]}" --plugin ./cleave_template.so --device-option template:colour=red
says 'no plugin cleave_template.so' "$cleave" "${run[@]}"
cd "$work"
# The plugin is found in the folders of CLEAVE_PLUGIN_PATH: by its name, and for the list of all backends.
CLEAVE_PLUGIN_PATH=/nowhere:$work/template "$cleave" "${run[@]}" -q
CLEAVE_PLUGIN_PATH=$work/template "$cleave" devices --json >"$work/out"
grep -q '"name": "template"' "$work/out"
grep -q '"key": "trace"' "$work/out"
CLEAVE_PLUGIN_PATH=template says 'no plugin cleave_template.so' "$cleave" "${run[@]}"
# The plugin is found in the installation's plugin folder, even after the installed tree was moved: by the command, and by a
# program linked with the library.
cmake --install "$work/template" --prefix "$work/usr" >/dev/null
test -f "$library/cleave/plugins/cleave_template.so"
mv "$work/usr" "$work/moved"
cleave=$work/moved/bin/cleave
"$cleave" "${run[@]}" -q
LD_LIBRARY_PATH=${library/\/usr\//\/moved\/} "$work/run_model" "$work/model.onnx" template,cpu >"$work/out"
grep -F 'y f32[' "$work/out"
"$cleave" devices -v >"$work/out" 2>"$work/error"
grep -q '^template *template *cpu' "$work/out"
grep -q 'Options of template, given as --device-option template:OPTION=VALUE' "$work/out"
grep -q '^vnpu *its devices are virtual' "$work/out"
# The template passes the conformance kit.
"$cleave" check-backend "$work/template/cleave_template.so"
