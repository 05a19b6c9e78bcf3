#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "app/command/data_commands.h"
#include "app/command/data_job.h"
#include "core/error.h"
#include "data/loader/loader.h"
#include "run/job_tokenizer.h"

namespace kf {
namespace {

constexpr const char* kUsage = "usage: kf-host data peek JOB|PATH [--documents N] [--rows N] [--first N] [--section.key=value ...]";
constexpr std::size_t kShown = 2000;  // ids of a document

/// Text for one line: control characters and broken UTF-8 are spelled out.
std::string visible(const std::string& text) {
  std::string out;
  const bool whole = is_utf8(text);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 32 || byte == 127 || (byte > 127 && !whole)) {
      constexpr std::string_view digits = "0123456789abcdef";
      out += std::string("\\x") + digits[byte >> 4] + digits[byte & 15];
    } else {
      out += c;
    }
  }
  return out;
}

class Painter {
 public:
  Painter(const Tokenizer* tokenizer, std::optional<std::int64_t> eos) : tokenizer_(tokenizer), eos_(eos) {
    const char* const none = std::getenv("NO_COLOR");
    colour_ = ::isatty(STDOUT_FILENO) == 1 && (none == nullptr || *none == '\0');
  }

  std::string text(std::span<const std::int64_t> ids) const {
    std::string out;
    std::vector<std::int64_t> run;
    const auto flush = [&] {
      out += decoded(run);
      run.clear();
    };
    for (const std::int64_t id : ids) {
      if (id == eos_) {
        flush();
        out += paint("<end>", "1;33");
      } else {
        run.push_back(id);
      }
    }
    flush();
    return out;
  }

  /// Ids that are not learned from.
  std::string masked(std::span<const std::int64_t> ids) const { return colour_ ? paint(text(ids), "2") : "[" + text(ids) + "]"; }
  std::string border() const { return paint("|", "1;36"); }
  std::string heading(const std::string& line) const { return paint(line, "1"); }
  bool colour() const { return colour_; }

 private:
  std::string paint(const std::string& text, const char* code) const {
    return colour_ ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
  }

  std::string decoded(const std::vector<std::int64_t>& ids) const {
    if (ids.empty()) {
      return {};
    }
    if (tokenizer_ != nullptr) {
      return visible(tokenizer_->decode_with_special(ids));
    }
    std::vector<std::string> words;
    for (const std::int64_t id : ids) {
      words.push_back(to_text(id));
    }
    return join(words, " ") + " ";
  }

  const Tokenizer* tokenizer_;
  std::optional<std::int64_t> eos_;
  bool colour_ = false;
};

/// A document with what does not count for the loss in brackets.
std::string document_text(const Painter& painter, const Documents& documents, std::int64_t index, std::span<const std::int64_t> ids) {
  if (!documents.has_mask()) {
    return painter.text(ids);
  }
  std::vector<std::uint8_t> mask(ids.size());
  documents.read_mask(documents.start(index), mask);
  std::string out;
  for (std::size_t i = 0; i < ids.size();) {
    const std::size_t end =
        static_cast<std::size_t>(std::find(mask.begin() + static_cast<std::ptrdiff_t>(i), mask.end(), mask[i] == 0) - mask.begin());
    out += mask[i] != 0 ? painter.text(ids.subspan(i, end - i)) : painter.masked(ids.subspan(i, end - i));
    i = end;
  }
  return out;
}

void show_documents(const DataSource& source, const DataJob& job, const DataCall& call) {
  const SourceFiles files = find_files(source.spec, job.config());
  std::cout << source.what() << "\n";
  if (files.tokens) {
    std::cout << "  token files: no documents; a job shows its rows\n";
    return;
  }
  const TokenizedText text = open_tokenized_text(files, source.spec, source.options);
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(job.config(), &job.registries());
  const Painter painter(tokenizer.get(), text.eos);
  const Documents& documents = *text.documents;
  std::cout << "  " << documents.describe() << "\n";
  const std::int64_t first = call.first.value_or(0);
  const std::int64_t end = std::min(documents.count(), first + call.documents.value_or(3));
  for (std::int64_t i = first; i < end; ++i) {
    std::vector<std::int64_t> ids(std::min(kShown, static_cast<std::size_t>(documents.length(i))));
    documents.read(documents.start(i), ids);
    std::cout << painter.heading(format("document {}, {} tokens", i, documents.length(i))) << "\n"
              << document_text(painter, documents, i, ids) << (static_cast<std::int64_t>(ids.size()) < documents.length(i) ? " ..." : "")
              << "\n";
  }
}

/// What a row shows one after the other: ids with whether the model learns them, and padding.
struct Shown {
  enum class Kind { hidden, learned, other, padding };  // other: a label that is not the next id, as batch transforms make them
  Kind kind = Kind::hidden;
  std::int64_t document = 0;
  std::vector<std::int64_t> ids;
};

class RowView {
 public:
  RowView(std::span<const std::int64_t> tokens, std::span<const std::int64_t> labels, std::span<const std::int64_t> doc_ids)
      : tokens_(tokens), labels_(labels), doc_ids_(doc_ids) {}

  /// By the labels that training takes: an id is learned where the position before it has it as its label. The first id of a row, or of a
  /// document that is kept apart, is nobody's label; the label of the last position is learned without being an input.
  std::vector<Shown> all() {
    for (std::size_t t = 0; t < tokens_.size(); ++t) {
      const bool first = t == 0 || document(t - 1) != document(t);
      const std::int64_t label = first ? kIgnore : labels_[t - 1];
      if (label != kIgnore && label != tokens_[t]) {
        add(Shown::Kind::other, t, label);
      }
      add(document(t) < 0 ? Shown::Kind::padding : label == tokens_[t] ? Shown::Kind::learned : Shown::Kind::hidden, t, tokens_[t]);
      const bool last = t + 1 == tokens_.size() || document(t + 1) != document(t);
      if (last && labels_[t] != kIgnore) {
        add(Shown::Kind::learned, t, labels_[t]);
      }
    }
    return std::move(out_);
  }

 private:
  std::int64_t document(std::size_t t) const { return doc_ids_.empty() ? 0 : doc_ids_[t]; }
  void add(Shown::Kind kind, std::size_t t, std::int64_t id) {
    if (out_.empty() || out_.back().kind != kind || out_.back().document != document(t)) {
      out_.push_back({kind, document(t), {}});
    }
    out_.back().ids.push_back(id);
  }

  std::span<const std::int64_t> tokens_;
  std::span<const std::int64_t> labels_;
  std::span<const std::int64_t> doc_ids_;
  std::vector<Shown> out_;
};

/// One row: a border between documents, what is never predicted in brackets (dim on a terminal), padding as its length.
std::string row_text(const Painter& painter, const std::vector<Shown>& row) {
  std::string out;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0 && row[i - 1].document != row[i].document) {
      out += painter.border();
    }
    switch (row[i].kind) {
      case Shown::Kind::hidden: out += painter.masked(row[i].ids); break;
      case Shown::Kind::learned: out += painter.text(row[i].ids); break;
      case Shown::Kind::other: out += "{to learn: " + painter.text(row[i].ids) + "}"; break;
      case Shown::Kind::padding: out += format("({} of padding)", row[i].ids.size()); break;
    }
  }
  return out;
}

void show_rows(const DataJob& job, const DataCall& call) {
  const config::Config& config = job.config();
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(config, job.registries());
  const std::optional<std::int64_t> eos = config.data.eos_id ? config.data.eos_id : tokenizer ? tokenizer->eos_id() : std::nullopt;
  const Painter painter(tokenizer.get(), eos);
  std::unique_ptr<Loader> loader;
  try {
    loader = make_train_loader(config, {0, 1, &job.registries()});
  } catch (const Error& error) {
    if (call.rows || error.code() != Code::data) {
      throw;
    }
    std::cout << "no rows: " << error.what() << "\n";  // as with a first handful of documents, which are shown all the same
    return;
  }
  std::int64_t left = call.rows.value_or(2);
  std::cout << painter.heading(format("rows as training reads them ({} tokens each{})", config.train.seq_len,
                                      painter.colour() ? "; dim: not learned" : "; [in brackets]: not learned; | between documents"))
            << "\n";
  for (std::int64_t index = call.first.value_or(0); left > 0; ++index) {
    const Batch batch = loader->batch(index);
    for (std::int64_t row = 0; row < batch.tokens.size(0) && left > 0; ++row, --left) {
      const auto span_of = [&](const at::Tensor& tensor) {
        return tensor.defined() ? std::span<const std::int64_t>(tensor.const_data_ptr<std::int64_t>() + row * tensor.size(1),
                                                                static_cast<std::size_t>(tensor.size(1)))
                                : std::span<const std::int64_t>();
      };
      std::cout << painter.heading(format("micro-batch {}, row {}, sample {}", index, row, batch.samples[static_cast<std::size_t>(row)]))
                << "\n"
                << row_text(painter, RowView(span_of(batch.tokens), span_of(batch.labels), span_of(batch.doc_ids)).all()) << "\n";
    }
  }
}

}  // namespace

int data_peek(const Arguments& args) {
  const DataCall call = parse_data_call(args, kUsage, true);
  KF_CHECK(!call.json, Code::config, "data peek writes for people: it has no --format json");
  const DataJob job(call);
  KF_CHECK(job.is_job() || (!call.rows && !call.first), Code::config,
           "--rows and --first show what a job reads: {} is none, so there are documents alone", call.target);
  if (call.documents.value_or(3) > 0) {
    for (const DataSource& source : job.sources(true)) {
      show_documents(source, job, call);
    }
  }
  if (job.is_job() && call.rows.value_or(2) > 0) {
    show_rows(job, call);
  }
  return 0;
}

}  // namespace kf
