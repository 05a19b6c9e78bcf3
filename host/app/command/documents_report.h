#pragma once
// kf-host eval --documents: the perplexities of lm-evaluation-harness over whole documents.

#include <cstdint>
#include <iosfwd>
#include <string>

#include "app/script/inference.h"

namespace kf {

struct DocumentsRequest {
  std::string file;  // JSON lines, "text" or {"text": "..."}, where its name ends in .jsonl; else one document
  bool json = false;
  at::Device device = at::kCPU;
  std::int64_t batch_size = 16;
};

/// Scores the documents and prints word_perplexity, byte_perplexity and bits_per_byte. Throws Code::data for a faulty file.
void report_documents(const LoadedModel& loaded, const DocumentsRequest& request, std::ostream& out);

}  // namespace kf
