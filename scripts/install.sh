#!/usr/bin/env bash
# Installs what is built. usage: scripts/install.sh PRESET PREFIX [TORCH]     (TORCH=0: without torch; DESTDIR is honoured)
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1 prefix=$2 torch=${3:-1}
[ -n "$prefix" ] || { echo "install: PREFIX is empty; say make install PREFIX=/usr/local" >&2; exit 2; }
case $prefix in
  /*) ;;
  *) prefix=$PWD/$prefix ;;
esac
install() { cmake --install "build/$preset" --prefix "$prefix" --component "$1" >"build/$preset/install.log" || { cat "build/$preset/install.log" >&2; exit 1; }; }
install program
if [ "$torch" = 0 ]; then
  echo "installed ${DESTDIR:-}$prefix/bin/kf-host, without torch: KF_TORCH_DIR=FOLDER, or a link $prefix/lib/kf-host/torch, says where it is"
else
  install torch
  echo "installed ${DESTDIR:-}$prefix/bin/kf-host and its torch for CPUs; GPUs need all of torch: KF_TORCH_DIR=FOLDER"
fi
