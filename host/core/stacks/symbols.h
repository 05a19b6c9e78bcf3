#pragma once
// Names of functions by their addresses in this process.

#include <cstdint>
#include <memory>
#include <string>

struct Dwfl;

namespace kf {

class Symbols {
 public:
  Symbols();
  ~Symbols();
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  /// "kf::TrainLoop::steps()+0x12 (libkf-host.so)"; the file and the place in it where it has no names, and the bare address where nothing
  /// is known of it (code that LuaJIT made).
  std::string describe(std::uintptr_t address) const;

 private:
  Dwfl* modules_;
};

}  // namespace kf
