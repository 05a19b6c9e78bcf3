#include "train/profile/trace_file.h"

#include "core/text.h"

namespace kf {
namespace {

/// The format counts microseconds.
std::string micros(std::int64_t nanos) { return fixed(static_cast<double>(nanos) / 1e3, 3); }

/// JSON is UTF-8; a script's path may be anything.
std::string text_of(std::string_view text) { return is_utf8(text) ? quoted(text) : "\"(not UTF-8)\""; }

/// An earlier trace of this name goes.
fs::path made_room(const fs::path& path) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  fs::remove(path, failed);
  return path;
}

}  // namespace

TraceFile::TraceFile(const fs::path& path, std::int64_t process) : path_(path), file_(made_room(path)), process_(process), waiting_("[") {}

void TraceFile::write(std::string_view object) {
  waiting_ += first_ ? "\n" : ",\n";
  waiting_ += object;
  first_ = false;
}

void TraceFile::name_process(std::string_view name) {
  write(format(R"({"name":"process_name","ph":"M","pid":{},"tid":0,"args":{"name":{}}})", process_, text_of(name)));
  write(format(R"({"name":"process_sort_index","ph":"M","pid":{},"tid":0,"args":{"sort_index":{}}})", process_, process_));
}

void TraceFile::name_thread(std::int64_t thread, std::string_view name) {
  write(format(R"({"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{"name":{}}})", process_, thread, text_of(name)));
}

void TraceFile::range(std::int64_t thread, std::string_view name, std::string_view category, std::int64_t begin, std::int64_t end,
                      std::string_view arguments) {
  write(format(R"({"name":{},"cat":"{}","ph":"X","ts":{},"dur":{},"pid":{},"tid":{},"args":{{}}})", text_of(name), category, micros(begin),
               micros(end - begin), process_, thread, arguments));
}

void TraceFile::counter(std::string_view name, std::int64_t time, const Numbers& values) {
  std::string numbers;
  for (const auto& [what, value] : values) {
    numbers += format("{}{}:{}", numbers.empty() ? "" : ",", text_of(what), value);
  }
  write(format(R"({"name":{},"ph":"C","ts":{},"pid":{},"args":{{}}})", text_of(name), micros(time), process_, numbers));
}

void TraceFile::flush() {
  file_.append(waiting_);
  waiting_.clear();
}

void TraceFile::close() {
  waiting_ += "\n]\n";
  flush();
}

}  // namespace kf
