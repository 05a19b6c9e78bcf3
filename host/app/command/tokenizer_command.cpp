#include <algorithm>
#include <charconv>
#include <deque>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>

#include "app/command/commands.h"
#include "app/command/data_job.h"
#include "app/help/usage.h"
#include "core/error.h"
#include "core/fs.h"
#include "core/input_file.h"
#include "core/log.h"
#include "data/chat/chat_format.h"
#include "data/hub/model.h"
#include "data/read/reader.h"
#include "data/tokenizer/json.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/train.h"

namespace kf {
namespace {

/// The words after a subcommand: options with their values, and the rest.
struct Words {
  std::vector<std::string> rest;
  std::map<std::string, std::vector<std::string>> options;

  bool has(const std::string& name) const { return options.count(name) > 0; }
  std::string value(const std::string& name, const std::string& fallback) const {
    const auto found = options.find(name);
    return found == options.end() ? fallback : found->second.back();
  }
};

/// `with_value` and `flags`: the options there are. "--" ends them: what follows is text, dashes or not.
Words parse(const Arguments& args, const std::vector<std::string>& with_value, const std::vector<std::string>& flags) {
  const auto in = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  Words out;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--") {
      out.rest.insert(out.rest.end(), args.begin() + static_cast<std::ptrdiff_t>(i) + 1, args.end());
      break;
    }
    if (!args[i].starts_with("--")) {
      out.rest.push_back(args[i]);
      continue;
    }
    const std::size_t equals = args[i].find('=');
    const std::string name = args[i].substr(0, equals);
    if (in(flags, name) && equals == std::string::npos) {
      out.options[name].emplace_back();
    } else if (in(with_value, name)) {
      KF_CHECK(equals != std::string::npos || i + 1 < args.size(), Code::config, "{} needs a value", name);
      out.options[name].push_back(equals != std::string::npos ? args[i].substr(equals + 1) : args[++i]);
    } else {
      std::vector<std::string> all = with_value;
      all.insert(all.end(), flags.begin(), flags.end());
      const std::string near = nearest(name, all);
      fail(Code::config, "there is no option '{}'{}; have: {}", name, near.empty() ? "" : "; did you mean '" + near + "'?",
           join(all, ", "));
    }
  }
  return out;
}

std::int64_t integer(const std::string& what, std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  KF_CHECK(error == std::errc() && end == text.data() + text.size() && value >= low && value <= high, Code::config,
           "{}: '{}' is not an integer from {} to {}", what, text, low, high);
  return value;
}

std::unique_ptr<Tokenizer> open_named(const Words& words) {
  KF_CHECK(!words.rest.empty(), Code::config, "no tokenizer was given\n{}", usage::kTokenizer);
  if (words.rest[0] == "bytes") {
    return std::make_unique<ByteTokenizer>();
  }
  return open_named_tokenizer(words.rest[0]);
}

void print_ids(const std::vector<std::uint32_t>& ids, std::string& line) {
  line = "[";
  for (std::size_t i = 0; i < ids.size(); ++i) {
    char digits[12];
    const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), ids[i]);
    line += i == 0 ? "" : ",";
    line.append(digits, end);
  }
  line += "]\n";
  std::cout << line;
}

/// Calls body(line, "standard input, line 3") for each line of standard input that is not blank.
void each_line(const std::function<void(const std::string&, const std::string&)>& body) {
  std::ios::sync_with_stdio(false);
  std::string line;
  for (std::int64_t number = 1; std::getline(std::cin, line); ++number) {
    if (!trim(line).empty()) {
      body(line, format("standard input, line {}", number));
    }
  }
}

int encode(const Arguments& args) {
  const Words words = parse(args, {"--file", "--special"}, {"--jsonl", "--add-special"});
  KF_CHECK(words.rest.size() <= 2, Code::config, "one text at a time, got '{}' and '{}'; quote it", words.rest[1], words.rest[2]);
  const std::size_t sources = (words.rest.size() == 2 ? 1U : 0U) + words.options.count("--file") + words.options.count("--jsonl");
  KF_CHECK(sources <= 1, Code::config, "the text is an argument, --file or --jsonl: one of them");
  const EncodeOptions options{special_text_named(words.value("--special", "special")),
                              words.has("--add-special") ? Surround::text : Surround::nothing};
  const std::unique_ptr<Tokenizer> tokenizer = open_named(words);
  std::vector<std::uint32_t> ids;
  std::string out;
  const auto put = [&](std::string_view text) {
    ids.clear();
    tokenizer->append(text, ids, options);
    print_ids(ids, out);
  };
  if (words.has("--jsonl")) {
    each_line([&](const std::string& line, const std::string& where) {
      try {
        put(json::parse_string(line, where));
      } catch (Error& error) {
        throw error.context("at " + where);
      }
    });
  } else if (words.has("--file")) {
    put(read_input(words.value("--file", ""), Code::data));
  } else if (words.rest.size() == 2) {
    put(words.rest[1]);
  } else {
    put(std::string(std::istreambuf_iterator<char>(std::cin), {}));
  }
  return 0;
}

int decode(const Arguments& args) {
  const Words words = parse(args, {}, {"--jsonl", "--skip-special"});
  const std::unique_ptr<Tokenizer> tokenizer = open_named(words);
  const auto text_of = [&](const std::vector<std::int64_t>& ids) {
    return words.has("--skip-special") ? tokenizer->decode(ids) : tokenizer->decode_with_special(ids);
  };
  if (words.has("--jsonl")) {
    KF_CHECK(words.rest.size() == 1, Code::config, "the ids are arguments or --jsonl: one of them");
    each_line([&](const std::string& line, const std::string& where) {
      const json::Value value = json::parse(line, where);
      const json::Place place(value, where);
      std::vector<std::int64_t> ids;
      for (std::size_t i = 0; i < place.size(); ++i) {
        ids.push_back(place.at(i).as_integer(0, std::int64_t{1} << 32));
      }
      try {
        std::cout << json::quote(text_of(ids)) << '\n';
      } catch (Error& error) {
        throw error.context("at " + where);
      }
    });
    return 0;
  }
  std::vector<std::int64_t> ids;
  for (std::size_t i = 1; i < words.rest.size(); ++i) {
    ids.push_back(integer("an id", words.rest[i], 0, std::int64_t{1} << 32));
  }
  std::cout << text_of(ids) << '\n';
  return 0;
}

int info(const Arguments& args) {
  const Words words = parse(args, {"--format"}, {});
  const std::string style = words.value("--format", "text");
  KF_CHECK(style == "text" || style == "json", Code::config, "--format is text or json, not '{}'", style);
  const std::unique_ptr<Tokenizer> tokenizer = open_named(words);
  const std::vector<std::pair<const char*, std::optional<std::int64_t>>> ids{
      {"bos", tokenizer->bos_id()}, {"eos", tokenizer->eos_id()}, {"pad", tokenizer->pad_id()}};
  if (style == "json") {
    std::cout << "{\"kind\": " << json::quote(tokenizer->summary()) << ", \"vocab_size\": " << tokenizer->vocab_size();
    for (const auto& [name, id] : ids) {
      std::cout << ", \"" << name << "_id\": " << (id ? std::to_string(*id) : "null") << ", \"" << name
                << "_token\": " << (id ? json::quote(tokenizer->token(*id).value_or("")) : "null");
    }
    std::cout << ", \"content_hash\": " << json::quote(tokenizer->content_hash()) << "}\n";
    return 0;
  }
  std::cout << "kind        " << tokenizer->summary() << "\nvocab_size  " << tokenizer->vocab_size() << '\n';
  for (const auto& [name, id] : ids) {
    std::cout << name << "         " << (id ? std::to_string(*id) + "  " + tokenizer->token(*id).value_or("") : "none") << '\n';
  }
  std::cout << "content     sha256 " << tokenizer->content_hash() << '\n';
  return 0;
}

/// The texts of all that is named, by the rules of the data commands.
class TrainingTexts {
 public:
  TrainingTexts(std::vector<std::string> targets, const DataCall& call) : targets_(std::move(targets)), call_(call) {}

  bool next(std::string_view& text) {
    while (reader_ || open_next()) {
      if (reader_->next(record_)) {
        text = record_.text;
        return true;
      }
      reader_.reset();
    }
    return false;
  }
  std::string describe() const { return targets_.size() == 1 ? targets_[0] : targets_[0] + " and the others"; }

 private:
  bool open_next() {
    while (files_.empty()) {
      if (sources_.empty() && !open_target()) {
        return false;
      }
      open_source();
    }
    reader_ = open_records(files_.front(), {}, read_, skipped_);
    files_.pop_front();
    return true;
  }

  bool open_target() {
    if (at_ == targets_.size()) {
      return false;
    }
    call_.target = targets_[at_++];
    job_ = std::make_unique<DataJob>(call_);
    for (DataSource& source : job_->sources(false)) {
      if (!source.spec.path_key.starts_with("eval.")) {  // what a model is judged by is not learned from
        sources_.push_back(std::move(source));
      }
    }
    return true;
  }

  void open_source() {
    const DataSource source = std::move(sources_.front());
    sources_.pop_front();
    const SourceFiles found = find_files(source.spec, job_->config());
    KF_CHECK(!found.tokens, Code::data, "{} holds token files: a tokenizer learns from text", source.what());
    if (!source.spec.transforms.empty()) {
      log::warn("{} is read without its transforms", source.what());
    }
    read_ = source.options.read;
    if (!read_.messages_field.empty() || !read_.completion_field.empty()) {
      read_.chat = make_chat_format(job_->config().data, nullptr);
    }
    files_.assign(found.files.begin(), found.files.end());
  }

  std::vector<std::string> targets_;
  DataCall call_;
  std::size_t at_ = 0;
  std::unique_ptr<DataJob> job_;
  std::deque<DataSource> sources_;
  std::deque<SourceFile> files_;
  ReadOptions read_;
  Skipped skipped_;
  std::unique_ptr<RecordReader> reader_;
  Record record_;
};

int train(const Arguments& args) {
  const auto is_setting = [](const std::string& arg) {
    return arg.starts_with("--") && arg.substr(0, arg.find('=')).find('.') != std::string::npos;
  };
  Arguments options_only;
  std::copy_if(args.begin(), args.end(), std::back_inserter(options_only), [&](const std::string& arg) { return !is_setting(arg); });
  const Words words = parse(options_only, {"--vocab-size", "--out", "--pattern", "--special", "--min-count", "--threads", "--job"}, {});
  KF_CHECK(words.rest.empty() == words.has("--job"), Code::config,
           words.rest.empty() ? "nothing to learn from was given\n{}" : "give files to learn from or --job, one of them\n{}",
           usage::kTokenizer);
  KF_CHECK(words.has("--vocab-size") && words.has("--out"), Code::config, "--vocab-size N and --out FOLDER are needed");
  BpeTraining options;
  options.vocab_size = static_cast<std::uint32_t>(integer("--vocab-size", words.value("--vocab-size", ""), 257, 1 << 24));
  options.min_count = integer("--min-count", words.value("--min-count", "2"), 1, std::int64_t{1} << 60);
  options.threads = static_cast<int>(integer("--threads", words.value("--threads", "0"), 0, 1024));
  const std::string pattern = words.value("--pattern", "cl100k");
  const auto known = scan::pattern_named(pattern);
  KF_CHECK(known && !pattern.starts_with("tiktoken"), Code::config, "--pattern: '{}' is none of gpt2, cl100k, qwen2, o200k, tekken",
           pattern);
  options.pattern = *known;
  if (words.has("--special")) {
    options.special = words.options.at("--special");
  }
  DataCall call;
  std::copy_if(args.begin(), args.end(), std::back_inserter(call.overrides), is_setting);
  std::vector<std::string> targets = words.has("--job") ? std::vector<std::string>{words.value("--job", "")} : words.rest;
  KF_CHECK(!words.has("--job") || targets[0].ends_with(".toml") || targets[0].ends_with(".lua"), Code::config,
           "--job {}: a job is a .toml or .lua file", targets[0]);
  call.files = !words.has("--job");
  TrainingTexts texts(std::move(targets), call);
  const TrainedBpe trained = train_bpe([&](std::string_view& text) { return texts.next(text); }, texts.describe(), options);
  const fs::path folder = words.value("--out", "");
  fs::create_directories(folder);
  write_file_atomic(folder / "tokenizer.json", tokenizer_json(trained, options));
  std::cout << format("{}: {} ids from {} of text ({} pieces, {} of them different)\n", folder / "tokenizer.json", trained.tokens.size(),
                      human_bytes(static_cast<double>(trained.bytes)), grouped(trained.pieces), grouped(trained.different));
  return 0;
}

}  // namespace

int tokenizer_command(const Arguments& args) {
  KF_CHECK(!args.empty(), Code::config, "{}", usage::kTokenizer);
  const Arguments rest(args.begin() + 1, args.end());
  if (args[0] == "encode") {
    return encode(rest);
  }
  if (args[0] == "decode") {
    return decode(rest);
  }
  if (args[0] == "info") {
    return info(rest);
  }
  const std::string near = nearest(args[0], {"encode", "decode", "info", "train"});
  KF_CHECK(args[0] == "train", Code::config, "tokenizer has no command '{}'{}; have: encode, decode, info, train", args[0],
           near.empty() ? "" : "; did you mean '" + near + "'?");
  return train(rest);
}

}  // namespace kf
