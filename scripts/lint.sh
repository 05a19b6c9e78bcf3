#!/usr/bin/env bash
# Formatting of all C++ files, clang-tidy, luacheck. clang-tidy looks at every file that does not include torch (fast) and at the changed
# ones of the others; FULL=1 takes all (twenty minutes on two cores). FIX=1 formats the files instead of complaining.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
step() { printf '%s\n' "lint: $*"; }

tracked() { git ls-files --cached --others --exclude-standard -- "$@" | while IFS= read -r f; do [ -f "$f" ] && printf '%s\n' "$f"; done; }

mapfile -t cpp < <(tracked '*.h' '*.cpp' '*.cu')
step "the house"
python3 scripts/house.py || failed=1

step "clang-format, ${#cpp[@]} files"
if [ -n "${FIX:-}" ]; then
  clang-format-14 -i "${cpp[@]}"
else
  clang-format-14 --dry-run -Werror "${cpp[@]}" || { failed=1; step "FIX=1 make lint formats them"; }
fi

# A compile database of its own, which whatever is in the middle of a build does not disturb. clang-tidy reads torch's headers out of the
# precompiled ones (same version of clang): a file then takes 2 to 3 seconds instead of 11.
mkdir -p build
configure=(cmake --preset release -B build/lint)
[ -e build/lint/build.ninja ] && configure=(cmake build/lint)
"${configure[@]}" >build/lint-configure.log 2>&1 || { cat build/lint-configure.log >&2; exit 1; }
cmake --build build/lint --target kf_build_info >>build/lint-configure.log 2>&1 || { cat build/lint-configure.log >&2; exit 1; }
# The precompiled headers alone: as targets they wait for libraries.
python3 - <<'PY' || exit 1
import json, subprocess, sys
headers = [entry for entry in json.load(open("build/lint/compile_commands.json")) if entry["file"].endswith("cmake_pch.hxx.cxx")]
assert headers, "build/lint/compile_commands.json has no precompiled header"
begun = [subprocess.Popen(entry["command"], shell=True, cwd=entry["directory"]) for entry in headers]
sys.exit(any([one.wait() for one in begun]))
PY
mapfile -t sources < <(LIGHT_ONLY=${FULL:+no} python3 - <<'PY'
import json, os, subprocess
# A file that gets torch's include path takes seconds; it is looked at when it differs from the last commit.
changed = set(subprocess.run(["git", "diff", "--name-only", "HEAD"], capture_output=True, text=True).stdout.split("\n"))
changed |= set(subprocess.run(["git", "ls-files", "--others", "--exclude-standard"], capture_output=True, text=True).stdout.split("\n"))
seen = set()
for entry in json.load(open("build/lint/compile_commands.json")):
    name = os.path.relpath(os.path.join(entry["directory"], entry["file"]))
    if name in seen or name.startswith("build") or name.endswith("catch_main.cpp"):
        continue
    seen.add(name)
    if os.environ["LIGHT_ONLY"] == "no" or name in changed or "torch/include" not in entry["command"]:
        print(name)
PY
)
# Without it every check walks over torch's headers, too.
own_code=build/lint/own_code.so
if [ ! "$own_code" -nt scripts/tidy_own_code.cpp ]; then
  clang++ -O1 -fPIC -shared -fno-rtti -std=c++17 -isystem /usr/lib/llvm-14/include scripts/tidy_own_code.cpp -o "$own_code" || exit 1
fi
step "clang-tidy, ${#sources[@]} files"
printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy-14 -load "$own_code" --checks=own-code -p build/lint --quiet \
  --extra-arg=-Wno-unknown-warning-option 2>build/lint/tidy.log || failed=1
grep -E '^(error|.*: error)' build/lint/tidy.log && failed=1

mapfile -t lua < <(tracked '*.lua')
if [ "${#lua[@]}" -gt 0 ]; then
  step "luacheck, ${#lua[@]} files"
  luacheck --quiet "${lua[@]}" || failed=1
fi
[ "$failed" = 0 ] && step "all is well"
exit "$failed"
