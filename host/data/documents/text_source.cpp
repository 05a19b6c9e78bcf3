#include "data/documents/text_source.h"

#include <algorithm>

#include "core/digest.h"
#include "core/error.h"
#include "core/log.h"
#include "core/source_watch.h"
#include "core/text.h"
#include "data/file/utf8.h"

namespace kf {
namespace {

// Smaller files are copied: a map for each of a hundred thousand would meet the kernel's limit (vm.max_map_count, 65530).
constexpr std::size_t kMapFrom = 1 << 20;

std::string_view view(const MappedFile& file) { return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}; }

constexpr std::string_view kMark = "\xef\xbb\xbf";  // the byte order mark that some editors write: no part of the text

/// An empty one, too: it is its end.
void add_document(TextCorpus& corpus, std::string_view text) {
  corpus.documents.push_back({text, true});
  corpus.bytes += static_cast<double>(text.size());
}

std::string_view without_mark(std::string_view text) { return text.starts_with(kMark) ? text.substr(kMark.size()) : text; }

void add_plain(TextCorpus& corpus, MappedFile file) {
  if (file.bytes().size() >= kMapFrom) {
    struct Watched {
      MappedFile file;
      SourceWatch watch;
    };
    SourceWatch watch(file.path());
    const auto owner = std::make_shared<const Watched>(Watched{std::move(file), std::move(watch)});
    add_document(corpus, without_mark(view(owner->file)));
    corpus.owners.push_back(owner);
  } else {
    const auto owner = std::make_shared<const std::string>(view(file));
    add_document(corpus, without_mark(*owner));
    corpus.owners.push_back(owner);
  }
}

/// "a.txt:3: not valid UTF-8 at byte 7 of 9 ...", "" for text.
std::string fault_of(const MappedFile& file) {
  const std::string_view text = view(file);
  if (valid_utf8(text)) [[likely]] {
    return {};
  }
  const std::string_view before = text.substr(0, invalid_utf8_at(text));
  return format("{}:{}: {}", file.path(), 1 + std::count(before.begin(), before.end(), '\n'), utf8_fault(text));
}

}  // namespace

TextCorpus read_text(const std::vector<fs::path>& files, const fs::path& root, bool skip_broken, const std::string& hint) {
  TextCorpus corpus;
  Digest digest;
  for (const fs::path& path : files) {
    MappedFile file(path);
    if (const std::string fault = fault_of(file); !fault.empty()) {
      KF_CHECK(skip_broken, Code::data, "{}{}", fault, hint);
      log::warn("left out: {}", fault);
      ++corpus.skipped;
      continue;
    }
    const std::string name = path.lexically_relative(root).string();
    digest.add_file(name, view(file));
    if (files.size() <= kMostFilePrints) {
      Digest content;  // of all of it: every byte was just looked at
      content.add(view(file));
      corpus.prints.push_back({name, content.hex()});
    }
    add_plain(corpus, std::move(file));
    ++corpus.files;
  }
  if (corpus.skipped > 0) {
    log::warn("{} of {} files were left out (data.on_error = \"skip\")", grouped(corpus.skipped), grouped(corpus.skipped + corpus.files));
  }
  corpus.tokens = byte_tokens(corpus.documents);
  corpus.fingerprint = digest.hex();
  return corpus;
}

std::int64_t byte_tokens(const std::vector<Document>& documents) {
  std::int64_t ids = 0;
  for (const Document& document : documents) {
    ids += static_cast<std::int64_t>(document.text.size()) + (document.ends ? 1 : 0);
  }
  return ids;
}

}  // namespace kf
