#include "data/source.h"

#include <algorithm>

#include "config/config.h"
#include "core/error.h"
#include "core/text.h"
#include "data/digest.h"
#include "data/stream_dataset.h"
#include "data/text_documents.h"
#include "data/token_dataset.h"
#include "data/tokenizer/tokenizer.h"
#include "data/transform.h"

namespace kf {
namespace {

struct Found {
  std::vector<fs::path> files;
  fs::path root;       // names are relative to it
  bool named = false;  // the path is the file
};

bool is_token_name(const fs::path& path) {
  const std::string suffix = lower(path.extension().string());
  return suffix == ".npy" || suffix == ".bin";
}

/// What else lies in a folder where nothing matched.
std::string other_files(const fs::path& folder, const SourceSpec& spec) {
  const std::vector<fs::path> all = glob(folder, "**");
  if (all.empty()) {
    return "the folder holds no files";
  }
  const fs::path name = all.front().lexically_relative(folder);
  const std::string suffix = all.front().extension().string();
  return format("it holds {} other {}, such as {}; set {} = \"**/*{}\" to read these", grouped(static_cast<std::int64_t>(all.size())),
                all.size() == 1 ? "file" : "files", name, spec.pattern_key, suffix);
}

Found find_files(const SourceSpec& spec) {
  const fs::path path(spec.path);
  std::error_code ignored;
  KF_CHECK(fs::exists(path, ignored), Code::data, "{} = \"{}\": no such file or folder", spec.path_key, spec.path);
  if (!fs::is_directory(path)) {
    return {{path}, path.has_parent_path() ? path.parent_path() : fs::path("."), true};
  }
  Found found{glob(path, spec.pattern), path, false};
  KF_CHECK(!found.files.empty(), Code::data, "no files match {} = \"{}\" in {} ({}); {}", spec.pattern_key, spec.pattern, path,
           spec.path_key, other_files(path, spec));
  return found;
}

/// Whether the files are tokens; throws when some are and some are not.
bool are_tokens(const Found& found, const SourceSpec& spec) {
  const auto token = std::find_if(found.files.begin(), found.files.end(), is_token_name);
  const auto text = std::find_if_not(found.files.begin(), found.files.end(), is_token_name);
  KF_CHECK(token == found.files.end() || text == found.files.end(), Code::data,
           "{} = \"{}\" in {} matches token files ({}) and others ({}); narrow it to one kind, as with \"**/*{}\"", spec.pattern_key,
           spec.pattern, spec.path, token->lexically_relative(found.root), text->lexically_relative(found.root), token->extension());
  return token != found.files.end();
}

OpenSource open_tokens(const Found& found, const SourceSpec& spec, const SourceOptions& options, const SourcePart& part) {
  KF_CHECK(
      part.holdout == 0, Code::data,
      "data.holdout = {} keeps documents of text for evaluation, but {} = \"{}\" holds token files, which have none; set data.holdout = 0 "
      "and give eval.dataset_path",
      part.holdout, spec.path_key, spec.path);
  const TokenFileOptions file_options{options.token_type, options.vocab_size};
  KF_CHECK(spec.transforms.empty(), Code::data,
           "{} = \"{}\" holds token files, and transforms work on documents of text; leave transforms = [\"{}\"] out", spec.path_key,
           spec.path, spec.transforms.front());
  return {std::make_unique<TokenDataset>(found.files, found.root, options.window, file_options), false, std::nullopt};
}

/// In memory: of tokenizers in Lua.
DocumentsPtr encode(const TextCorpus& corpus, const Tokenizer& tokenizer, const SourceOptions& options, const std::string& what) {
  const std::string& name = options.config->data.tokenizer_path;
  const std::optional<std::int64_t> eos = tokenizer.eos_id();
  auto documents = std::make_shared<MemoryDocuments>();
  for (const Document& document : corpus.documents) {
    std::vector<std::int64_t> ids = tokenizer.encode(document.text);
    for (const std::int64_t id : ids) {
      KF_CHECK(id >= 0 && id < options.vocab_size, Code::data, "{}: the tokenizer {} gives the id {}, and model.vocab_size is {}", what,
               kf::quoted(name), id, options.vocab_size);
    }
    if (eos && document.ends) {
      ids.push_back(*eos);
    }
    documents->add(ids, hash64(document.text));
  }
  documents->set_description(format("{} {}, {} of text, {} tokens ({})", grouped(corpus.files), corpus.files == 1 ? "file" : "files",
                                    human_bytes(corpus.bytes), grouped(documents->tokens()), name));
  return documents;
}

OpenSource open_text(const Found& found, const SourceSpec& spec, const SourceOptions& options, const SourcePart& part) {
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(*options.config, options.registries);
  const std::string hint = found.named ? "; text and token files (.npy, .bin) can be read"
                                       : "; narrow " + spec.pattern_key + " = " + kf::quoted(spec.pattern) + " to leave it out";
  TextCorpus corpus = read_text(found.files, found.root, options.text_field, hint);
  KF_CHECK(!corpus.documents.empty(), Code::data, "{} = \"{}\": {} holds no document", spec.path_key, spec.path,
           found.files.size() == 1 ? "the file" : "none of the files");
  const std::string what = spec.path_key + " = " + kf::quoted(spec.path);
  if (!spec.transforms.empty()) {
    corpus = transform(std::move(corpus), spec.transforms, *options.config, options.registries);
    KF_CHECK(!corpus.documents.empty(), Code::data, "{}: transforms = [{}] leave no document", what, join(spec.transforms, ", "));
  }
  DocumentsPtr documents;
  if (options.config->data.tokenizer_path.empty()) {
    documents = std::make_shared<TextDocuments>(std::move(corpus));
  } else {
    documents = encode(corpus, *tokenizer, options, what);
  }
  if (part.holdout > 0) {
    documents = take_side(std::move(documents), part.holdout, part.side, options.window);
  }
  return {std::make_unique<StreamDataset>(documents, options.window, what), true, tokenizer->eos_id(), documents};
}

}  // namespace

SourceOptions source_options(const config::Config& config, const Registries* registries) {
  SourceOptions options;
  options.config = &config;
  options.registries = registries;
  options.window = config.train.seq_len + 1;
  options.vocab_size = config.model.vocab_size;
  options.text_field = config.data.hf_dataset_text_field;
  if (config.data.token_dtype) {
    options.token_type = token_type_named(*config.data.token_dtype);
  }
  return options;
}

OpenSource open_source(const SourceSpec& spec, const SourceOptions& options, const SourcePart& part) {
  const Found found = find_files(spec);
  return are_tokens(found, spec) ? open_tokens(found, spec, options, part) : open_text(found, spec, options, part);
}

}  // namespace kf
