#include "data/source/tokenized_text.h"

#include <algorithm>

#include "config/schema/config.h"
#include "core/error.h"
#include "core/log.h"
#include "core/sha256.h"
#include "data/cache/cache.h"
#include "data/cache/cached_documents.h"
#include "data/cache/memory.h"
#include "data/chat/chat_format.h"
#include "data/documents/text_documents.h"
#include "data/documents/text_source.h"
#include "data/read/settings.h"
#include "data/source/transform.h"
#include "data/tokenizer/tokenizer.h"
#include "registry/registries.h"

namespace kf {
namespace {

constexpr const char* kChats = "chats 1";  // a change of how chats are written makes other caches

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
        bos_(begin_id()),
        read_(options.read) {
    KF_CHECK(data_.special_tokens != "special" || tokenizer_->reads_special(), Code::config,
             "data.special_tokens = \"special\" has no effect: the tokenizer {} never reads special tokens from text; leave it out",
             bytes() ? "of bytes" : kf::quoted(data_.tokenizer_path));
    read_.chat = may_hold_chats() ? make_chat_format(data_, tokenizer_.get()) : nullptr;
    KF_CHECK(!read_.answers_only || transforms_.empty(), Code::config,
             "data.loss_on = \"{}\" needs to know where the answers stand, and transforms = [{}] change the text; leave one of them out",
             data_.loss_on, join(spec_.transforms, ", "));
    KF_CHECK(transforms_.empty() || !writes_special(), Code::config,
             "transforms = [{}] change the text, and then nobody knows which special tokens in it the format wrote; leave one of them out",
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
    if (read_.chat && read_.chat->dropped_calls() > 0) {
      log::warn(
          "{}: {} messages call tools, which data.message_format leaves out; data.tool_calls = \"json\" writes them, and a "
          "data.chat_template writes them its own way",
          what(), grouped(read_.chat->dropped_calls()));
    }
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
    return bytes() && transforms_.empty() && read_.messages_field.empty() && read_.text_template.empty() &&
           read_.completion_field.empty() && std::all_of(files_.files.begin(), files_.files.end(), [](const SourceFile& file) {
             return file.kind == FileKind{} && file.remote == nullptr;
           });
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

  bool may_hold_chats() const { return !read_.messages_field.empty() || !read_.completion_field.empty(); }

  /// Whether a format or template writes special tokens.
  bool writes_special() const {
    for (const std::string& text : {read_.text_template, read_.prompt_template, read_.chat ? read_.chat->source() : std::string()}) {
      std::vector<std::uint32_t> ids;
      if (tokenizer_->append(text, ids, {}) > 0) {
        return true;
      }
    }
    return false;
  }

  cache::CacheRequest request() {
    cache::CacheRequest request;
    request.dir = cache::cache_folder(data_.cache_dir);
    request.files = &files_;
    request.source = what();
    request.read = read_;
    request.encode.tokenizer = tokenizer_.get();
    request.encode.options.special = special_text_named(data_.special_tokens);
    if (writes_chats(read_) && request.encode.options.special == SpecialText::special) {
      request.encode.options.special = SpecialText::text;  // the format's are tokens anyway, and what is said never is
    }
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
    out["data.loss_on"] = read.answers_only ? "answers" : "all";
    if (read.chat) {
      out["data.chat"] = chat_key(read);
    }
    if (!read.messages_field.empty()) {
      out["data.messages_field"] = read.messages_field;
    } else if (!read.completion_field.empty()) {
      out["data.prompt_field"] = read.prompt_field;
      out["data.prompt_template"] = read.prompt_template;
      out["data.completion_field"] = read.completion_field;
    } else if (!read.text_template.empty()) {
      out["data.text_template"] = read.text_template;
    } else {
      out["data.hf_dataset_text_field"] = read.text_field;
    }
    out["data.special_tokens"] = request.encode.options.special == SpecialText::text ? "text" : data_.special_tokens;
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

  /// How chats are read and written.
  std::string chat_key(const ReadOptions& read) const {
    const std::string& args = data_.chat_template_args;
    return Sha256()
        .add(format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n", kChats, read.role_field, read.content_field, join(data_.answer_roles, "\n"),
                    data_.tool_calls, read.prompt_as_chat, read.chat->is_template() ? read.tools_field + args : "",
                    read.chat->is_template()))
        .add(read.chat->source())
        .hex();
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
        "{}: data.loss_on = \"answers\", and nothing would be learned: no answer ({}) has a content; learn from all with data.loss_on = "
        "\"all\", or name the roles that answer in data.answer_roles",
        what(), read_.messages_field.empty() ? "data.completion_field" : "a message of the role " + join(data_.answer_roles, " or "));
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
  ReadOptions read_;
};

}  // namespace

TokenizedText open_tokenized_text(const SourceFiles& files, const SourceSpec& spec, const SourceOptions& options) {
  return TextOpener(files, spec, options).open();
}

}  // namespace kf
