#!/usr/bin/env bash
# Puts Python's gguf and llama.cpp (xllamacpp, a wheel for CPUs) into .deps/gguf-oracle for the tests that run exported models in it. Without a
# network or pip nothing happens: the tests then check the files' headers alone, and say so.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
[ -e .deps/gguf-oracle/xllamacpp ] && exit 0
command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 || exit 0
mkdir -p .deps
partial=$(mktemp -d .deps/.gguf.XXXXXX)
trap 'rm -rf "$partial"' EXIT
PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 timeout 180 python3 -m pip install --quiet --retries 1 --timeout 10 \
  --target "$partial/site" 'gguf==0.*' 'xllamacpp>=2026.10' >/dev/null 2>&1 || exit 0
[ -e .deps/gguf-oracle ] || mv "$partial/site" .deps/gguf-oracle
