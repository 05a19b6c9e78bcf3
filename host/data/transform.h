#pragma once
// Documents of text, changed or dropped one by one before they become ids.

#include <memory>
#include <string>
#include <vector>

namespace kf {

namespace config {
struct Config;
}
struct Registries;

class Transform {
 public:
  virtual ~Transform() = default;
  /// Changes the text of a document; false drops it.
  virtual bool apply(std::string& text) = 0;
  /// Changes when what it does may have changed; "" where that cannot be known, and then nothing that it made is cached.
  virtual std::string content_hash() const { return {}; }
};

/// The registered transforms `names`, in this order. Throws Code::config for an unknown name.
std::vector<std::unique_ptr<Transform>> make_transforms(const std::vector<std::string>& names, const config::Config& config,
                                                        const Registries* registries);

}  // namespace kf
