#include <algorithm>
#include <iostream>

#include "app/command/data_commands.h"
#include "app/command/data_job.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "data/cache/cached_documents.h"

namespace kf {
namespace {

struct Finding {
  std::string source;
  std::string checked;  // "4 files of the cache X", for people
  std::vector<std::string> faults;
};

void read_tokens(const SourceFiles& files, const SourceOptions& options, Finding& finding) {
  finding.checked = format("{} token {}", files.files.size(), files.files.size() == 1 ? "file" : "files");
  for (const SourceFile& found : files.files) {
    try {
      const TokenFile file(found.path, {options.token_type, options.vocab_size});
      std::vector<std::int64_t> ids;
      for (std::int64_t at = 0; at < file.tokens(); at += static_cast<std::int64_t>(ids.size())) {
        ids.resize(static_cast<std::size_t>(std::min<std::int64_t>(1 << 16, file.tokens() - at)));
        file.read(at, ids);
      }
    } catch (const Error& error) {
      finding.faults.emplace_back(error.what());
    }
  }
}

Finding examine(const DataSource& source, const DataJob& job) {
  Finding finding{source.what(), {}, {}};
  try {
    const SourceFiles files = find_files(source.spec, job.config());
    if (files.tokens) {
      read_tokens(files, source.options, finding);
      return finding;
    }
    const TokenizedText text = open_tokenized_text(files, source.spec, source.options);
    if (text.cached == nullptr) {
      finding.checked = "text that is read as it is, without a cache";
      return finding;
    }
    finding.checked =
        format("{} in {}: {} documents, {} tokens",
               text.cached->manifest().shards.size() == 1 ? "1 shard" : format("{} shards", text.cached->manifest().shards.size()),
               text.cached->folder(), grouped(text.cached->count()), grouped(text.cached->tokens()));
    finding.faults = text.cached->faults();
    if (!finding.faults.empty()) {
      finding.faults.push_back(format("remove {}, and the next run makes it again", text.cached->folder()));
    }
  } catch (const Error& error) {
    KF_CHECK(error.code() == Code::data, error.code(), "{}", error.what());
    finding.faults.emplace_back(error.what());
  }
  return finding;
}

config::Node to_node(const Finding& finding) {
  config::Table out;
  out["source"] = config::Node(finding.source);
  out["checked"] = config::Node(finding.checked);
  config::Array faults;
  for (const std::string& fault : finding.faults) {
    faults.emplace_back(fault);
  }
  out["good"] = config::Node(finding.faults.empty());
  out["faults"] = config::Node(std::move(faults));
  return config::Node(std::move(out));
}

}  // namespace

int data_verify(const Arguments& args) {
  const DataCall call = parse_data_call(args, "usage: kf-host data verify JOB|PATH [--format text|json] [--section.key=value ...]");
  const DataJob job(call);
  bool good = true;
  config::Array nodes;
  for (const DataSource& source : job.sources(false)) {
    const Finding finding = examine(source, job);
    good = good && finding.faults.empty();
    nodes.push_back(to_node(finding));
    if (!call.json) {
      std::cout << finding.source << ": " << (finding.faults.empty() ? "good; " + finding.checked : "NOT good") << "\n";
      for (const std::string& fault : finding.faults) {
        std::cout << "  " << fault << "\n";
      }
    }
  }
  if (call.json) {
    config::Table out;
    out["good"] = config::Node(good);
    out["sources"] = config::Node(std::move(nodes));
    std::cout << config::to_json(config::Node(std::move(out))) << "\n";
  }
  return good ? 0 : static_cast<int>(Code::data);
}

}  // namespace kf
