#include "app/sweep/process_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <mutex>

namespace kf {
namespace {

std::map<std::string, std::string> variables() {
  std::map<std::string, std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t mark = text.find('=');
    if (mark != std::string::npos) {
      out.emplace(text.substr(0, mark), text.substr(mark + 1));
    }
  }
  return out;
}

void restore_variables(const std::map<std::string, std::string>& before) {
  const std::map<std::string, std::string> now = variables();
  if (now == before) {
    return;
  }
  for (const auto& [name, value] : now) {
    if (!before.contains(name)) {
      ::unsetenv(name.c_str());
    }
  }
  for (const auto& [name, value] : before) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
}

at::Tensor generator_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace

ProcessState::ProcessState()
    : environment_(variables()), locale_(std::setlocale(LC_ALL, nullptr)), generator_(generator_state()), threads_(at::get_num_threads()) {}

void ProcessState::restore(const std::string& who) const {
  folder_.restore(who);
  restore_variables(environment_);
  std::setlocale(LC_ALL, locale_.c_str());
  set_generator_state(generator_);
  if (at::get_num_threads() != threads_) {
    at::set_num_threads(threads_);
  }
}

}  // namespace kf
