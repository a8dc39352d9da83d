#include "kernels/embedding.hpp"

#include "core/error.hpp"
#include "kernels/token_groups.hpp"
#include "support/catch.hpp"
#include "support/matrices.hpp"

#include <map>

using namespace kozero;
using namespace kozero::test;

namespace {

struct Shape {
  std::int64_t batch, context, width, vocabulary;
};

constexpr Shape shapes[] = {{1, 1, 1, 1},      {3, 7, 21, 5},    {2, 33, 300, 257},
                            {5, 3, 768, 1500}, {4, 3, 3, 50257}, {0, 7, 3, 5}};

std::vector<std::int32_t> random_tokens(std::int64_t n, std::int64_t vocabulary) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < n; ++i) {
    // Squared, so that some are frequent.
    double const u = random_uniform({3, RngPurpose::shuffle, 0, 0}, i);
    tokens.push_back(static_cast<std::int32_t>(u * u * static_cast<double>(vocabulary)));
  }
  return tokens;
}

struct Groups {
  std::vector<std::int32_t> starts, positions;
};

Groups groups_of(std::vector<std::int32_t> const& tokens, std::int64_t vocabulary) {
  Groups groups;
  groups.starts.resize(max_token_groups(std::ssize(tokens), vocabulary) + 1, -1);
  groups.positions.resize(tokens.size(), -1);
  std::vector<std::int32_t> scratch(vocabulary);
  groups.starts.resize(group_tokens(tokens, scratch, groups.starts, groups.positions) + 1);
  return groups;
}

template <class T>
void check_forward(Shape const& s) {
  std::int64_t const n = s.batch * s.context;
  auto const tokens = random_tokens(n, s.vocabulary);
  Matrix<T> const wte(s.vocabulary, s.width, 0, normal_numbers(s.vocabulary * s.width, 1));
  Matrix<T> const wpe(s.context, s.width, 0, normal_numbers(s.context * s.width, 2));
  Matrix<T> const x(n, s.width);
  embedding_forward<T>(Lane(), x, DeviceArray(tokens), wte, wpe);
  Numbers const token = wte.get();
  Numbers const place = wpe.get();
  Numbers want;
  for (std::int64_t i = 0; i < n * s.width; ++i) {
    std::int64_t const row = i / s.width;
    double const exact = token[tokens[row] * s.width + i % s.width] + place[row % s.context * s.width + i % s.width];
    want.push_back(static_cast<float>(static_cast<T>(static_cast<float>(exact))));
  }
  REQUIRE(x.get() == want);
}

template <class T>
void check_backward(Shape const& s) {
  std::int64_t const n = s.batch * s.context;
  auto const tokens = random_tokens(n, s.vocabulary);
  Groups const groups = groups_of(tokens, s.vocabulary);
  Matrix<T> const dx(n, s.width, 0, normal_numbers(n * s.width, 3));
  Matrix<float> const dwte(s.vocabulary, s.width, 0, normal_numbers(s.vocabulary * s.width, 4));
  Matrix<float> const dwpe(s.context, s.width, 0, normal_numbers(s.context * s.width, 5));
  Numbers want_wte = dwte.get();
  Numbers want_wpe = dwpe.get();
  Numbers const gradient = dx.get();
  for (std::int64_t i = 0; i < n * s.width; ++i) {
    std::int64_t const row = i / s.width;
    want_wte[tokens[row] * s.width + i % s.width] += gradient[i];
    want_wpe[row % s.context * s.width + i % s.width] += gradient[i];
  }
  auto const starts = DeviceArray(groups.starts);
  auto const positions = DeviceArray(groups.positions);
  embedding_backward<T>(Lane(), dwte, dwpe, dx, DeviceArray(tokens), {starts, positions});
  REQUIRE(relative_error(dwte.get(), want_wte) < tolerance<float>);
  REQUIRE(relative_error(dwpe.get(), want_wpe) < tolerance<float>);
}

} // namespace

TEST_CASE("an embedding is the sum of the token's and the position's row, rounded once") {
  for (Shape const& s : shapes) {
    CAPTURE(s.batch, s.context, s.width, s.vocabulary);
    check_forward<float>(s);
    check_forward<bf16>(s);
    check_forward<fp16>(s);
  }
}

TEST_CASE("an embedding's gradients are added to the rows that were used, and to no other") {
  for (Shape const& s : shapes) {
    CAPTURE(s.batch, s.context, s.width, s.vocabulary);
    check_backward<float>(s);
    check_backward<bf16>(s);
    check_backward<fp16>(s);
  }
}

TEST_CASE("grouped tokens are the tokens, each once, sorted by id and then by position") {
  for (Shape const& s : shapes) {
    CAPTURE(s.batch, s.context, s.vocabulary);
    auto const tokens = random_tokens(s.batch * s.context, s.vocabulary);
    std::map<std::int32_t, std::vector<std::int32_t>> places;
    for (std::size_t i = 0; i < tokens.size(); ++i) places[tokens[i]].push_back(static_cast<std::int32_t>(i));

    Groups const groups = groups_of(tokens, s.vocabulary);
    REQUIRE(groups.starts.size() == places.size() + 1);
    std::size_t group = 0;
    for (auto const& [token, want] : places) {
      std::vector<std::int32_t> const got(groups.positions.begin() + groups.starts[group],
                                          groups.positions.begin() + groups.starts[group + 1]);
      REQUIRE(got == want);
      ++group;
    }
    REQUIRE(groups.starts.back() == std::ssize(tokens));
  }
}

TEST_CASE("a token outside the vocabulary is refused with its place") {
  for (std::int32_t const bad : {-1, 5}) {
    std::vector<std::int32_t> const tokens{0, 4, bad};
    std::vector<std::int32_t> starts(4), positions(3), scratch(5);
    std::string message;
    try {
      group_tokens(tokens, scratch, starts, positions);
    } catch (Error const& error) {
      message = error.what();
    }
    CAPTURE(message);
    REQUIRE(message.find("token 2 ") != std::string::npos);
    REQUIRE(message.find("is " + std::to_string(bad) + " ") != std::string::npos);
  }
}
