#pragma once
// Documents of text, changed or dropped one by one before they become ids; batches, changed before the model sees them.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kf {

namespace config {
struct Config;
}
struct Registries;
struct Batch;

/// What a transform may know of a batch besides its content.
struct BatchInfo {
  std::int64_t index = 0;                 // number of the micro-batch since the start of the run, or of the evaluation
  bool training = true;                   // false: of an evaluation
  std::vector<std::string> source_names;  // of a mixture, as Batch::sources counts them
};

class Transform {
 public:
  virtual ~Transform() = default;
  /// Changes the text of a document; false drops it.
  virtual bool apply(std::string& text) = 0;
  /// Changes tokens, labels and document ids of a batch, on the thread that trains. Rows stay as many; `counted` is kept up.
  virtual void apply(Batch& batch, const BatchInfo& info) = 0;
  /// Changes when what it does may have changed; "" where that cannot be known, and then nothing that it made is cached.
  virtual std::string content_hash() const { return {}; }
};

/// The registered transforms `names`, in this order. Throws Code::config for an unknown name.
std::vector<std::unique_ptr<Transform>> make_transforms(const std::vector<std::string>& names, const config::Config& config,
                                                        const Registries* registries);

}  // namespace kf
