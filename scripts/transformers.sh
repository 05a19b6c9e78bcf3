#!/usr/bin/env bash
# Puts Python's transformers and torch into .deps/transformers-oracle for the tests that compare exports with them (1.6 GB).
# torch wants CUDA's libraries, which no test needs: those that the machine lacks are replaced by empty ones.
# Without a network or pip nothing happens: the tests then say that they leave the comparison out.
set -uo pipefail
cd "$(dirname "$0")/.."
oracle=.deps/transformers-oracle
[ -e "$oracle/stubs" ] && exit 0
command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 && command -v cc nm readelf >/dev/null || exit 0
mkdir -p .deps
partial=$(mktemp -d .deps/.transformers.XXXXXX)
trap 'rm -rf "$partial"' EXIT
export PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
install() { timeout 900 python3 -m pip install --quiet --retries 1 --timeout 20 --target "$partial/site" "$@" >/dev/null 2>&1; }
install 'transformers==5.*' 'sympy' 'networkx' 'jinja2' 'fsspec' 'filelock' && install --no-deps 'torch==2.11.0' || exit 0

lib=$partial/site/torch/lib
mkdir "$partial/site/stubs"
for name in $(for file in "$lib"/*.so*; do readelf -d "$file" 2>/dev/null; done | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort -u); do
  case $name in libcu* | libnv* | libnccl*) ;; *) continue ;; esac
  [ -e "$lib/$name" ] || ldconfig -p | grep -q "^[[:space:]]*$name " && continue
  if ! [ -e "$partial/stub.c" ]; then
    for file in "$lib"/*.so; do nm -D --undefined-only "$file" 2>/dev/null; done | awk '{print $NF}' | sed 's/@.*//' |
      grep -E '^(cu|nv|nccl|__cuda)[A-Za-z_]' | sort -u | awk '{print "int " $1 "(void) { return 100; }"}' >"$partial/stub.c"
  fi
  cc -shared -fPIC -w "-Wl,-soname,$name" -o "$partial/site/stubs/$name" "$partial/stub.c" || exit 0
done
LD_LIBRARY_PATH="$partial/site/stubs" PYTHONPATH="$partial/site" python3 -c 'import torch, transformers' >/dev/null 2>&1 || exit 0
[ -e "$oracle" ] || mv "$partial/site" "$oracle"
