#include "report/read/last_rows.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "config/tree/finite.h"
#include "config/tree/json.h"
#include "core/descriptor.h"
#include "core/error.h"
#include "core/plain_file.h"
#include "report/read/json_values.h"

namespace kf::report {
namespace {

constexpr std::uint64_t kFirst = std::uint64_t{1} << 14;
constexpr std::uint64_t kMost = std::uint64_t{1} << 20;

/// The last `size` bytes of the file, or all; fewer where it became shorter meanwhile.
std::string tail(int fd, std::uint64_t end, std::uint64_t size) {
  std::string out(static_cast<std::size_t>(std::min(size, end)), '\0');
  const ssize_t got = ::pread(fd, out.data(), out.size(), static_cast<off_t>(end - out.size()));
  out.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return out;
}

/// Takes what a line tells and is not known yet.
void add(LastRows& out, std::string_view line) {
  config::Node root;
  try {
    root = config::parse_json(line, "row");
  } catch (const Error&) {
    return;
  }
  const config::Table* const row = root.table();
  const std::optional<std::int64_t> step = row != nullptr ? integer_at(*row, "step") : std::nullopt;
  if (!step) {
    return;
  }
  out.step = out.step.value_or(*step);
  const config::Node* const eval = row->find("eval");
  if (eval != nullptr && eval->table() != nullptr) {
    out.eval_loss = out.eval_loss ? out.eval_loss : config::real_at(*eval->table(), "loss");
    return;
  }
  out.loss = out.loss ? out.loss : config::real_at(*row, "loss");
  out.tokens_per_sec = out.tokens_per_sec ? out.tokens_per_sec : config::real_at(*row, "tokens_per_sec");
  out.tokens = out.tokens ? out.tokens : config::real_at(*row, "tokens");
}

/// Whether the line could tell something new.
bool matters(const LastRows& known, std::string_view line) {
  return line.find("\"eval\": {") != std::string_view::npos ? !known.eval_loss : !known.loss;
}

/// The whole lines of `text`, the last one first. `whole`: its first line begins where it begins.
LastRows read_back(std::string_view text, bool whole) {
  LastRows out;
  std::size_t end = text.rfind('\n');
  while (end != std::string_view::npos && end > 0 && !(out.loss && out.eval_loss)) {
    const std::size_t before = text.rfind('\n', end - 1);
    if (before == std::string_view::npos && !whole) {
      break;
    }
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    if (const std::string_view line = text.substr(begin, end - begin); matters(out, line)) {
      add(out, line);
    }
    end = before;
  }
  return out;
}

}  // namespace

LastRows last_rows(const fs::path& file) {
  const Descriptor open(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (open.get() < 0 && (errno == ENOENT || errno == ENOTDIR)) {
    return {};
  }
  KF_CHECK(open.get() >= 0, Code::other, "cannot read {}: {}", file, std::strerror(errno));
  struct stat status {};
  KF_CHECK(::fstat(open.get(), &status) == 0 && S_ISREG(status.st_mode), Code::other, "cannot read {}: {}", file, unlike_a_file(file));
  const auto end = static_cast<std::uint64_t>(status.st_size);
  LastRows out;
  for (std::uint64_t size = kFirst; size <= kMost; size *= 8) {
    out = read_back(tail(open.get(), end, size), size >= end);
    if ((out.loss && out.eval_loss) || size >= end) {
      break;
    }
  }
  return out;
}

}  // namespace kf::report
