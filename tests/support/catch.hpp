#pragma once
// Catch2 in the version that the system has.
#if KOZERO_CATCH2 >= 3
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
