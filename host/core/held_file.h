#pragma once
// A file of a run that is appended to for hours, while others can delete it or put another in its place.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/descriptor.h"
#include "core/fs.h"

namespace kf {

class HeldFile {
 public:
  /// Opens it behind what is there, or makes it. Throws Code::other.
  explicit HeldFile(fs::path path);

  /// All of it or nothing: what a full disk took of it is cut off again, at the next call where not at once. Throws Code::other.
  void append(std::string_view text);
  /// As durable as the disk makes it.
  void sync();
  int descriptor() const { return fd_->get(); }

  /// Where the name stands for nothing any more, or for another file: writes the whole file again, which lives on as long as it is open,
  /// and moves the other one aside. What was done, in words; "" where the file is what it was. Throws Code::other where it cannot be done.
  std::string mend();

 private:
  std::string content() const;
  void cut_torn();

  fs::path path_;
  std::optional<Descriptor> fd_;      // never empty
  std::optional<std::int64_t> torn_;  // where text begins that was not written to its end
};

/// The same, with a warning of what was done.
void mend(HeldFile& file);

}  // namespace kf
