#pragma once
// A folder in which workers meet: a small file for each text, whole from its beginning on.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/descriptor.h"
#include "core/fs.h"
#include "parallel/meeting_place.h"

namespace kf {

/// The process of worker K holds the file "worker-K" locked while it lives, so that its end is seen at once, whatever ended it. Any disk
/// that all see will do that has locks and hard links.
class MeetingFolder final : public MeetingPlace {
 public:
  /// Makes the folder where it is not there.
  MeetingFolder(fs::path folder, std::int64_t worker);

 private:
  std::optional<std::string> read(const std::string& name) const override;
  void put(const std::string& name, const std::string& text) override;
  std::string first(const std::string& name, const std::string& mine) override;
  std::vector<std::string> names() const override;
  void remove(const std::vector<std::string>& names) override;
  std::optional<std::string> process_of(std::int64_t worker) const override;

  fs::path file(const std::string& name) const { return folder_ / name; }

  fs::path folder_;
  Descriptor lock_;
};

}  // namespace kf
