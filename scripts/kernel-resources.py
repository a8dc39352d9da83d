"""Holds registers and stacks of our kernels to a recorded list; scripts/kernel-resources explains it."""

import argparse
import pathlib
import re
import sys

# Names in a mangled one that say how a kernel is launched, or what it is handed.
NOISE = {"detail", "TeamBody", "RowBody", "Lane", "Mat", "Vec", "View", "Pointer", "RowTeam", "Range", "Teams", "type",
         "type_identity", "st", "std", "DeviceMemory", "ParallelFor"}
HEAD = ("# Registers, and bytes of stack, of the kernels of a CUDA build: the most of those of one name.\n"
        "# scripts/kernel-resources compares a build with them; --record writes them anew.\n")


def names_in(mangled):
    """The identifiers in a mangled name, in their order."""
    # Numbers that are no lengths: of substitutions S0_, parameters T0_, literals Lj4E and lambdas E0_. What is shorter
    # than three letters is a number too.
    pattern = re.compile(r"S[0-9A-Z]*_|T[0-9]*_|L[a-z]n?[0-9]+E|E[0-9]+_(?!GLOBAL_|INTERNAL_)|([0-9]+)")
    names, at = [], 0
    while found := pattern.search(mangled, at):
        length = int(found[1] or 0)
        at = found.end() + length
        if length > 2:
            names.append(mangled[found.end():at])
    return names


def kernel_name(mangled):
    """'add_column_sums linear_backward bf16', or None where the kernel is none of ours."""
    names = names_in(mangled)
    if "kozero" not in names or "ViewValueFunctor" in names:
        return None
    ours = names[names.index("kozero"):]
    ends = [i for i, name in enumerate(ours) if name.endswith("Policy")]
    kept = [name for name in ours[:min(ends, default=len(ours))] if name not in NOISE | {"kozero"}]
    return " ".join(dict.fromkeys(name for name in kept if not name.startswith(("_GLOBAL__", "_INTERNAL"))))


def read_report(text):
    """From what `cuobjdump --dump-resource-usage` prints: {name: (registers, stack)}, and names of slow launches."""
    kernels, slow, mangled = {}, set(), None
    for line in text.splitlines():
        if found := re.match(r" Function (\S+):$", line):
            mangled = found[1]
        elif mangled and (found := re.search(r"\bREG:(\d+) STACK:(\d+)\b", line)):
            if name := kernel_name(mangled):
                registers, stack = kernels.get(name, (0, 0))
                kernels[name] = (max(registers, int(found[1])), max(stack, int(found[2])))
                if "cuda_parallel_launch_" in mangled and "cuda_parallel_launch_local_memory" not in mangled:
                    slow.add(name)
            mangled = None
    return kernels, slow


def read_list(path):
    kernels = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            registers, stack, name = line.split(maxsplit=2)
            kernels[name] = (int(registers), int(stack))
    return kernels


def write_list(path, kernels):
    lines = (f"{registers:4} {stack:6}  {name}\n" for name, (registers, stack) in sorted(kernels.items()))
    path.write_text(HEAD + "".join(lines))


def compare(kernels, recorded):
    """Prints what differs; returns how many kernels have more stack than is recorded."""
    spills = 0
    for name, (registers, stack) in sorted(kernels.items()):
        before_registers, before_stack = recorded.get(name, (None, 0))
        if stack > before_stack:
            spills += 1
            print(f"spills: {name}: {stack} bytes of stack, recorded {before_stack}")
        elif before_registers is None:
            print(f"new: {name}: {registers} registers")
        elif (registers, stack) != (before_registers, before_stack):
            print(f"changed: {name}: {registers} registers and {stack} bytes of stack, "
                  f"recorded {before_registers} and {before_stack}")
    for name in sorted(recorded.keys() - kernels.keys()):
        print(f"gone: {name}")
    return spills


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("report", type=pathlib.Path)
    parser.add_argument("list", type=pathlib.Path)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    kernels, slow = read_report(arguments.report.read_text())
    if not kernels:
        sys.exit("kernel-resources: error: the report tells of no kernel of ours (is it a CUDA build's, and whole?)")
    for name in sorted(slow):
        print(f"slow launch: {name}: its captures go through constant memory, so a launch waits for the one before")
    if arguments.record:
        write_list(arguments.list, kernels)
        print(f"{len(kernels)} kernels recorded in {arguments.list}")
        spills = 0
    else:
        spills = compare(kernels, read_list(arguments.list))
        print(f"{len(kernels)} kernels, {spills} with new spills, {len(slow)} with slow launches")
    sys.exit(1 if spills or slow else 0)


if __name__ == "__main__":
    main()
