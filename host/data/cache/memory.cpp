#include "data/cache/memory.h"

#include "core/log.h"
#include "data/file/memory_fault.h"

namespace kf::cache {
namespace {

class MemoryReader {
 public:
  explicit MemoryReader(const CacheRequest& request) : request_(request) {}

  std::shared_ptr<const Documents> read() {
    for (file_ = 0; file_ < request_.files->files.size() && !enough(); ++file_) {
      const auto reader = open_records(request_.files->files[file_], {}, request_.read, skipped_);
      for (Record record; !enough() && reader->next(record);) {
        naming_file(request_.files->files[file_].path, record.number, [&] { add(record); });
      }
    }
    if (skipped_.count() > 0) {
      log::warn("{}: {} broken records were left out (data.on_error = \"skip\")", request_.source, grouped(skipped_.count()));
    }
    const auto files = static_cast<std::int64_t>(request_.files->files.size());
    documents_->set_description(format("{} {}, {} of text, {} tokens ({})", grouped(files), files == 1 ? "file" : "files",
                                       human_bytes(static_cast<double>(text_bytes_)), grouped(documents_->tokens()),
                                       request_.tokenizer_name));
    return documents_;
  }

 private:
  bool enough() const {
    return (request_.max_documents > 0 && documents_->count() >= request_.max_documents) ||
           (request_.max_tokens > 0 && documents_->tokens() >= request_.max_tokens);
  }

  void add(const Record& record) {
    TextBatch batch;
    batch.text.assign(record.text);
    if (request_.transform && !request_.transform(batch.text)) {
      return;
    }
    text_bytes_ += static_cast<std::int64_t>(batch.text.size());
    batch.items.push_back({0, batch.text.size(), record.masked, record.counted, record.written, file_, record.number});
    const IdBatch encoded = encode_batch(batch, request_.encode, *request_.files);
    documents_->add(std::vector<std::int64_t>(encoded.ids.begin(), encoded.ids.end()), encoded.hashes.front(), encoded.mask);
  }

  const CacheRequest& request_;
  std::shared_ptr<MemoryDocuments> documents_ = std::make_shared<MemoryDocuments>();
  Skipped skipped_;
  std::size_t file_ = 0;
  std::int64_t text_bytes_ = 0;
};

}  // namespace

std::shared_ptr<const Documents> read_into_memory(const CacheRequest& request) { return MemoryReader(request).read(); }

}  // namespace kf::cache
