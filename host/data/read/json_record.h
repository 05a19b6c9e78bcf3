#pragma once
// One JSON object as a record.

#include <memory>
#include <string>
#include <string_view>

#include "data/read/record_text.h"

namespace kf {

class JsonRecord {
 public:
  explicit JsonRecord(const ReadOptions& options);
  ~JsonRecord();
  JsonRecord(const JsonRecord&) = delete;
  JsonRecord& operator=(const JsonRecord&) = delete;

  /// Gives back the room that a record of exceptional length took. Its views end.
  void release();
  /// At least Lines::kPadding readable bytes must lie behind `json`. Of a repeated key the last counts. The record's views live until the
  /// next call, as long as `json` does not matter. Throws BrokenRecord saying what is wrong, after `place()` ("docs.jsonl:7").
  template <class Place>
  void read(std::string_view json, Record& record, const Place& place) {
    if (std::string problem = try_read(json, record); !problem.empty()) [[unlikely]] {
      throw BrokenRecord(place() + ": " + problem);
    }
  }

 private:
  struct Parser;
  /// "" or what is wrong.
  std::string try_read(std::string_view json, Record& record);
  std::string problem_of(std::string_view json) const;

  RecordText text_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace kf
