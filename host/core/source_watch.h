#pragma once
// Files that a run goes on reading while it lasts: mapped data, shards of a cache. They must stay what they were when they were opened;
// verify_sources() finds out, and is called before a checkpoint is written.

#include <memory>
#include <vector>

#include "core/fs.h"

namespace kf {

/// Watches a file as long as it lives. Thread-safe.
class SourceWatch {
 public:
  /// What the content means to the process: `mapped`, it is read where it lies; `loaded`, it was read once and a change does no harm here,
  /// but a run that goes on later would see it.
  enum class Use { mapped, loaded };

  /// A file that cannot be looked at is not watched.
  explicit SourceWatch(const fs::path& path, Use use = Use::mapped);
  ~SourceWatch();
  SourceWatch(SourceWatch&&) noexcept;
  SourceWatch& operator=(SourceWatch&&) noexcept;
  SourceWatch(const SourceWatch&) = delete;
  SourceWatch& operator=(const SourceWatch&) = delete;

 private:
  struct File;
  friend void verify_sources();
  std::unique_ptr<File> file_;
};

/// The files of a tokenizer, read once: `path` is a file or a folder of them. Empty for other texts.
std::vector<SourceWatch> watch_tokenizer(const fs::path& path);

/// Looks at every watched file: size, times, inode, one stat each. Throws Code::data naming the mapped files that were written to: what was
/// learned since is not what the run's checkpoints say. Warns once of files that were removed or replaced by others under their names (the
/// mapped ones are as they were, the next start would not find them), and of loaded ones that changed. Changes of a file's mode, owner or
/// links are none.
void verify_sources();

}  // namespace kf
