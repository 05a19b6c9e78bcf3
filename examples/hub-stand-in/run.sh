#!/bin/sh
# Serves examples/hub-stand-in/root as a hub on this machine, then trains on the data set in it: run.sh [KF_HOST] [ARGUMENTS...]
set -eu
cd "$(dirname "$0")/../.."
program=${1:-build/release/kf-host}
[ $# -eq 0 ] || shift
state=$(mktemp -d)
python3 tests/support/hub_server.py examples/hub-stand-in/root "$state" >/dev/null &
server=$!
trap 'kill $server; rm -rf "$state"' EXIT
while [ ! -s "$state/port" ]; do
  kill -0 $server
  sleep 0.05
done
HF_ENDPOINT="http://127.0.0.1:$(cat "$state/port")/ok" HF_HOME="$state/cache" "$program" examples/hub-stand-in/job.toml "$@"
