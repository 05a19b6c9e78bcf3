#pragma once
// What runs of several ranks have in common with those of one.

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "e2e/toy.h"

namespace kf::test {

/// Runs `a` and `b` have rows of the same steps with the same numbers, which differ by the order of sums alone: relatively by `of_loss` in
/// "loss", by 1e-5 in every other of `keys`.
inline void check_same_rows(const Toy& toy, const std::string& a, const std::string& b, const std::vector<std::string>& keys,
                            double of_loss = 1e-6) {
  for (const std::string& key : keys) {
    const auto one = toy.series(a, key), other = toy.series(b, key);
    INFO(key << " of " << a << " and " << b);
    REQUIRE(!one.empty());
    REQUIRE(one.size() == other.size());
    for (const auto& [step, value] : one) {
      INFO("step " << step);
      REQUIRE(other.count(step) == 1);
      CHECK(std::stod(other.at(step)) == Approx(std::stod(value)).epsilon(key == "loss" ? of_loss : 1e-5));
    }
  }
}

}  // namespace kf::test
