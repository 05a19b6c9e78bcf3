#!/usr/bin/env bash
# Prints the processor that programs of this machine run on, as far as it decides about speed and rounding: model, cores, vector
# instructions, and the variables that make libraries use fewer of them.
set -euo pipefail
model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
flags=" $(sed -n 's/^flags[^:]*: *//p' /proc/cpuinfo | head -n 1) "
has() { case $flags in *" $1 "*) printf ' %s' "$2" ;; esac; }
vectors=$(has avx2 AVX2; has avx512f AVX-512; has avx512_bf16 AVX-512-BF16; has avx_ne_convert AVX-NE-CONVERT; has amx_bf16 AMX-BF16)
printf 'processor: %s, %s threads,%s\n' "${model:-$(uname -m)}" "$(env -u OMP_NUM_THREADS nproc)" "${vectors:- no vector instructions that torch uses}"
for variable in ATEN_CPU_CAPABILITY ONEDNN_MAX_CPU_ISA OMP_NUM_THREADS MKL_NUM_THREADS; do
  [ -n "${!variable:-}" ] && printf '  %s=%s\n' "$variable" "${!variable}"
done
exit 0
