#!/bin/sh
# baseline_code.sh OBJDUMP FILE… : fails when a program or library has AVX instructions outside the functions that
# host_simd calls where the processor has them. Elsewhere they end the program on an older processor.
set -eu
objdump=$1
shift
for file in "$@"; do
  "$objdump" --disassemble --no-show-raw-insn "$file" | awk -v file="$file" '
    # A function starts: its name, mangled. What the compiler cuts off from a function keeps the name and adds to it.
    /^[0-9a-f]+ <.*>:$/ { name = $2; wide = name ~ /^<_ZN6kozero6detail[0-9]+run_with_avx/; next }
    # Registers of 256 and 512 bits, and the instructions that only AVX has for those of 128.
    /%[yz]mm[0-9]|\tv[a-z0-9]+ +[^#]*%xmm/ {
      if (wide) { inside++ } else if (outside++ < 10) { print file ": AVX outside of host_simd, in " name " " $0 }
    }
    END {
      if (outside) {
        print file ": " outside " AVX instructions outside of host_simd (an older processor stops there with an illegal" \
              " instruction); compile without -march, or put the loop into host_simd"
        exit 1
      }
      if (!inside) {
        print file ": no AVX instruction at all (the check sees nothing, or host_simd has lost its targets); correct" \
              " this script or core/host_simd.hpp"
        exit 1
      }
    }'
done
