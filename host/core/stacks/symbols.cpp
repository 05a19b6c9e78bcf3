#include "core/stacks/symbols.h"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "core/fs.h"
#include "core/text.h"

namespace kf {
namespace {

/// Names that programs carry with them are enough: no search for separate files, which may go to the network.
int no_debug_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) { return -1; }

const Dwfl_Callbacks& callbacks() {
  static const Dwfl_Callbacks all = [] {
    Dwfl_Callbacks out{};
    out.find_elf = dwfl_linux_proc_find_elf;
    out.find_debuginfo = no_debug_file;
    return out;
  }();
  return all;
}

std::string readable(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : name;
}

std::string hex(std::uintptr_t number) {
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(number));
  return text.data();
}

}  // namespace

Symbols::Symbols() : modules_(dwfl_begin(&callbacks())) {
  if (modules_ != nullptr) {
    dwfl_linux_proc_report(modules_, ::getpid());
    dwfl_report_end(modules_, nullptr, nullptr);
  }
}

Symbols::~Symbols() {
  if (modules_ != nullptr) {
    dwfl_end(modules_);
  }
}

std::string Symbols::describe(std::uintptr_t address) const {
  Dwfl_Module* const module = modules_ != nullptr ? dwfl_addrmodule(modules_, address) : nullptr;
  if (module == nullptr) {
    return hex(address);
  }
  Dwarf_Addr begin = 0;
  const char* const file = dwfl_module_info(module, nullptr, &begin, nullptr, nullptr, nullptr, nullptr, nullptr);
  const std::string in = file != nullptr ? fs::path(file).filename().string() : "?";
  GElf_Off offset = 0;
  GElf_Sym symbol{};
  const char* const name = dwfl_module_addrinfo(module, address, &offset, &symbol, nullptr, nullptr, nullptr);
  return name != nullptr ? format("{}+{} ({})", readable(name), hex(offset), in) : format("{}+{}", in, hex(address - begin));
}

}  // namespace kf
