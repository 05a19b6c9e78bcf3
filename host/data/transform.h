#pragma once
// Documents of text, changed or dropped one by one before they are cut into windows.

#include <string>
#include <vector>

#include "data/text_source.h"

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
};

/// Runs every document through the registered transforms `names`, in this order. The fingerprint says which they were.
/// Throws Code::config for an unknown name, and whatever a transform throws.
TextCorpus transform(TextCorpus corpus, const std::vector<std::string>& names, const config::Config& config, const Registries* registries);

}  // namespace kf
