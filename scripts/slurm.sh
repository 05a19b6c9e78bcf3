#!/usr/bin/env bash
# A Slurm of one machine, for tests and for trying scripts. usage: scripts/slurm.sh [run COMMAND...]
#   without words   puts Debian's packages of Slurm and munge, unpacked, into .deps/slurm (20 MB). Without a network or apt nothing happens
#                   but a line that says so; the test that needs them then says so, too.
#   run COMMAND...  starts a controller and a node of this machine in a scratch folder, runs COMMAND with sbatch, srun, scontrol, ... in its
#                   PATH, and ends them. Nothing of the system is touched, no rights are needed, and no control groups. SLURM_SCRATCH: the
#                   folder, which then stays; KF_SLURM: where the packages lie.
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
root=${KF_SLURM:-$here/.deps/slurm}
packages="slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libmunge2 liblua5.1-0 libhwloc15 liblz4-1"

fetch() {
  [ -x "$root/usr/sbin/slurmctld-wlm" ] && return 0
  if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    echo "slurm: no apt-get and dpkg-deb here"
    return 0
  fi
  mkdir -p "$(dirname "$root")"
  local package
  partial=$(mktemp -d "$(dirname "$root")/.slurm.XXXXXX")
  trap 'rm -rf "$partial"' EXIT  # a name of the whole script: it outlives this function
  mkdir "$partial/tree"
  # shellcheck disable=SC2086
  (cd "$partial" && { timeout 120 apt-get download $packages || { timeout 120 apt-get update && timeout 120 apt-get download $packages; }; }) \
    >/dev/null 2>&1 || { echo "slurm: Debian's packages cannot be fetched"; return 0; }
  for package in "$partial"/*.deb; do
    dpkg-deb -x "$package" "$partial/tree" || return 0
  done
  chmod 755 "$partial/tree"
  [ -e "$root" ] || mv "$partial/tree" "$root"
}

free_port() {  # a port that nobody listens on; the next one is taken for the node
  local port
  for ((port = 20000 + RANDOM % 10000; ; port += 2)); do
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && ! (exec 3<>"/dev/tcp/127.0.0.1/$((port + 1))") 2>/dev/null; then
      echo "$port"
      return
    fi
  done
}

configuration() {  # configuration FOLDER PORT: eight places for tasks, however many cores there are
  local host
  host=$(uname -n)
  host=${host%%.*}
  cat <<CONF
ClusterName=scratch
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$2
SlurmdPort=$(($2 + 1))
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$1/munge.socket
CredType=cred/munge
StateSaveLocation=$1/state
SlurmdSpoolDir=$1/spool
SlurmctldPidFile=$1/slurmctld.pid
SlurmdPidFile=$1/slurmd.pid
SlurmctldLogFile=$1/slurmctld.log
SlurmdLogFile=$1/slurmd.log
PluginDir=$libraries/slurm-wlm
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=10
NodeName=$host NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
}

# The program ends with this script, however that ends.
bound() { if command -v setpriv >/dev/null; then setpriv --pdeathsig KILL "$@"; else "$@"; fi; }

end_all() {
  local pid
  for pid in "${daemons[@]}"; do
    kill "$pid" 2>/dev/null
  done
  wait "${daemons[@]}" 2>/dev/null
  [ -n "${SLURM_SCRATCH:-}" ] || rm -rf "$folder"
}

run() {
  [ -x "$root/usr/sbin/slurmctld-wlm" ] || { echo "slurm: there is none in $root; scripts/slurm.sh fetches it" >&2; return 2; }
  libraries=$(echo "$root"/usr/lib/*-linux-gnu)
  folder=${SLURM_SCRATCH:-$(mktemp -d "${TMPDIR:-/tmp}/slurm.XXXXXX")}
  mkdir -p "$folder/state" "$folder/spool"
  chmod 755 "$folder"
  export SLURM_CONF=$folder/slurm.conf PATH=$root/usr/bin:$PATH
  export LD_LIBRARY_PATH=$libraries:$libraries/slurm-wlm${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  configuration "$folder" "$(free_port)" >"$folder/slurm.conf"
  (umask 077 && head -c 1024 /dev/urandom >"$folder/munge.key")
  daemons=()
  trap end_all EXIT
  bound "$root/usr/sbin/munged" --foreground --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" \
    --log-file="$folder/munged.log" --pid-file="$folder/munged.pid" --seed-file="$folder/munged.seed" >"$folder/munged.out" 2>&1 &
  daemons+=($!)
  local tries
  for ((tries = 0; tries < 100; ++tries)); do
    [ -S "$folder/munge.socket" ] && break
    sleep 0.1
  done
  bound "$root/usr/sbin/slurmctld-wlm" -D -c -f "$SLURM_CONF" >"$folder/slurmctld.out" 2>&1 &
  daemons+=($!)
  bound "$root/usr/sbin/slurmd-wlm" -D -f "$SLURM_CONF" -d "$root/usr/sbin/slurmstepd-wlm" >"$folder/slurmd.out" 2>&1 &
  daemons+=($!)
  for ((tries = 0; tries < 100; ++tries)); do
    [ "$(sinfo --noheader --format=%T 2>/dev/null)" = idle ] && break
    sleep 0.2
  done
  if ((tries == 100)); then
    echo "slurm: the node did not come up:" >&2
    tail -n 20 "$folder"/*.out "$folder"/*.log >&2
    return 1
  fi
  "$@"
}

if [ "$#" -eq 0 ]; then
  fetch
elif [ "$1" = run ] && [ "$#" -gt 1 ]; then
  run "${@:2}"
else
  sed -n '2,7s/^# \?//p' "$0" >&2
  exit 2
fi
