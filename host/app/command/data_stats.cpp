#include <algorithm>
#include <iostream>

#include "app/command/data_commands.h"
#include "app/command/data_job.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "data/cache/cached_documents.h"
#include "data/documents/lengths.h"

namespace kf {
namespace {

using config::Node;
using config::Table;

constexpr std::size_t kTopSources = 10;

struct Stats {
  std::string source;
  std::string description;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  Lengths lengths;
  std::shared_ptr<const cache::CachedDocuments> cached;  // null where nothing is cached

  /// A source's files by falling number of tokens.
  std::vector<std::size_t> top() const {
    const auto& per_source = cached->manifest().per_source;
    std::vector<std::size_t> order(per_source.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    const std::size_t shown = std::min(kTopSources, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(), [&](std::size_t a, std::size_t b) {
      return per_source[a].tokens != per_source[b].tokens ? per_source[a].tokens > per_source[b].tokens : a < b;
    });
    order.resize(shown);
    return order;
  }
};

double ratio(std::int64_t a, std::int64_t b) { return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b); }

Stats stats_of(const DataSource& source, const DataJob& job) {
  const SourceFiles files = find_files(source.spec, job.config());
  KF_CHECK(!files.tokens, Code::data, "{} holds token files, which have no documents; `kf-host data info` counts them", source.what());
  const TokenizedText text = open_tokenized_text(files, source.spec, source.options);
  return {source.what(), text.documents->describe(), text.documents->count(), text.documents->tokens(), lengths_of(*text.documents),
          text.cached};
}

void print_line(const std::string& label, const std::string& text) {
  std::cout << label << std::string(label.size() < 12 ? 12 - label.size() : 1, ' ') << text << "\n";
}

void print_lengths(const Lengths& lengths) {
  constexpr double kWidth = 40;
  const auto most = std::max<std::int64_t>(*std::max_element(lengths.buckets.begin(), lengths.buckets.end()), 1);
  for (std::size_t i = 0; i < lengths.buckets.size(); ++i) {
    std::string label = Lengths::label(i);
    label.insert(0, label.size() < 21 ? 21 - label.size() : 0, ' ');
    std::string count = grouped(lengths.buckets[i]);
    count.insert(0, count.size() < 13 ? 13 - count.size() : 0, ' ');
    const double share = static_cast<double>(lengths.buckets[i]) / static_cast<double>(most);
    const auto bar = static_cast<std::size_t>(share * kWidth + (lengths.buckets[i] > 0 ? 0.999 : 0));
    std::cout << "  " << label << count << "  " << std::string(bar, '#') << "\n";
  }
}

void print_notes(const cache::Manifest& manifest) {
  const cache::Notes& notes = manifest.notes;
  print_line("bytes", format("{} of text, {} tokens a byte", grouped(manifest.counts.text_bytes),
                             fixed(ratio(manifest.counts.tokens, manifest.counts.text_bytes), 3)));
  print_line("empty", grouped(notes.empty) + " documents");
  print_line("skipped", grouped(notes.skipped) + " broken records" +
                            (notes.skipped_reasons.empty() ? "" : ", such as " + notes.skipped_reasons.front()));
  print_line("dropped", grouped(notes.dropped) + " by transforms");
  print_line("special", grouped(notes.special_names) + " names of special tokens in the text");
}

void print(const Stats& stats) {
  print_line("source", stats.source);
  print_line("", stats.description);
  if (stats.cached) {
    print_line("cache", stats.cached->folder().string());
  }
  print_line("documents", grouped(stats.documents));
  print_line("tokens", format("{}; a document has {} to {}, {} on average", grouped(stats.tokens), grouped(stats.lengths.least),
                              grouped(stats.lengths.most), fixed(ratio(stats.tokens, stats.documents), 1)));
  if (stats.cached) {
    print_notes(stats.cached->manifest());
  }
  print_line("lengths", "in tokens");
  print_lengths(stats.lengths);
  if (stats.cached) {
    const cache::Manifest& manifest = stats.cached->manifest();
    print_line("files", format("{}, the largest:", grouped(static_cast<std::int64_t>(manifest.parts.sources.size()))));
    for (const std::size_t i : stats.top()) {
      std::cout << "  " << fixed(100 * ratio(manifest.per_source[i].tokens, manifest.counts.tokens), 1) << " %  "
                << manifest.parts.sources[i].name << "  " << grouped(manifest.per_source[i].documents) << " documents, "
                << grouped(manifest.per_source[i].tokens) << " tokens\n";
    }
  }
}

Node to_node(const Stats& stats) {
  Table out;
  out["source"] = Node(stats.source);
  out["documents"] = Node(stats.documents);
  out["tokens"] = Node(stats.tokens);
  Table lengths;
  lengths["least"] = Node(stats.lengths.least);
  lengths["most"] = Node(stats.lengths.most);
  lengths["mean"] = Node(ratio(stats.tokens, stats.documents));
  config::Array buckets;
  for (std::size_t i = 0; i < stats.lengths.buckets.size(); ++i) {
    Table bucket;
    bucket["from"] = Node(Lengths::from(i));
    bucket["documents"] = Node(stats.lengths.buckets[i]);
    buckets.emplace_back(std::move(bucket));
  }
  lengths["buckets"] = Node(std::move(buckets));
  out["lengths"] = Node(std::move(lengths));
  if (stats.cached) {
    const cache::Manifest& manifest = stats.cached->manifest();
    out["cache"] = Node(stats.cached->folder().string());
    out["text_bytes"] = Node(manifest.counts.text_bytes);
    out["tokens_per_byte"] = Node(ratio(manifest.counts.tokens, manifest.counts.text_bytes));
    out["empty"] = Node(manifest.notes.empty);
    out["skipped"] = Node(manifest.notes.skipped);
    out["dropped"] = Node(manifest.notes.dropped);
    out["special_names"] = Node(manifest.notes.special_names);
    config::Array files;
    for (const std::size_t i : stats.top()) {
      Table file;
      file["name"] = Node(manifest.parts.sources[i].name);
      file["documents"] = Node(manifest.per_source[i].documents);
      file["tokens"] = Node(manifest.per_source[i].tokens);
      files.emplace_back(std::move(file));
    }
    out["top_files"] = Node(std::move(files));
  }
  return Node(std::move(out));
}

}  // namespace

int data_stats(const Arguments& args) {
  const DataCall call = parse_data_call(args, "usage: kf-host data stats JOB|PATH [--format text|json] [--section.key=value ...]");
  const DataJob job(call);
  config::Array nodes;
  bool first = true;
  for (const DataSource& source : job.sources(true)) {
    const Stats stats = stats_of(source, job);
    nodes.push_back(to_node(stats));
    if (!call.json) {
      std::cout << (first ? "" : "\n");
      print(stats);
    }
    first = false;
  }
  if (call.json) {
    Table out;
    out["sources"] = Node(std::move(nodes));
    std::cout << config::to_json(Node(std::move(out))) << "\n";
  }
  return 0;
}

}  // namespace kf
