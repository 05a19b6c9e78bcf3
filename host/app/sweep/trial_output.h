#pragma once
// What a trial in the worker's own process writes, and what the worker shows meanwhile.

#include <array>
#include <ostream>
#include <streambuf>
#include <string>

#include "core/descriptor.h"
#include "core/fs.h"

namespace kf {

/// While one exists, standard output and standard error are appended to a file, and there is nothing to read from standard input: as for a
/// trial that is a process of its own. Throws Code::other where the file cannot be opened.
class TrialOutput {
 public:
  explicit TrialOutput(const fs::path& file);
  ~TrialOutput();
  TrialOutput(const TrialOutput&) = delete;
  TrialOutput& operator=(const TrialOutput&) = delete;

 private:
  std::array<Descriptor, 3> before_;
};

/// A stream to where standard output led when it was made, whatever it leads to later.
class FirstOutput final : private std::streambuf, public std::ostream {
 public:
  FirstOutput();

 private:
  int overflow(int c) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

  Descriptor out_;
  std::string text_;
};

}  // namespace kf
