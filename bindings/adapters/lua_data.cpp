#include "bindings/adapters/lua_data.h"

#include <ATen/ATen.h>

#include "bindings/adapters/callback.h"
#include "bindings/adapters/kept_state.h"
#include "bindings/session/factory.h"
#include "bindings/tensor/tensor.h"
#include "bindings/value/ids.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "config/tree/json.h"
#include "core/digest.h"
#include "core/text.h"
#include "data/sequence/batch.h"
#include "data/sequence/dataset.h"
#include "data/source/transform.h"
#include "data/tokenizer/tokenizer.h"

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
      kept_ = keep_state_of(L, lua_gettop(L), where_);
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
  PartStates::Handle kept_;
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

/// What documents and batches have; what only the other one has is named when a script asks for it.
struct Fields {
  const char* what;
  const char* names;  // between blanks
  const char* other;  // fields of the other, between blanks
  const char* hint;
};
constexpr Fields kDocumentFields{"a document", " text ", " tokens labels doc_ids index samples sources training ",
                                 "a transform of batches is named in data.batch_transforms, not in transforms of a source"};
constexpr Fields kBatchFields{"a batch", " tokens labels doc_ids index samples sources training ", " text ",
                              "a transform of documents is named in transforms of a source (data.datasets), not in data.batch_transforms"};

/// __index of documents and batches; upvalue 1 is their Fields.
int unknown_field(lua_State* L) {
  const auto& fields = *static_cast<const Fields*>(lua_touserdata(L, lua_upvalueindex(1)));
  if (lua_type(L, 2) == LUA_TSTRING) {
    const std::string name = lua_tostring(L, 2);
    KF_CHECK(std::string_view(fields.other).find(" " + name + " ") == std::string_view::npos, Code::script, "{} has no '{}': {}",
             fields.what, name, fields.hint);
  }
  lua_pushnil(L);  // scripts may keep fields of their own in it
  return 1;
}

/// Gives the table on top the metatable of such a thing.
void push_fields(lua_State* L, const Fields& fields) {
  lua_createtable(L, 0, 1);
  lua_pushlightuserdata(L, const_cast<Fields*>(&fields));
  lua_pushcclosure(L, &guarded<unknown_field>, 1);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
}

/// { tokens, labels, doc_ids, index, samples, sources, training }; the tensors are the batch's own.
void push_batch(lua_State* L, const Batch& batch, const BatchInfo& info) {
  lua_createtable(L, 0, 7);
  const std::pair<const char*, const at::Tensor&> tensors[] = {
      {"tokens", batch.tokens}, {"labels", batch.labels}, {"doc_ids", batch.doc_ids}};
  for (const auto& [name, tensor] : tensors) {
    if (tensor.defined()) {
      push_tensor(L, tensor);
      lua_setfield(L, -2, name);
    }
  }
  set(L, "index", static_cast<double>(info.index));
  lua_pushboolean(L, info.training);
  lua_setfield(L, -2, "training");
  lua_createtable(L, static_cast<int>(batch.samples.size()), 0);
  for (std::size_t i = 0; i < batch.samples.size(); ++i) {
    push_integer(L, batch.samples[i], "the sample's number");
    lua_rawseti(L, -2, static_cast<int>(i + 1));
  }
  lua_setfield(L, -2, "samples");
  if (!batch.sources.empty()) {
    lua_createtable(L, static_cast<int>(batch.sources.size()), 0);
    for (std::size_t i = 0; i < batch.sources.size(); ++i) {
      push(L, std::string_view(info.source_names.at(static_cast<std::size_t>(batch.sources[i]))));
      lua_rawseti(L, -2, static_cast<int>(i + 1));
    }
    lua_setfield(L, -2, "sources");
  }
  push_fields(L, kBatchFields);
}

class LuaTransform final : public Transform {
 public:
  LuaTransform(std::string where, FunctionPart part, std::string hash, std::int64_t vocab_size)
      : where_(std::move(where)), part_(std::move(part)), hash_(std::move(hash)), vocab_size_(vocab_size) {}

  std::string content_hash() const override { return hash_; }

  bool apply(std::string& text) override {
    const auto push_document = [&](lua_State* L) {
      lua_createtable(L, 0, 1);
      set(L, "text", std::string_view(text));
      push_fields(L, kDocumentFields);
      return 1;
    };
    return call_part(part_.function, where_, "", push_document, [&](lua_State* L) { return take(L, text); });
  }

  void apply(Batch& batch, const BatchInfo& info) override {
    call_part(
        part_.function, where_, format(", micro-batch {}{}", info.index, info.training ? "" : " of an evaluation"),
        [&](lua_State* L) {
          push_batch(L, batch, info);
          return 1;
        },
        [&](lua_State* L) {
          take(L, batch);
          return true;
        });
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

  /// The table on top as a batch; `batch` has the one that was given.
  void take(lua_State* L, Batch& batch) const {
    KF_CHECK(lua_istable(L, -1), Code::script,
             "{} must return a batch (a table with tokens and labels), got {}; labels:fill_({}) makes one count for nothing", where_,
             describe_any(L, lua_gettop(L)), kIgnore);
    const int table = lua_gettop(L);
    const std::int64_t rows = batch.tokens.size(0);
    batch.tokens = take_ids(L, table, "tokens", rows, 0);
    batch.labels = take_ids(L, table, "labels", rows, batch.tokens.size(1));
    lua_pushliteral(L, "doc_ids");
    lua_rawget(L, table);
    if (!lua_isnil(L, -1)) {
      batch.doc_ids = take_ids(L, table, "doc_ids", rows, batch.tokens.size(1));
    } else {
      KF_CHECK(!batch.doc_ids.defined(), Code::script, "{}: the batch it returns lacks doc_ids, which say what lies in one document",
               where_);
    }
    batch.counted = batch.labels.ne(kIgnore).sum().item<std::int64_t>();
  }

  /// batch[name], (rows, length) int64; any length where it is 0.
  at::Tensor take_ids(lua_State* L, int table, const char* name, std::int64_t rows, std::int64_t length) const {
    lua_pushstring(L, name);
    lua_rawget(L, table);
    const at::Tensor* const tensor = tensor_at(L, -1);
    const auto shape_text = [&] { return format("({}, {})", rows, length > 0 ? to_text(length) : "any length"); };
    KF_CHECK(tensor != nullptr && tensor->scalar_type() == at::kLong && tensor->dim() == 2 && tensor->size(0) == rows &&
                 tensor->size(1) > 0 && (length == 0 || tensor->size(1) == length),
             Code::script, "{}: {} of the batch it returns must be int64 {}, got {}", where_, name, shape_text(),
             describe_any(L, lua_gettop(L)));
    at::Tensor ids = tensor->detach().contiguous();
    if (name != std::string_view("doc_ids")) {
      const auto [least, most] = at::aminmax(name == std::string_view("labels") ? ids.masked_fill(ids.eq(kIgnore), 0) : ids);
      KF_CHECK(least.item<std::int64_t>() >= 0 && most.item<std::int64_t>() < vocab_size_, Code::script,
               "{}: {} of the batch it returns must be ids from 0 to {} (model.vocab_size - 1){}, got {} to {}", where_, name,
               vocab_size_ - 1, name == std::string_view("labels") ? format(", or {} for none", kIgnore) : "", least.item<std::int64_t>(),
               most.item<std::int64_t>());
    }
    lua_pop(L, 1);
    return ids;
  }

  std::string where_;
  FunctionPart part_;
  std::string hash_;
  std::int64_t vocab_size_;
};

class LuaTokenizer final : public Tokenizer {
 public:
  LuaTokenizer(std::string where, const Ref& table, std::string hash) : where_(std::move(where)), hash_(std::move(hash)) {
    table.runtime().protect([&](lua_State* L) {
      table.push(L);
      kept_ = keep_state_of(L, lua_gettop(L), where_);
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
  PartStates::Handle kept_;
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
    FunctionPart part = build_function(*factory, where, args, {}, "a function(doc) that gives the document or nil, or function(batch)");
    return std::make_unique<LuaTransform>(where, std::move(part), part_hash(session, *factory, where, args), args.config.model.vocab_size);
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
