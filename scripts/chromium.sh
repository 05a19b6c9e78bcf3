#!/usr/bin/env bash
# A browser for the tests of pages. usage: scripts/chromium.sh [run ARGUMENT...]
#   without words    puts Debian's chromium and the libraries that this machine lacks, unpacked, into .deps/chromium (130 MB to fetch). Without
#                    a network or apt nothing happens but a line that says so; the tests that need it then say so, too.
#   run ARGUMENT...  starts it. A chromium in PATH is taken where there is one. KF_CHROMIUM: where the packages lie.
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
root=${KF_CHROMIUM:-$here/.deps/chromium}
binary=$root/usr/lib/chromium/chromium

fetch() {
  { [ -x "$binary" ] || command -v chromium >/dev/null; } && return 0
  if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    echo "chromium: no apt-get and dpkg-deb here"
    return 0
  fi
  mkdir -p "$(dirname "$root")"
  local package packages
  partial=$(mktemp -d "$(dirname "$root")/.chromium.XXXXXX")
  trap 'rm -rf "$partial"' EXIT  # a name of the whole script: it outlives this function
  mkdir "$partial/tree"
  needed >/dev/null || timeout 120 apt-get update >/dev/null 2>&1
  # What apt would install, so that libraries of the system are not fetched twice.
  packages=$(needed)
  if [ -z "$packages" ]; then
    echo "chromium: Debian's packages cannot be fetched"
    return 0
  fi
  # shellcheck disable=SC2086
  (cd "$partial" && timeout 300 apt-get download $packages) >/dev/null 2>&1 || { echo "chromium: Debian's packages cannot be fetched"; return 0; }
  for package in "$partial"/*.deb; do
    dpkg-deb -x "$package" "$partial/tree" || return 0
  done
  chmod 755 "$partial/tree"
  [ -e "$root" ] || mv "$partial/tree" "$root"
}

needed() {
  apt-get install --simulate --no-install-recommends chromium fonts-dejavu-core 2>/dev/null | sed -n 's/^Inst \([^ ]*\) .*/\1/p' | grep .
}

run() {
  if [ ! -x "$binary" ]; then
    command -v chromium >/dev/null && exec chromium "$@"
    echo "chromium: there is none in $root; scripts/chromium.sh fetches it" >&2
    return 2
  fi
  local libraries
  libraries=$(echo "$root"/usr/lib/*-linux-gnu)
  libraries=$libraries:$libraries/pulseaudio
  # Fonts of the tree beside those of the system.
  mkdir -p "$root/etc/fonts"
  printf '<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "fonts.dtd">\n<fontconfig><include ignore_missing="yes">%s</include><dir>%s</dir><cachedir>%s</cachedir></fontconfig>\n' \
    "$(ls -d /etc/fonts/fonts.conf "$root/etc/fonts/fonts.conf" 2>/dev/null | head -n 1)" "$root/usr/share/fonts" "$root/var/cache/fontconfig" >"$root/etc/fonts/kf.conf"
  FONTCONFIG_FILE=$root/etc/fonts/kf.conf LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$binary" "$@"
}

if [ "$#" -eq 0 ]; then
  fetch
elif [ "$1" = run ]; then
  run "${@:2}"
else
  sed -n '2,6s/^# \?//p' "$0" >&2
  exit 2
fi
