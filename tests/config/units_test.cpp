// Numbers as a deck writes them.
#include "config/units.hpp"
#include "support/catch.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

using namespace kozero;

namespace {

bool mentions(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("whole numbers are read exactly, with k, M and G", "[units]") {
  struct Row {
    char const* text;
    std::int64_t value;
  };
  for (auto const& [text, value] :
       {Row{"0", 0}, Row{"-0", 0}, Row{"+5", 5}, Row{"-12", -12}, Row{"50M", 50'000'000}, Row{"1.5k", 1500},
        Row{"0.000001M", 1}, Row{"3G", 3'000'000'000}, Row{"2.50k", 2500},
        Row{"9223372036854775807", 9223372036854775807}, Row{"9007199254740993", 9007199254740993}}) { // not a double
    INFO(text);
    REQUIRE(parse_integer(text).value.has_value());
    CHECK(*parse_integer(text).value == value);
  }
}

TEST_CASE("what only looks like a whole number is refused with advice", "[units]") {
  struct Row {
    char const* text;
    char const* fault;
  };
  for (auto const& [text, fault] : {Row{"1e3", "write 1000"},
                                    Row{"2.5e3", "write 2500"},
                                    Row{"1e400", "write all its digits"},
                                    Row{"1.0", "remove the point"},
                                    Row{"1.", "remove the point"},
                                    Row{"010", "octal"},
                                    Row{"00", "octal"},
                                    Row{"0x10", "not a whole number"},
                                    Row{"1_000", "not a whole number"},
                                    Row{"1K", "'K' is no unit"},
                                    Row{"5m", "'m' is no unit"},
                                    Row{"1 k", "no unit"},
                                    Row{"1.0001k", "not a whole number"},
                                    Row{"", "empty"},
                                    Row{"-", "not a whole number"},
                                    Row{"k", "not a whole number"},
                                    Row{".", "not a whole number"},
                                    Row{" 1", "blanks"},
                                    Row{"1 ", "blanks"},
                                    Row{"no", "not a whole number"},
                                    Row{".nan", "not finite"},
                                    Row{"-.inf", "not finite"},
                                    Row{"9223372036854775808", "too large"},
                                    Row{"99999999999999999999999999999999999999999999", "too large"},
                                    Row{"9223372036854776k", "too large"},
                                    Row{"0.1234567890123456789G", "not a whole number"}}) {
    INFO(text);
    CHECK_FALSE(parse_integer(text).value.has_value());
    INFO(parse_integer(text).fault);
    CHECK(mentions(parse_integer(text).fault, fault));
  }
}

TEST_CASE("real numbers are finite and take no unit", "[units]") {
  CHECK(*parse_real("1e-4").value == 1e-4);
  CHECK(*parse_real("+1E+2").value == 100.0);
  CHECK(*parse_real(".5").value == 0.5);
  CHECK(*parse_real("5.").value == 5.0);
  CHECK(*parse_real("-3").value == -3.0);
  CHECK(*parse_real("4.9406564584124654e-324").value == std::numeric_limits<double>::denorm_min());
  for (char const* text : {"1e400", "-1e400", "1e-400", "nan", ".NaN", "inf", "-.inf", "+Infinity", "1e-4 ", "1,5",
                           "5%",    "0x1p3",  "",       "e5",  "1e",   "1e+", "--1",   "1.2.3",     "none",  "1k"}) {
    INFO(text);
    CHECK_FALSE(parse_real(text).value.has_value());
    CHECK_FALSE(parse_real(text).fault.empty());
  }
}

TEST_CASE("sizes and times always have a unit", "[units]") {
  CHECK(*parse_bytes("512MiB").value == 536870912);
  CHECK(*parse_bytes("1.25GiB").value == 1342177280);
  CHECK(*parse_bytes("7B").value == 7);
  CHECK(*parse_bytes("1.1kB").value == 1100);
  CHECK(*parse_bytes("2TB").value == 2'000'000'000'000);
  CHECK(*parse_bytes("8388607TiB").value == 8388607 * (std::int64_t{1} << 40));
  for (char const* text : {"512", "0.3GiB", "1e3MB", "512mb", "5 MiB", "5M", "8388608TiB", "none", "MiB", "inf"}) {
    INFO(text);
    CHECK_FALSE(parse_bytes(text).value.has_value());
  }
  CHECK(*parse_seconds("2h").value == 7200.0);
  CHECK(*parse_seconds("1.5d").value == 129600.0);
  CHECK(*parse_seconds("10min").value == 600.0);
  CHECK(*parse_seconds("90s").value == 90.0);
  CHECK(*parse_seconds("250ms").value == 0.25);
  CHECK(*parse_seconds("0.1s").value == 0.1);
  for (char const* text : {"600", "5m", "02:00:00", "1e400s", "1e308h", "nan", "2 h", "s"}) {
    INFO(text);
    CHECK_FALSE(parse_seconds(text).value.has_value());
  }
}

TEST_CASE("only true and false are booleans", "[units]") {
  CHECK(*parse_bool("true").value);
  CHECK_FALSE(*parse_bool("false").value);
  for (char const* text : {"True", "FALSE", "yes", "no", "on", "off", "1", "0", "", " true"}) {
    INFO(text);
    CHECK_FALSE(parse_bool(text).value.has_value());
    CHECK(mentions(parse_bool(text).fault, "write true or false"));
  }
}

TEST_CASE("what is printed reads back as the same number", "[units]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    double const any = std::bit_cast<double>(random());
    if (!std::isfinite(any)) continue;
    REQUIRE(*parse_real(print_real(any)).value == any);
    REQUIRE(*parse_seconds(print_seconds(any)).value == any);
    auto const size =
        static_cast<std::int64_t>(random() >> (1 + random() % 63)) & ~((std::int64_t{1} << random() % 40) - 1);
    REQUIRE(*parse_bytes(print_bytes(size)).value == size);
  }
  for (double const seconds : {0.0, 0.25, 60.0, 90.0, 600.0, 3600.0, 5400.0, 86400.0, 1e300}) {
    CHECK(*parse_seconds(print_seconds(seconds)).value == seconds);
  }
  CHECK(print_seconds(5400) == "90min");
  CHECK(print_bytes(3 << 20) == "3MiB");
  CHECK(print_bytes(1'000'000) == "1MB");
  CHECK(print_bytes(1001) == "1001B");
}
