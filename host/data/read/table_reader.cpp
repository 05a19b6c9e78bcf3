#include "core/error.h"
#include "data/read/readers.h"

namespace kf {

std::unique_ptr<RecordReader> open_table(const SourceFile& file, const FilePart&, const ReadOptions&, Skipped&) {
  fail(Code::data, "{}: Parquet and Arrow are not read yet", file.path);
}

}  // namespace kf
