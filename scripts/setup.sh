#!/usr/bin/env bash
# Installs what is missing, and nothing else: Debian packages, torch in .deps/, text to learn from. Safe to run again and to interrupt.
# usage: scripts/setup.sh [lint] [asan] [shells] [gpu]     (`lint`: the tools of `make lint`, too; `asan`: what the sanitizers need at run
# time; `shells`: those in which tests press Tab; `gpu`: the libraries of GPUs, also where there is none, as when an image is made)
set -euo pipefail
cd "$(dirname "$0")/.."

torch=2.11.0
pyarrow=26.0.1
say() { printf '%s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# --- Debian packages: each is asked for by what it brings, so that a tool from elsewhere counts too ---
command_of() { command -v "$1" >/dev/null 2>&1; }
clang_header_of() { [ -e "/usr/lib/llvm-14/include/$1" ]; }
header_of() { [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ]; }
cmake_is_new() {
  local version
  version=$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*//p')
  printf '3.25\n%s\n' "$version" | sort -V -C
}
sanitizers_of() { echo 'int main(){}' | clang++ -fsanitize=address -x c++ - -o /dev/null 2>/dev/null; }
curl_of() { pkg-config --exists libcurl 2>/dev/null || header_of curl/curl.h || header_of "$(uname -m)-linux-gnu/curl/curl.h"; }
luajit_of() { pkg-config --exists luajit 2>/dev/null; }
python_of() { system_python >/dev/null; }
pip_of() { "$(system_python)" -m pip --version >/dev/null 2>&1; }
# Debian's own Python before any other in PATH: its library is the text that the demo learns.
system_python() {
  local candidate
  for candidate in /usr/bin/python3 python3; do
    if "$candidate" -c 'import json, zipfile, shutil' 2>/dev/null; then
      printf '%s\n' "$candidate"
      return 0
    fi
  done
  return 1
}

missing=()
want() {  # want PACKAGE CHECK [ARGUMENT]
  local package=$1
  shift
  "$@" || missing+=("$package")
}
look() {
  missing=()
  want clang command_of clang++
  want make command_of make
  want cmake cmake_is_new
  want ninja-build command_of ninja
  want ccache command_of ccache
  want mold command_of mold
  want pkg-config command_of pkg-config
  want libluajit-5.1-dev luajit_of
  want libedit-dev header_of editline/readline.h
  want libspdlog-dev header_of spdlog/spdlog.h
  want libfmt-dev header_of fmt/format.h
  want libtomlplusplus-dev header_of toml++/toml.h
  want nlohmann-json3-dev header_of nlohmann/json.hpp
  want zlib1g-dev header_of zlib.h
  want libdeflate-dev header_of libdeflate.h
  want libsqlite3-dev header_of sqlite3.h
  want libzstd-dev header_of zstd.h
  want libpcre2-dev header_of pcre2.h
  want libutf8proc-dev header_of utf8proc.h
  want libsimdjson-dev header_of simdjson.h
  want libcurl4-openssl-dev curl_of
  want libssl-dev header_of openssl/evp.h
  want libxxhash-dev header_of xxhash.h
  want libyaml-cpp-dev header_of yaml-cpp/yaml.h
  want libarchive-dev header_of archive.h
  want libdw-dev header_of elfutils/libdwfl.h
  want libisal-dev header_of isa-l/crc.h
  want libprotozero-dev header_of protozero/pbf_writer.hpp
  want libcpp-httplib-dev header_of httplib.h
  want catch2 header_of catch2/catch.hpp
  want python3 python_of
  if ! have_torch || ! have_pyarrow || { wants_cuda && ! have_cuda_set; }; then
    want python3-pip pip_of
  fi
  local extra
  for extra in "$@"; do
    case $extra in
      lint)
        want clang-format-14 command_of clang-format-14
        want clang-tidy-14 command_of clang-tidy-14
        want libclang-14-dev clang_header_of clang-tidy/ClangTidyCheck.h
        want llvm-14-dev clang_header_of llvm/Support/Regex.h
        want lua-check command_of luacheck
        ;;
      asan) want libclang-rt-14-dev sanitizers_of ;;
      shells)
        want zsh command_of zsh
        want fish command_of fish
        ;;
      gpu) ;;
      *) die "unknown word '$extra'; there are: lint, asan, shells, gpu" ;;
    esac
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command_of sudo; then
    sudo "$@"
  else
    die "needs root to install: ${missing[*]}. Run as root: apt-get install --no-install-recommends ${missing[*]}"
  fi
}

install_packages() {
  command_of apt-get || die "missing: ${missing[*]} (named as in Debian 12); install them, then try again"
  say "setup: installing Debian packages: ${missing[*]}"
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq)
  local install=("${apt[@]}" install -y --no-install-recommends "${missing[@]}")
  # A fresh machine has no package lists, an old one stale lists: they are fetched when the first try fails.
  if ! as_root "${install[@]}" >"$log" 2>&1; then
    as_root "${apt[@]}" update >"$log" 2>&1 || { cat "$log" >&2; die "apt-get update failed"; }
    as_root "${install[@]}" >"$log" 2>&1 || { cat "$log" >&2; die "apt-get install failed"; }
  fi
}

# --- torch: the wheel has headers and libraries. It is unpacked beside its place and moved when complete, so what is there is whole ---
have_torch() {
  grep -qs "^__version__ = '$torch" .deps/torch/version.py && [ -e .deps/torch/lib/libtorch_cpu.so ] && [ -e .deps/torch/lib/libc10.so ] &&
    [ -e .deps/torch/include/ATen/ATen.h ] && [ -e .deps/nvidia/cu13/lib/libcudart.so.13 ] && [ -e .deps/nvidia/cu13/lib/libcupti.so.13 ]
}
asked=" $* "
wants_cuda() { [[ $asked == *" gpu "* ]] || { command_of nvidia-smi && nvidia-smi -L 2>/dev/null | grep -q GPU; }; }
have_cuda_set() {
  [ -e .deps/nvidia/cu13/lib/libcublas.so.13 ] && [ -e .deps/nvidia/cudnn/lib/libcudnn.so.9 ] && [ -e .deps/nvidia/nccl/lib/libnccl.so.2 ] &&
    [ -e .deps/nvidia/cusparselt/lib/libcusparseLt.so.0 ] && ls .deps/nvidia/nvshmem/lib/libnvshmem_host.so.* >/dev/null 2>&1
}

pip_into() {  # pip_into FOLDER REQUIREMENT... : wheels only, whatever the version of the machine's own Python
  local folder=$1 platforms=() minor
  shift
  platforms=(--platform "manylinux2014_$(uname -m)")
  for minor in $(seq 5 28); do  # wheels name the glibc they want: Debian 12 has 2.36, torch asks for 2.28
    platforms+=(--platform "manylinux_2_${minor}_$(uname -m)")
  done
  mkdir -p "$partial/tmp"
  TMPDIR="$PWD/$partial/tmp" PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_WARN_SCRIPT_LOCATION=1 \
    "$(system_python)" -m pip install --quiet --no-cache-dir --no-compile --only-binary=:all: --python-version 3.11 --implementation cp \
    "${platforms[@]}" --target "$folder" "$@" || die "pip could not install $*; when the network is back, run it again"
}

# What torch's own metadata asks of NVIDIA's packages on Linux, without the two that only Python uses.
cuda_requirements() {
  sed -n 's/^Requires-Dist: *\(\(nvidia-\|cuda-toolkit\)[^;]*[^; ]\) *;.*[Ll]inux.*/\1/p' "$1"/torch-*.dist-info/METADATA
}

install_torch() {
  say "setup: installing torch $torch into .deps/ (about 550 MB to fetch, 1.2 GB on disk)"
  rm -rf "$partial"
  pip_into "$partial/site" --no-deps "torch==$torch" 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cupti==13.0.*'
  move_in nvidia
  rm -rf .deps/torch-*.dist-info
  mv "$partial"/site/torch-*.dist-info .deps/
  move_in torch
  rm -rf "$partial"
}

install_cuda_set() {
  local packages=() line
  while IFS= read -r line; do packages+=("$line"); done < <(cuda_requirements .deps)
  [ "${#packages[@]}" -gt 0 ] || die "torch's metadata in .deps names no NVIDIA packages; remove .deps and try again"
  say "setup: a GPU was found; installing its libraries into .deps/ (about 2 GB to fetch): ${packages[*]}"
  rm -rf "$partial"
  pip_into "$partial/site" "${packages[@]}"
  move_in nvidia
  rm -rf "$partial"
}

move_in() {  # move_in NAME: swaps .deps/NAME for the new one
  [ -d "$partial/site/$1" ] || die "the wheels held no folder '$1'"
  rm -rf ".deps/$1"
  mv "$partial/site/$1" ".deps/$1"
}

# --- pyarrow: its wheel has headers and libraries of Arrow and Parquet; what is Python in it is not used ---
have_pyarrow() {
  [ -e ".deps/pyarrow-$pyarrow.dist-info/METADATA" ] && [ -e .deps/pyarrow/include/arrow/api.h ] && ls .deps/pyarrow/libparquet.so.* >/dev/null 2>&1
}
install_pyarrow() {
  say "setup: installing pyarrow $pyarrow into .deps/ (about 50 MB to fetch, 170 MB on disk)"
  rm -rf "$partial"
  pip_into "$partial/site" --no-deps "pyarrow==$pyarrow"
  move_in pyarrow
  rm -rf .deps/pyarrow-*.dist-info
  mv "$partial"/site/pyarrow-*.dist-info .deps/
  rm -rf "$partial"
}

# --- the demo's text: Python's standard library, without tests and without what else was installed there ---
install_text() {
  say "setup: copying Python's standard library to .deps/python-stdlib (text for the demo)"
  rm -rf "$partial"
  "$(system_python)" - "$partial/text" <<'PY'
import os, shutil, sys, sysconfig
left_out = shutil.ignore_patterns("test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__", "config-*", "lib-dynload", "*.so")
source, target = sysconfig.get_path("stdlib"), sys.argv[1]
shutil.copytree(source, target, ignore=left_out, ignore_dangling_symlinks=True)
size = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(target) for name in names if name.endswith(".py"))
if size < 4_000_000:
    sys.exit(f"{source} holds only {size} bytes of Python; a whole Python is needed (Debian: libpython3-stdlib)")
PY
  rm -rf .deps/python-stdlib
  mv "$partial/text" .deps/python-stdlib
  rm -rf "$partial"
}

mkdir -p .deps
partial=.deps/.partial
log=.deps/setup.log
if command_of flock; then  # two set-ups at once (make -j demo test) wait for each other
  exec 9>.deps/.lock
  flock 9
fi
look "$@"
if [ "${#missing[@]}" -gt 0 ]; then
  install_packages
  look "$@"
  [ "${#missing[@]}" -eq 0 ] || die "still missing after the installation: ${missing[*]}"
fi
have_torch || install_torch
have_torch || die "torch $torch did not arrive in .deps; see above"
have_pyarrow || install_pyarrow
have_pyarrow || die "pyarrow $pyarrow did not arrive in .deps; see above"
if wants_cuda && ! have_cuda_set; then
  install_cuda_set
fi
[ -d .deps/python-stdlib ] || install_text
