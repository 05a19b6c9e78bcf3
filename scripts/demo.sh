#!/usr/bin/env bash
# Trains examples/first-run/job.toml from scratch and prints what the model writes before and after. usage: scripts/demo.sh [PRESET]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
host=build/$preset/kf-host
run=runs/first-run
prompt='def '

sample() {  # sample TITLE CHECKPOINT: three continuations
  local seed
  printf '\n--- %s ---\n' "$1"
  for seed in 1 2 3; do
    "$host" generate "$2" --prompt "$prompt" --max-new-tokens 160 --temperature 0.7 --seed "$seed" | LC_ALL=C tr -c '[:print:]\n' '.'
    printf '\n...\n'
  done
}

printf 'demo: %s steps on %s cores, about 2 to 5 minutes on two\n' "$(sed -n 's/^max_steps = //p' examples/first-run/job.toml)" "$(nproc)"
"$host" examples/first-run/job.toml --run.fresh=true

before=$(find "$run" -type d -name step_0 -print -quit)
sample "before training it writes" "$before"
sample "and after it" "$run"

# Each evaluation is a line of its own: {"step": 50, "eval": {"loss": 2.1, ...}}.
grep '"eval"' "$run/metrics.jsonl" | sed -E 's/.*"step": *([0-9]+).*"loss": *([0-9.]+).*/\1 \2/' | awk '
  NR == 1 { first = $2; from = $1 }
  { last = $2; to = $1 }
  END { printf "\nvalidation loss: %.3f at step %d, %.3f at step %d (%.2f bits per byte)\n", first, from, last, to, last / log(2) }'
printf 'its run is in %s; more text: %s generate %s --prompt "import "\n' "$run" "$host" "$run"
