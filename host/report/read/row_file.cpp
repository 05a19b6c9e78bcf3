#include "report/read/row_file.h"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

namespace kf::report {
namespace {

constexpr std::string_view kEval = "eval.";
constexpr std::size_t kMostParsers = 4;
constexpr std::size_t kLeastShare = std::size_t{1} << 18;  // bytes of lines, for which a thread is worth its start

/// `lines` in so many shares of about the same size, each of whole lines; fewer where lines are long.
std::vector<std::string_view> shares_of(std::string_view lines, std::size_t count) {
  std::vector<std::string_view> out;
  for (std::size_t left = count; left > 0 && !lines.empty(); --left) {
    const std::size_t newline = lines.find('\n', left == 1 ? lines.size() - 1 : lines.size() / left);
    const std::size_t size = newline == std::string_view::npos ? lines.size() : newline + 1;
    out.push_back(lines.substr(0, size));
    lines.remove_prefix(size);
  }
  return out;
}

}  // namespace

RowFile::RowFile(fs::path file, std::vector<std::string> wanted) : file_(std::move(file)), wanted_(std::move(wanted)) {
  parsers_.emplace_back(wanted_);
}

News RowFile::read() {
  const News news = file_.look();
  if (news == News::again) {
    parsers_.clear();
    parsers_.emplace_back(wanted_);
  }
  const std::uint64_t before = file_.offset();
  for (std::string_view lines = file_.next(); !lines.empty(); lines = file_.next()) {
    take(lines);
  }
  parsers_.front().level();
  if (news == News::again) {
    return news;
  }
  return file_.offset() > before ? News::more : News::nothing;
}

/// The first parser has all rows; the others take a share of many lines each, at the same time.
void RowFile::take(std::string_view lines) {
  const std::size_t most = std::min<std::size_t>(kMostParsers, std::max(1U, std::thread::hardware_concurrency()));
  const std::vector<std::string_view> shares = shares_of(lines, std::clamp<std::size_t>(lines.size() / kLeastShare, 1, most));
  while (parsers_.size() < shares.size()) {
    parsers_.emplace_back(wanted_);
  }
  std::vector<std::future<void>> others;
  for (std::size_t i = 1; i < shares.size(); ++i) {
    others.push_back(std::async(std::launch::async, [&parser = parsers_[i], share = shares[i]] { parser.take(share); }));
  }
  parsers_.front().take(shares.front());
  for (std::size_t i = 1; i < shares.size(); ++i) {
    others[i - 1].get();
    parsers_.front().take_from(parsers_[i]);
  }
}

RowFile::Series RowFile::find(std::string_view metric) const {
  const bool eval = metric.starts_with(kEval);
  const Columns& rows = eval ? evals() : steps();
  const Column* const column = rows.find(eval ? metric.substr(kEval.size()) : metric);
  return column != nullptr ? Series{&rows.steps, &column->values} : Series{};
}

std::vector<std::string> RowFile::names() const {
  std::vector<std::string> out;
  for (const Column& column : steps().columns) {
    out.push_back(column.name);
  }
  for (const Column& column : evals().columns) {
    out.push_back(std::string(kEval) + column.name);
  }
  return out;
}

}  // namespace kf::report
