#!/usr/bin/env bash
# Puts Python's tokenizers, sentencepiece and tiktoken into .deps/tokenizers-oracle for the tests that compare with them, and for the bench.
# Without a network or pip nothing happens: the tests then check stored cases alone, and say so.
set -uo pipefail
cd "$(dirname "$0")/.."
[ -e .deps/tokenizers-oracle/tokenizers ] && exit 0
command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 || exit 0
mkdir -p .deps
partial=$(mktemp -d .deps/.tokenizers.XXXXXX)
trap 'rm -rf "$partial"' EXIT
PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 timeout 180 python3 -m pip install --quiet --retries 1 --timeout 10 \
  --target "$partial/site" 'tokenizers==0.23.*' 'sentencepiece==0.2.*' 'tiktoken==0.14.*' >/dev/null 2>&1 || exit 0
[ -e .deps/tokenizers-oracle ] || mv "$partial/site" .deps/tokenizers-oracle
