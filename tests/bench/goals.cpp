#include "bench/goals.h"

#include <cstdio>

#include "core/decimal.h"
#include "core/text.h"

namespace kf::bench {
namespace {

std::string number(double value, const std::string& unit) { return general(value, 3) + (unit.empty() ? "" : " " + unit); }

}  // namespace

void Goals::at_most(const std::string& what, double measured, double wanted, const std::string& unit) {
  lines_.push_back({what, number(measured, unit), "at most " + number(wanted, unit), measured <= wanted ? "met" : "not met"});
}

void Goals::at_least(const std::string& what, double measured, double wanted, const std::string& unit) {
  lines_.push_back({what, number(measured, unit), "at least " + number(wanted, unit), measured >= wanted ? "met" : "not met"});
}

void Goals::seen(const std::string& what, double measured, const std::string& unit) {
  lines_.push_back({what, number(measured, unit), "", ""});
}

void Goals::failed(const std::string& part, const std::string& why) {
  any_failed_ = true;
  lines_.push_back({part, "failed: " + why, "", "not met"});
}

void Goals::print() const {
  if (lines_.empty()) {
    return;
  }
  std::printf("\n| what | measured | goal | |\n|---|---|---|---|\n");
  for (const Line& line : lines_) {
    std::printf("| %s | %s | %s | %s |\n", line.what.c_str(), line.measured.c_str(), line.wanted.c_str(), line.verdict.c_str());
  }
  std::fflush(stdout);
}

}  // namespace kf::bench
