#pragma once
// Name patterns that a script gives.

#include <string>
#include <vector>

#include "core/error.h"
#include "core/name_pattern.h"

namespace kf::lua {

/// As match_names for one pattern; what is wrong with it is an error of the script.
inline std::vector<bool> match_pattern(const std::string& pattern, const std::vector<std::string>& names, const std::string& where) {
  try {
    return match_names({pattern}, names, where);
  } catch (const Error& error) {
    throw Error(Code::script, error.what());
  }
}

}  // namespace kf::lua
