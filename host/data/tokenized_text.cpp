#include "data/tokenized_text.h"

#include <algorithm>

#include "config/config.h"
#include "core/error.h"
#include "core/log.h"
#include "data/cache/cache.h"
#include "data/cache/cached_documents.h"
#include "data/cache/memory.h"
#include "data/text_documents.h"
#include "data/text_source.h"
#include "data/tokenizer/tokenizer.h"
#include "data/transform.h"
#include "registry/registries.h"

namespace kf {
namespace {

class TextOpener {
 public:
  TextOpener(const SourceFiles& files, const SourceSpec& spec, const SourceOptions& options)
      : files_(files),
        spec_(spec),
        options_(options),
        data_(options.config->data),
        tokenizer_(make_tokenizer(*options.config, options.registries)),
        transforms_(make_transforms(spec.transforms, *options.config, options.registries)),
        eos_(end_id()),
        bos_(begin_id()) {
    KF_CHECK(data_.special_tokens != "special" || tokenizer_->reads_special(), Code::config,
             "data.special_tokens = \"special\" has no effect: the tokenizer {} never reads special tokens from text; leave it out",
             bytes() ? "of bytes" : kf::quoted(data_.tokenizer_path));
    KF_CHECK(data_.loss_on != "answers" || !data_.messages_field.empty(), Code::config,
             "data.loss_on = \"answers\" is about chats: set data.messages_field to the field that holds them");
    KF_CHECK(
        data_.loss_on != "answers" || transforms_.empty(), Code::config,
        "data.loss_on = \"answers\" needs to know where the answers stand, and transforms = [{}] change the text; leave one of them out",
        join(spec_.transforms, ", "));
  }

  TokenizedText open() {
    TokenizedText out;
    out.eos = eos_;
    if (stays_mapped()) {
      out.documents = mapped(out.prints);
    } else {
      const cache::CacheRequest request = this->request();
      if (request.tokenizer_hash.empty() || !transforms_have_hashes()) {
        log::info("{} is tokenized in memory for this run: what its {} do is not known from a file, so it cannot be cached", request.source,
                  request.tokenizer_hash.empty() ? "tokenizer's functions" : "transforms");
        out.documents = cache::read_into_memory(request);
        out.prints = sampled_prints(files_);
      } else {
        cache::OpenedCache opened = cache::open_cache(request);
        out.cached = opened.documents;
        out.documents = opened.documents;
        out.built = opened.built;
        out.cached->check_vocabulary(options_.vocab_size);
        for (const cache::KeySource& source : out.cached->manifest().parts.sources) {
          out.prints.push_back({source.name, source.hash});
        }
      }
    }
    check(*out.documents);
    out.documents =
        first_documents(std::move(out.documents), spec_.max_documents, spec_.max_tokens, options_.window, spec_.limit_key + ".max_tokens");
    return out;
  }

 private:
  std::string what() const {
    return spec_.path.empty() ? spec_.path_key + " = " + kf::quoted(spec_.hf_name) : spec_.path_key + " = " + kf::quoted(spec_.path);
  }
  bool bytes() const { return data_.tokenizer_path.empty(); }

  /// Plain files are their own ids, and starting on them costs nothing.
  bool stays_mapped() const {
    return bytes() && transforms_.empty() && data_.messages_field.empty() && data_.text_template.empty() &&
           std::all_of(files_.files.begin(), files_.files.end(),
                       [](const SourceFile& file) { return file.kind == FileKind{} && file.remote == nullptr; });
  }

  DocumentsPtr mapped(std::vector<FilePrint>& prints) const {
    std::vector<fs::path> paths;
    for (const SourceFile& file : files_.files) {
      paths.push_back(file.path);
    }
    TextCorpus corpus = read_text(paths, files_.root, data_.on_error == "skip", "; or narrow " + spec_.pattern_key + " to leave it out");
    for (Document& document : corpus.documents) {
      document.ends = data_.add_eos;
    }
    corpus.tokens = byte_tokens(corpus.documents);
    prints = corpus.prints;
    return std::make_shared<TextDocuments>(std::move(corpus));
  }

  std::optional<std::int64_t> end_id() const {
    if (bytes()) {
      KF_CHECK(!data_.eos_id || *data_.eos_id == kByteEos, Code::data,
               "data.eos_id = {}, but text read as bytes ends its documents with {}; leave data.eos_id out", *data_.eos_id, kByteEos);
    }
    KF_CHECK(!data_.eos_id || *data_.eos_id < options_.vocab_size, Code::data, "data.eos_id = {} is not below model.vocab_size ({})",
             data_.eos_id.value_or(0), options_.vocab_size);
    if (!data_.add_eos) {
      return std::nullopt;
    }
    const std::optional<std::int64_t> eos = data_.eos_id ? data_.eos_id : tokenizer_->eos_id();
    if (!eos) {
      log::warn(
          "the tokenizer {} has no id that ends a document, so documents run into each other; set data.eos_id, or data.add_eos = false if "
          "that is meant",
          kf::quoted(data_.tokenizer_path));
    }
    return eos;
  }

  std::optional<std::int64_t> begin_id() const {
    if (!data_.add_bos) {
      return std::nullopt;
    }
    const std::optional<std::int64_t> bos = tokenizer_->bos_id();
    KF_CHECK(bos, Code::data, "data.add_bos = true, but the tokenizer {} has no id that begins a document; leave data.add_bos out",
             bytes() ? "of bytes" : kf::quoted(data_.tokenizer_path));
    return bos;
  }

  ReadOptions read_options() const {
    ReadOptions read;
    read.text_field = options_.text_field;
    read.text_field_key = options_.text_field_key;
    read.text_template = data_.text_template;
    read.messages_field = data_.messages_field;
    read.message_format = data_.message_format;
    read.answers_only = data_.loss_on == "answers";
    read.skip_broken = data_.on_error == "skip";
    read.max_record_bytes = static_cast<std::size_t>(data_.max_record_bytes);
    return read;
  }

  cache::CacheRequest request() {
    cache::CacheRequest request;
    request.dir = cache::cache_folder(data_.cache_dir);
    request.files = &files_;
    request.source = what();
    request.read = read_options();
    request.encode.tokenizer = tokenizer_.get();
    request.encode.options.special = special_text_named(data_.special_tokens);
    request.encode.bos = bos_;
    request.encode.eos = eos_;
    request.encode.vocab_size = options_.vocab_size;
    request.encode.mask = request.read.answers_only;
    request.tokenizer_hash = tokenizer_->content_hash();
    request.tokenizer_name = bytes() ? "bytes" : data_.tokenizer_path;
    if (!transforms_.empty()) {
      request.transform = [this](std::string& text) {
        return std::all_of(transforms_.begin(), transforms_.end(), [&](const auto& each) { return each->apply(text); }) && !text.empty();
      };
    }
    request.threads = data_.num_workers;
    request.build = options_.build;
    request.max_documents = spec_.max_documents;
    request.max_tokens = spec_.max_tokens;
    request.options = key_options(request);
    return request;
  }

  /// What decides the ids beside the files and the tokenizer. What has no effect here is left out: changing it costs nothing.
  std::map<std::string, std::string> key_options(const cache::CacheRequest& request) const {
    std::map<std::string, std::string> out;
    const ReadOptions& read = request.read;
    if (!read.messages_field.empty()) {
      out["data.messages_field"] = read.messages_field;
      out["data.message_format"] = read.message_format;
      out["data.loss_on"] = data_.loss_on;
    } else if (!read.text_template.empty()) {
      out["data.text_template"] = read.text_template;
    } else {
      out["data.hf_dataset_text_field"] = read.text_field;
    }
    out["data.special_tokens"] = data_.special_tokens;
    out["data.add_bos"] = id_text(request.encode.bos);
    out["data.add_eos"] = id_text(request.encode.eos);
    out["data.on_error"] = data_.on_error;
    for (std::size_t i = 0; i < transforms_.size(); ++i) {
      out[format("transforms[{}]", i)] = spec_.transforms[i] + " " + transforms_[i]->content_hash();
    }
    if (spec_.max_documents > 0) {
      out["max_documents"] = to_text(spec_.max_documents);
    }
    if (spec_.max_tokens > 0) {
      out["max_tokens"] = to_text(spec_.max_tokens);
    }
    return out;
  }

  static std::string id_text(const std::optional<std::int64_t>& id) { return id ? "id " + to_text(*id) : "none"; }

  bool transforms_have_hashes() const {
    return std::none_of(transforms_.begin(), transforms_.end(), [](const auto& each) { return each->content_hash().empty(); });
  }

  void check(const Documents& documents) const {
    KF_CHECK(documents.count() > 0 || transforms_.empty(), Code::data,
             "{}: transforms = [{}] leave no document: all are dropped, as a function that returns nothing drops them", what(),
             join(spec_.transforms, ", "));
    KF_CHECK(documents.count() > 0, Code::data, "{}: {} holds no document", what(),
             files_.files.size() == 1 ? files_.files.front().path.string() : "none of the " + to_text(files_.files.size()) + " files");
    KF_CHECK(
        !documents.has_mask() || any_counts(documents), Code::data,
        "{}: data.loss_on = \"answers\", and nothing would be learned: no message of the role assistant has a content; learn from all with "
        "data.loss_on = \"all\", or call that role so",
        what());
  }

  /// Up to the first id that counts.
  static bool any_counts(const Documents& documents) {
    std::vector<std::uint8_t> mask(1 << 16);
    for (std::int64_t first = 0; first < documents.tokens(); first += static_cast<std::int64_t>(mask.size())) {
      mask.resize(std::min(mask.size(), static_cast<std::size_t>(documents.tokens() - first)));
      documents.read_mask(first, mask);
      if (std::find(mask.begin(), mask.end(), 1) != mask.end()) {
        return true;
      }
    }
    return false;
  }

  const SourceFiles& files_;
  const SourceSpec& spec_;
  const SourceOptions& options_;
  const config::DataConfig& data_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<std::unique_ptr<Transform>> transforms_;
  std::optional<std::int64_t> eos_;
  std::optional<std::int64_t> bos_;
};

}  // namespace

TokenizedText open_tokenized_text(const SourceFiles& files, const SourceSpec& spec, const SourceOptions& options) {
  return TextOpener(files, spec, options).open();
}

}  // namespace kf
