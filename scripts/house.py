#!/usr/bin/env python3
"""Whether the house is as docs/architecture.md says: arrows between folders, who chooses kernels, the length of files, functions and expressions,
and where the host waits for the device. Prints what is not."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MOST_LINES = 450
MOST_OF_A_FUNCTION = 60
# One table, and one grammar whose rules call each other: parts would be harder to read.
LONG = {
    "host/config/load/model_preset_table.cpp",
    "host/data/tokenizer/regex_translate.cpp",
}
CONTROL = re.compile(r"\s*(\}?\s*else|if|for|while|switch|do|try|\}?\s*catch|namespace|struct|class|enum|union|extern|return|case|default)\b")
# A conditional operator, and what is none: comments, strings, characters. Statements end at the others.
CONDITIONAL = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[?;{}]', re.S)
MOST_CONDITIONALS = 2
# What makes the host wait for the device, and where docs/architecture.md has a list of it.
WAIT = re.compile(r"\.item(?:<|\()|\.to\(at::kCPU|\.cpu\(\)|\bnonzero\(|masked_select\(|(?:at::|\.)equal\(|_local_scalar_dense\(|[sS]ynchronize\(")
WAITING = ("host/train/step/", "host/train/loop/", "host/model/", "host/kernels/", "host/optim/")
faults = []


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "--", *patterns], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in out.split("\n") if name and os.path.exists(os.path.join(ROOT, name))]


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def folder_of(name):
    folder = os.path.dirname(name)
    return folder[5:] if folder.startswith("host/") else folder


def arrows():
    """Folder -> the folders that it may include, by the lines of CMake: a line names earlier ones alone, so no arrow runs up."""
    seen = {}
    for cmake in ("host/CMakeLists.txt", "bindings/CMakeLists.txt", "host/app/CMakeLists.txt"):
        for folder, uses in re.findall(r"^kf_folder\((\S+)(?: TORCH)?(?: USES ([^)]*?))?(?: LIBS [^)]*)?\)", read(cmake), re.M):
            allowed = {folder}
            for used in uses.split():
                if used not in seen:
                    faults.append(f"{cmake}: {folder} uses {used}, which is no earlier line")
                allowed |= seen.get(used, set())
            seen[folder] = allowed
    return seen


def check_includes(allowed):
    # Modules that are opened at run time, and the programs, have targets of their own.
    apart = {"arrow", "cuda", "app"}
    for name in tracked("host/*.h", "host/*.cpp", "host/*.def", "bindings/*.h", "bindings/*.cpp"):
        folder = folder_of(name)
        if folder in apart or "/gloo_names/" in name:  # the latter stand in for headers that torch's wheel lacks
            continue
        if folder not in allowed:
            faults.append(f"{name}: no line of CMake names the folder {folder}")
            continue
        for included in re.findall(r'^\s*#\s*include "([^"]+)"', read(name), re.M):
            other = os.path.dirname(included)
            if other and other not in allowed[folder] and other not in apart:
                faults.append(f"{name}: includes {included}, which {folder} may not see")


def check_kernel_set():
    """Whether one function reads train.compile_model: everything else is given a table of kernels (kernels/kernels.h)."""
    for name in tracked("host/*.h", "host/*.cpp", "bindings/*.h", "bindings/*.cpp"):
        if name != "host/config/plan/kernel_set.cpp" and re.search(r"(\.|->)compile_model\b", re.sub(r'"[^"]*"|//.*', "", read(name))):
            faults.append(f"{name}: reads train.compile_model; ask config/plan/kernel_set.h, or take the table of PartArgs")


def check_simd():
    """Whether files that are compiled for several sets of instructions keep to themselves: the linker keeps one copy of an inline function
    for all of them, so templates of the standard library would take AVX-512 to processors without it."""
    for name in tracked("host/*_simd.cpp"):
        for included in re.findall(r"^\s*#\s*include (\S+)", read(name), re.M):
            plain = included.strip('"<>')
            beside = os.path.dirname(plain) == folder_of(name) and "#include <" not in read(os.path.join("host", plain)).replace(
                "#include <cstdint>", "").replace("#include <cstddef>", "")
            if plain not in ("kernels/simd/vector.h", "kernels/simd/transpose.h", "cstdint", "cstring") and not beside:
                faults.append(f"{name}: includes {included}; it may include kernels/simd/vector.h and transpose.h, <cstdint>, <cstring>, and headers beside it that include nothing but <cstdint>")


def check_lengths():
    for name in tracked("*.h", "*.cpp"):
        lines = read(name).split("\n")
        if len(lines) > MOST_LINES + 1 and name not in LONG and not name.startswith("tests/"):
            faults.append(f"{name}: {len(lines) - 1} lines, at most {MOST_LINES}")
        if name.startswith("tests/"):
            continue
        for start, line in enumerate(lines):
            indent = len(line) - len(line.lstrip())
            if line.lstrip().startswith(": "):
                indent -= 4  # the members of a constructor
            if indent not in (0, 2) or not line.endswith("{") or "(" not in line and ")" not in line or CONTROL.match(line) or line.lstrip().startswith("#"):
                continue
            if "static const" in lines[start + 1]:
                continue  # a table
            end = next((i for i in range(start + 1, len(lines)) if lines[i].startswith(" " * indent + "}")), start)
            if end - start + 1 > MOST_OF_A_FUNCTION:
                faults.append(f"{name}:{start + 1}: a function of {end - start + 1} lines, at most {MOST_OF_A_FUNCTION}")


def check_conditionals():
    for name in tracked("host/*.h", "host/*.cpp", "bindings/*.h", "bindings/*.cpp"):
        text = read(name)
        count = start = 0
        for token in CONDITIONAL.finditer(text):
            if token[0] == "?":
                start = start if count else token.start()
                count += 1
            elif token[0] in ";{}":
                if count > MOST_CONDITIONALS:
                    line = text.count("\n", 0, start) + 1
                    faults.append(f"{name}:{line}: an expression with {count} conditional operators, at most {MOST_CONDITIONALS}; a table or ifs say it")
                count = 0


def check_waits():
    page = "docs/architecture.md"
    listed = {name: int(reads) for name, reads in re.findall(r"^\| `(host/[^`]+\.(?:cpp|h))` \| (\d+) \|", read(page), re.M)}
    found = {}
    for name in tracked(*(folder + pattern for folder in WAITING for pattern in ("*.cpp", "*.h"))):
        reads = sum(len(WAIT.findall(line.split("//")[0])) for line in read(name).split("\n"))
        if reads:
            found[name] = reads
    for name in sorted({*listed, *found}):
        if listed.get(name, 0) != found.get(name, 0):
            faults.append(f"{name}: waits for the device at {found.get(name, 0)} places, and {page} lists {listed.get(name, 0)}")


def types_of(name):
    """(namespace, type) of the types that a file defines outside of functions, types and nameless namespaces, with their lines."""
    spaces, out = [], []
    for number, line in enumerate(read(name).split("\n"), 1):
        if opened := re.match(r"(?:inline )?namespace ([\w:]*) ?\{$", line):
            spaces.append(opened[1])
        elif line.startswith("}  // namespace") and spaces:
            spaces.pop()
        elif (made := re.match(r"(?:struct|class|union|enum class|enum) (\w+)(?: final)?(?: ?:(?!:).*)? ?\{", line)) and "" not in spaces:
            out.append(("::".join(spaces), made[1], number))
    return out


def check_names():
    """Two types of one name in one namespace are one type for the linker, which keeps the functions of either for both."""
    seen = {}
    for name in tracked("host/*.h", "host/*.cpp", "bindings/*.h", "bindings/*.cpp"):
        for space, made, number in types_of(name):
            other = seen.setdefault((space, made), f"{name}:{number}")
            if not other.startswith(f"{name}:"):
                faults.append(f"{name}:{number}: the name {space}::{made} is taken by {other}")


check_includes(arrows())
check_names()
check_kernel_set()
check_lengths()
check_simd()
check_conditionals()
check_waits()
print("\n".join(faults) if faults else "the house is as it says")
sys.exit(1 if faults else 0)
