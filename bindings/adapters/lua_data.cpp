#include "bindings/adapters/lua_data.h"

#include "bindings/adapters/callback.h"
#include "bindings/adapters/factory.h"
#include "bindings/ids.h"
#include "bindings/stack.h"
#include "config/json.h"
#include "core/text.h"
#include "data/dataset.h"
#include "data/digest.h"
#include "data/tokenizer/tokenizer.h"
#include "data/transform.h"

namespace kf::lua {
namespace {

bool is_table(lua_State* L, int index) { return lua_istable(L, index); }

/// The whole number `name` of the table on top.
std::int64_t take_count(lua_State* L, const char* name, std::int64_t least, const std::string& where) {
  lua_getfield(L, -1, name);
  const auto value = exact_integer(L, -1);
  KF_CHECK(value && *value >= least, Code::script, "{}: '{}' must be a whole number from {} on, got {}", where, name, least,
           describe(L, -1));
  lua_pop(L, 1);
  return *value;
}

class LuaDataset final : public Dataset {
 public:
  LuaDataset(std::string name, std::string where, const Ref& table, std::int64_t vocab_size)
      : name_(std::move(name)), where_(std::move(where)), vocab_size_(vocab_size) {
    table.runtime().protect([&](lua_State* L) {
      table.push(L);
      size_ = take_count(L, "size", 1, where_);
      get_ = take_method(L, "get", where_);
    });
  }

  std::int64_t size() const override { return size_; }
  bool any_thread() const override { return false; }  // Lua has one
  void get(std::int64_t index, std::span<std::int64_t> window) const override {
    call_part(
        get_, where_, format(", get({})", index),
        [&](lua_State* L) {
          push_integer(L, index, "the sample's number");
          return 1;
        },
        [&](lua_State* L) {
          read_ids(L, -1, window, vocab_size_, format("{}: get({})", where_, index));
          return true;
        });
  }
  std::string describe() const override { return format("{} samples of '{}'", grouped(size_), name_); }
  std::string fingerprint() const override {
    Digest digest;
    digest.add(name_);
    digest.add(to_text(size_));
    return digest.hex();
  }

 private:
  std::string name_;
  std::string where_;
  std::int64_t vocab_size_;
  std::int64_t size_ = 0;
  Ref get_;
};

/// Of what decides what a part does: the script with all that it loaded, its strings behind --, the part's name and options. What a part
/// reads elsewhere (files, the time) is not seen. "" where there is no script file, as at a prompt.
std::string part_hash(const Session& session, const Ref& part, const std::string& where, const PartArgs& args) {
  const std::string script = session.script_digest(part.runtime());
  if (script.empty()) {
    return {};
  }
  Digest digest;
  digest.add(script);
  digest.add(where.substr(where.rfind(':') + 1));  // "12: transform 'x'" without the place of the script
  digest.add(config::to_json(config::Node(args.options)));
  for (const std::string& argument : session.arguments) {
    digest.add(argument);
  }
  return digest.hex();
}

class LuaTransform final : public Transform {
 public:
  LuaTransform(std::string where, Ref function, std::string hash)
      : where_(std::move(where)), function_(std::move(function)), hash_(std::move(hash)) {}

  std::string content_hash() const override { return hash_; }

  bool apply(std::string& text) override {
    const auto push_document = [&](lua_State* L) {
      lua_createtable(L, 0, 1);
      set(L, "text", std::string_view(text));
      return 1;
    };
    return call_part(function_, where_, "", push_document, [&](lua_State* L) { return take(L, text); });
  }

 private:
  bool take(lua_State* L, std::string& text) const {
    if (lua_isnil(L, -1)) {
      return false;
    }
    KF_CHECK(lua_istable(L, -1), Code::script, "{} must return a document (a table with text) or nil, got {}", where_, describe(L, -1));
    lua_getfield(L, -1, "text");
    text = check_text(L, -1, where_ + ": the document it returns", "text");
    return true;
  }

  std::string where_;
  Ref function_;
  std::string hash_;
};

class LuaTokenizer final : public Tokenizer {
 public:
  LuaTokenizer(std::string where, const Ref& table, std::string hash) : where_(std::move(where)), hash_(std::move(hash)) {
    table.runtime().protect([&](lua_State* L) {
      table.push(L);
      encode_ = take_method(L, "encode", where_);
      decode_ = take_method(L, "decode", where_);
      vocab_size_ = take_count(L, "vocab_size", 1, where_);
      lua_getfield(L, -1, "eos_id");
      if (!lua_isnil(L, -1)) {
        eos_id_ = exact_integer(L, -1);
        KF_CHECK(eos_id_ && *eos_id_ >= 0 && *eos_id_ < vocab_size_, Code::script,
                 "{}: 'eos_id' must be an id below vocab_size ({}), got {}", where_, vocab_size_, describe(L, -1));
      }
    });
  }

  std::vector<std::int64_t> encode(std::string_view text) const override {
    return call_part(
        encode_, where_, ", encode()",
        [&](lua_State* L) {
          push(L, text);
          return 1;
        },
        [&](lua_State* L) { return read_ids(L, -1, vocab_size_, where_ + ": encode()"); });
  }
  std::string decode(std::span<const std::int64_t> ids) const override {
    return call_part(
        decode_, where_, ", decode()",
        [&](lua_State* L) {
          push_ids(L, ids);
          return 1;
        },
        [&](lua_State* L) { return check_text(L, -1, where_ + ": decode()", "the text to come back"); });
  }
  std::int64_t vocab_size() const override { return vocab_size_; }
  std::optional<std::int64_t> eos_id() const override { return eos_id_; }
  std::string content_hash() const override { return hash_; }

 private:
  std::string where_;
  std::string hash_;
  Ref encode_;
  Ref decode_;
  std::int64_t vocab_size_ = 0;
  std::optional<std::int64_t> eos_id_;
};

}  // namespace

void add_dataset(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("dataset", info);
  const auto factory = take_factory(L, 2, "dataset");
  const std::string name = info.name;
  session.registries.dataset.add(
      std::move(info), [factory, where, name](const PartArgs& args, std::int64_t seq_len) -> std::unique_ptr<Dataset> {
        const auto fill = [&](lua_State* state) { set(state, "seq_len", static_cast<double>(seq_len)); };
        const Ref table = build(*factory, where, args, fill, "a table { size = n, get = function(i) ... end }", is_table);
        return std::make_unique<LuaDataset>(name, where, table, args.config.model.vocab_size);
      });
}

void add_transform(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("transform", info);
  const auto factory = take_factory(L, 2, "transform");
  session.registries.transform.add(std::move(info), [factory, where, &session](const PartArgs& args) -> std::unique_ptr<Transform> {
    Ref function = build(*factory, where, args, {}, "a function(doc) that gives the document, or nil", is_callable);
    return std::make_unique<LuaTransform>(where, std::move(function), part_hash(session, *factory, where, args));
  });
}

void add_tokenizer(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("tokenizer", info);
  const auto factory = take_factory(L, 2, "tokenizer");
  session.registries.tokenizer.add(std::move(info), [factory, where, &session](const PartArgs& args) -> std::unique_ptr<Tokenizer> {
    const Ref table = build(*factory, where, args, {}, "a table { encode, decode, vocab_size, eos_id }", is_table);
    return std::make_unique<LuaTokenizer>(where, table, part_hash(session, *factory, where, args));
  });
}

}  // namespace kf::lua
