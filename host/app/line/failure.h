#pragma once
// Failures as people and other programs learn of them: a message, and an exit status.

#include <exception>
#include <string>

namespace kf {

struct Failure {
  std::string text;  // "kf-host: ...", without credentials
  int status = 1;
};

Failure failure_of(const std::exception& error);

}  // namespace kf
