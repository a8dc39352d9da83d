# What a user may choose, and the compiler flags that follow from it.
option(KOZERO_BUILD_TESTS "Build the tests" ON)
option(KOZERO_BUILD_BENCHMARKS "Build the benchmarks of bench/, with Google Benchmark" OFF)
option(KOZERO_BUILD_FUZZERS "Build the fuzz targets of tests/fuzz, with Clang's libFuzzer" OFF)
option(KOZERO_NATIVE "Compile for the processor of this machine (-march=native): faster here, may not run elsewhere" OFF)
option(KOZERO_WERROR "Warnings are errors" OFF)
option(KOZERO_SERIAL "Refuse a Kokkos that has more than the Serial backend" OFF)
option(KOZERO_CHECKED "Internal assertions, and new memory filled with NaN" OFF)
option(KOZERO_EMULATED "Hold the program to an accelerator's rules on the host (doc/device.md)" OFF)
set(KOZERO_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=; for example address,undefined")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(KOZERO_CCACHE ccache)
if(KOZERO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${KOZERO_CCACHE}")
endif()

add_library(kozero_flags INTERFACE)
# Contraction of a*b+c is left to explicit fma calls, so that bits depend on the source alone, not on
# how a compiler happened to vectorise a loop. The other two let loops with sqrt and selects vectorise; no bit changes.
target_compile_options(kozero_flags INTERFACE -Wall -Wextra -Wno-unknown-pragmas -Wno-missing-field-initializers
                                            $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed> -ffp-contract=off -fno-math-errno -fno-trapping-math)
if(KOZERO_WERROR)
  target_compile_options(kozero_flags INTERFACE -Werror)
endif()
if(KOZERO_NATIVE)
  target_compile_options(kozero_flags INTERFACE -march=native)
endif() # else the compiler's baseline; loops that matter choose wider vectors at run time (core/host_simd.hpp)
if(KOZERO_CHECKED)
  target_compile_definitions(kozero_flags INTERFACE KOZERO_CHECKED=1)
endif()
if(KOZERO_SANITIZE)
  target_compile_options(kozero_flags INTERFACE -fsanitize=${KOZERO_SANITIZE} -fno-omit-frame-pointer
                                                -fno-sanitize-recover=all)
  target_link_options(kozero_flags INTERFACE -fsanitize=${KOZERO_SANITIZE})
  target_compile_definitions(kozero_flags INTERFACE KOZERO_SANITIZED=1)
endif()
