#pragma once
// Documents of text from files of any kind: what a source is made of, and a file as a stream of records. No tensors, nothing of tokenizers.
//
//   const SourceFiles source = resolve_source({.paths = {"corpus/{train,extra}/*.jsonl.zst"}, .path_key = "data.dataset_path"});
//   for (const SourceFile& file : source.files) {
//     for (const FileSpan& part : split_file(file, 64 << 20)) {           // any part in any thread
//       const std::unique_ptr<RecordReader> reader = open_records(file, part, options, skipped);
//       for (Record record; reader->next(record);) { ... record.text ... }
//     }
//   }

#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_range.h"
#include "core/fs.h"
#include "data/file/source_files.h"

namespace kf {

class ChatFormat;

/// Throws Code::data when nothing is found (naming what is there instead), when token files and text are mixed, or when a name stands for
/// something that is no file.
SourceFiles resolve_source(const SourceRequest& request);

/// A document. The views live until the next call of `next`.
struct Record {
  std::string_view text;           // valid UTF-8; may be empty
  bool masked = false;             // only `counted` counts for the loss; else all of it
  std::vector<ByteRange> counted;  // rising, not touching: the answers (data.loss_on)
  std::vector<ByteRange> written;  // rising: by a format or template, not by who wrote the data: its special tokens are the tokens
  std::int64_t number = 0;         // its line (from 1) or row (from 0) in the file; of a part: relative to the part
};

/// How records become text: [data], and what a source says itself.
struct ReadOptions {
  std::string text_field = "text";
  std::string text_template;   // "{title}\n\n{body}"; "" takes text_field alone
  std::string messages_field;  // a chat instead of text; "" for none
  std::string role_field;      // of a message; "" takes role or from
  std::string content_field;   // of a message; "" takes content or value
  std::string message_format = "{role}: {content}\n";
  std::string tools_field;                 // of a record, for chat templates; "" for none
  std::shared_ptr<const ChatFormat> chat;  // how chats are written; null takes message_format
  std::string prompt_field;                // a prompt instead of text, or
  std::string prompt_template;             // one made of several fields; with
  std::string completion_field;            // what answers it
  bool prompt_as_chat = false;             // prompt and completion are messages
  bool answers_only = false;               // data.loss_on: the answers alone count
  bool ask = false;                        // a chat ends where an answer is to begin: a prompt, not a document
  bool skip_broken = false;                // data.on_error = "skip"
  std::string text_field_key = "data.hf_dataset_text_field";
  std::size_t max_record_bytes = std::size_t{1} << 30;  // data.max_record_bytes: a longer line, row or text is an error
};

/// Counts what data.on_error = "skip" left out; the first few are logged with their reason as they are met. Thread-safe.
class Skipped {
 public:
  void add(const std::string& reason);
  std::int64_t count() const;
  /// The first reasons, each with file and line or row.
  std::vector<std::string> reasons() const;

 private:
  mutable std::mutex mutex_;
  std::int64_t count_ = 0;
  std::vector<std::string> reasons_;
};

/// A stretch of a file. Which records belong to it is the reader's matter (a line belongs where it starts, a row group where its first byte
/// lies); the parts of a file, one after the other, give the records of the whole.
struct FileSpan {
  std::int64_t begin = 0;
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
};

/// One part where the kind cannot be split (compressed files, plain text, JSON arrays, CSV, Arrow streams), else parts of about `bytes`.
std::vector<FileSpan> split_file(const SourceFile& file, std::int64_t bytes);

/// A file, or a part of one, as a stream of records. One thread uses it; many may be open at once.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  /// The next record; false at the end. Throws Code::data naming file, line or row, and what was expected; broken records are left out and
  /// counted instead where ReadOptions::skip_broken says so. A file that ends early (truncated archive, shrunken file) always throws.
  virtual bool next(Record& record) = 0;
  /// Bytes of the file used up so far, from the part's start; for progress.
  virtual std::int64_t position() const = 0;
};

/// Throws Code::data, as for a column that is missing. `skipped` outlives the reader.
std::unique_ptr<RecordReader> open_records(const SourceFile& file, const FileSpan& part, const ReadOptions& options, Skipped& skipped);

}  // namespace kf
