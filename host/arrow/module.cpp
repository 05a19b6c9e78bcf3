// The module's two entries.

#include <memory>

#include "arrow/rows.h"

namespace {

kf::TableRows* open(const kf::TableRequest& request, std::string& error) noexcept {
  try {
    return std::make_unique<kf::table::Rows>(request).release();  // the caller's unique_ptr takes it: two libraries, one C++ run time
  } catch (const std::exception& problem) {
    error = problem.what();
  }
  return nullptr;
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) int kf_table_version() noexcept;
__attribute__((visibility("default"))) kf::TableRows* kf_open_table(const kf::TableRequest& request, std::string& error) noexcept;

int kf_table_version() noexcept { return kf::kTableModuleVersion; }
kf::TableRows* kf_open_table(const kf::TableRequest& request, std::string& error) noexcept { return open(request, error); }
}
