#include "core/visible_gpus.h"

#include <cstdlib>

#include "core/fs.h"
#include "core/text.h"

namespace kf {

std::vector<std::string> visible_gpus(const std::string& devices) {
  std::vector<std::string> out;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(devices, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("nvidia") && name.size() > 6 && name.find_first_not_of("0123456789", 6) == std::string::npos) {
      out.push_back(std::to_string(out.size()));
    }
  }
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) {
    return out;
  }
  const std::size_t present = out.size();
  out.clear();
  for (const std::string& word : split(visible, ',')) {
    if (word.empty() || word.front() == '-' || out.size() == present) {
      break;  // what stands behind one that is none is not seen
    }
    out.push_back(word);
  }
  return out;
}

}  // namespace kf
