#!/usr/bin/env bash
# Makes build/PRESET/packages/kf-host-VERSION-linux-MACHINE.tar.gz and .deb. usage: scripts/package.sh PRESET [TORCH]   (TORCH=0: without torch)
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1 torch=${2:-1} build=build/$1
components="program;torch"
[ "$torch" = 0 ] && components=program

# Debian packages that have the libraries which our own files name. torch and Arrow are in the package.
depends=$(for file in "$build"/kf-host "$build"/lib*.so; do readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; done | sort -u |
  while read -r library; do
    path=$(ldconfig -p | awk -v name="$library" '$1 == name { print $NF; exit }')
    [ -n "$path" ] || continue
    real=$(readlink -f "$path")
    dpkg-query -S "$real" "${real#/usr}" 2>/dev/null | cut -d: -f1 || true  # older packages say /lib
  done | sort -u | paste -sd ',' | sed 's/,/, /g')
[ -n "$depends" ] || { echo "package: dpkg names no package of the libraries that kf-host needs; is this a Debian?" >&2; exit 1; }

rm -rf "$build/packages"
for generator in TGZ DEB; do
  (cd "$build" && cpack -G "$generator" -D "CPACK_DEBIAN_PACKAGE_DEPENDS=$depends" -D "CPACK_COMPONENTS_ALL=$components" >packages.log 2>&1) ||
    { cat "$build/packages.log" >&2; exit 1; }
done
rm -rf "$build/packages/_CPack_Packages"
ls -1sh "$build"/packages/kf-host*
