#include "bindings/adapters/lua_layers.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "bindings/adapters/lua_part.h"
#include "bindings/nn/context_box.h"
#include "bindings/nn/recompute_call.h"
#include "bindings/session/factory.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/stack.h"
#include "config/plan/derived.h"
#include "core/log.h"
#include "core/text.h"
#include "model/layer/adapter.h"
#include "model/layer/attention.h"
#include "model/layer/mlp.h"
#include "model/layer/norm.h"
#include "model/layer/place.h"
#include "model/layer/runs_whole.h"
#include "model/layer/visibility.h"
#include "model/model.h"
#include "model/moe/moe.h"
#include "model/moe/moe_book.h"
#include "model/observe.h"
#include "model/transformer/block.h"

namespace kf::lua {
namespace {

/// An adapter has the children and names of the module that it wraps.
template <class Base>
class Wrapped : public Base {
 public:
  explicit Wrapped(LuaPart part) : part_(std::move(part)) {
    if (part_.module()) {
      this->add_child("", part_.module());
    }
  }

 protected:
  const LuaPart& part() const { return part_; }

 private:
  LuaPart part_;
};

std::string join_sizes(const at::Tensor& tensor) {
  std::vector<std::string> words;
  for (const std::int64_t size : tensor.sizes()) {
    words.push_back(std::to_string(size));
  }
  return join(words, ", ");
}

/// Also where no WholeMlp is around it: as an expert, and beside experts.
class LuaMlp final : public Wrapped<Mlp>, public RunsWhole {
 public:
  using Wrapped::Wrapped;
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const override {
    const ForwardUnderWay under_way(context);  // for layers of experts inside
    return observed(*this, x, part().call(x, nullptr));
  }
};

class LuaNorm final : public Wrapped<Norm> {
 public:
  using Wrapped::Wrapped;
  at::Tensor forward(const at::Tensor& x) const override { return observed(*this, x, part().call(x, nullptr)); }
};

/// What it gives must be linear in x to be merged: it is asked what it gives for each unit vector.
class LuaAdapter final : public Wrapped<LinearAdapter> {
 public:
  LuaAdapter(LuaPart part, AdapterPlace place) : Wrapped(std::move(part)), place_(std::move(place)) {}
  at::Tensor delta(const at::Tensor& x) const override {
    at::Tensor y = part().call_free(x, nullptr);
    std::vector<std::int64_t> shape = x.sizes().vec();
    shape.back() = place_.out;
    KF_CHECK(y.sizes() == shape && y.scalar_type() == x.scalar_type(), Code::script,
             "{} must give {} numbers of type {} a position for {}, got {} of shape {}", part().where(), place_.out,
             c10::toString(x.scalar_type()), place_.layer, c10::toString(y.scalar_type()), format("({})", join_sizes(y)));
    return y;
  }
  at::Tensor merged(const at::Tensor& weight) const override {
    const at::Tensor units = at::eye(place_.in, weight.options());
    const at::Tensor each = delta(units);
    KF_CHECK(at::allclose(delta(units * 2), each * 2, 1e-4, 1e-6), Code::script,
             "{} is not linear in its input, so it cannot be merged into the weight of {}", part().where(), place_.layer);
    return weight + each.t();
  }
  void split(Split how, std::int64_t /*unit*/, const TensorRanks& ranks) override {
    if (!ranks.many()) {
      return;
    }
    KF_CHECK(
        how == Split::sequence || how == Split::replicate, Code::config,
        "{} cannot stand beside {}, of which distributed.tp = {} gives each rank a part: what the adapter gives would be whole. Leave the "
        "layer out of adapter.targets, use adapter.name = \"lora\", or distributed.tp = 1",
        part().where(), place_.layer, ranks.size());
    for (const auto& [name, weight] : named_parameters()) {
      weight->split = how;  // whole, and its gradient is a share where the layer's is
    }
  }

 private:
  AdapterPlace place_;
};

/// The native attentions below a module, depth first.
void find_attentions(const Module& module, std::vector<const Attention*>& found) {
  for (const auto& [name, child] : module.children()) {
    if (const auto* attention = dynamic_cast<const Attention*>(child.get())) {
      found.push_back(attention);
    } else {
      find_attentions(*child, found);
    }
  }
}

/// Whether there is one native attention, which knows the kept keys and values of its layer.
bool keeps_inside(const Module& module) {
  std::vector<const Attention*> found;
  find_attentions(module, found);
  return found.size() == 1 && found.front()->has_cache();
}

/// A part in Lua keeps what the one native attention inside of it keeps.
KvCache::Layer cache_inside(const Module& module, const std::string& where, std::int64_t batch, std::int64_t capacity,
                            const at::Tensor& like) {
  std::vector<const Attention*> found;
  find_attentions(module, found);
  KF_CHECK(found.size() == 1, Code::config, "{} has {} native attentions; a model generates with blocks that have exactly one", where,
           found.size());
  return found.front()->make_cache(batch, capacity, like);
}

/// Whether what the native attentions inside keep of a text stays right when it grows.
bool keeps_cache_inside(const Module& module, std::int64_t length, std::int64_t longer) {
  std::vector<const Attention*> found;
  find_attentions(module, found);
  return std::all_of(found.begin(), found.end(), [&](const Attention* one) { return one->keeps_cache(length, longer); });
}

class LuaAttention final : public Wrapped<Attention> {
 public:
  using Wrapped::Wrapped;
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const override {
    return observed(*this, x, part().call(x, &context));
  }
  KvCache::Layer make_cache(std::int64_t batch, std::int64_t capacity, const at::Tensor& like) const override {
    return cache_inside(*this, part().where(), batch, capacity, like);
  }
  bool has_cache() const override { return keeps_inside(*this); }
  bool keeps_cache(std::int64_t length, std::int64_t longer) const override { return keeps_cache_inside(*this, length, longer); }
};

class LuaBlock final : public Wrapped<Block> {
 public:
  using Wrapped::Wrapped;
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const override {
    return observed(*this, x, part().call(x, &context));
  }
  KvCache::Layer make_cache(std::int64_t batch, std::int64_t capacity, const at::Tensor& like) const override {
    return cache_inside(*this, part().where(), batch, capacity, like);
  }
  bool has_cache() const override { return keeps_inside(*this); }
  bool keeps_cache(std::int64_t length, std::int64_t longer) const override { return keeps_cache_inside(*this, length, longer); }
};

class LuaModel final : public Wrapped<Model> {
 public:
  LuaModel(LuaPart part, const config::Config& config)
      : Wrapped(std::move(part)),
        vocab_(config.model.vocab_size),
        wants_recompute_(config.train.activation_checkpointing != "none"),
        experts_(*this) {}

  at::Tensor forward(const at::Tensor& tokens, ForwardContext& context) override {
    const std::int64_t past = context.cache != nullptr ? context.cache->filled : 0;
    context.visible = context.doc_ids.defined()
                          ? std::make_shared<const Visibility>(context.doc_ids)
                          : std::make_shared<const Visibility>(past, tokens.size(1), tokens.device(), at::Tensor(), context.lengths);
    const std::int64_t recomputed = recompute_calls();
    at::Tensor logits = part().call_free(tokens, &context);
    if (std::exchange(wants_recompute_, wants_recompute_ && !training()) && training() && recompute_calls() == recomputed) {
      log::warn("{}: train.activation_checkpointing has no effect, since its forward calls no nn.recompute", part().where());
    }
    const bool fits = logits.dim() == 3 && logits.size(0) == tokens.size(0) && logits.size(1) == tokens.size(1) && logits.size(2) == vocab_;
    KF_CHECK(fits, Code::script, "{}: forward must return logits ({}, {}, {}) for tokens {}, got {}", part().where(), tokens.size(0),
             tokens.size(1), vocab_, tensor_text(tokens), tensor_text(logits));
    if (context.cache != nullptr) {
      context.cache->filled += tokens.size(1);
    }
    return logits;
  }

  StepBook* book() override { return &experts_; }

  bool has_cache() const override {
    std::vector<const Attention*> found;
    find_attentions(*this, found);
    return !found.empty() && std::all_of(found.begin(), found.end(), [](const Attention* one) { return one->has_cache(); });
  }
  bool keeps_cache(std::int64_t length, std::int64_t longer) const override { return keeps_cache_inside(*this, length, longer); }
  KvCache make_cache(std::int64_t batch, std::int64_t capacity) override {
    std::vector<const Attention*> found;
    find_attentions(*this, found);
    KF_CHECK(!found.empty(), Code::config, "{} has no native attention, so it keeps no keys and values and cannot generate",
             part().where());
    const ParameterList parameters = this->parameters();
    KvCache cache;
    cache.capacity = capacity;
    for (const Attention* attention : found) {
      cache.layers.push_back(attention->make_cache(batch, capacity, parameters.front()->value));
    }
    return cache;
  }

 private:
  std::int64_t vocab_;
  bool wants_recompute_;  // until its first training forward has been looked at
  MoeBook experts_;       // of nn.moe inside
};

}  // namespace

void add_mlp(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("mlp", info);
  const auto factory = take_factory(L, 2, "mlp");
  session.registries.mlp.add(std::move(info), [factory, where](const PartArgs& args, const Place& place) -> std::shared_ptr<Mlp> {
    return std::make_shared<LuaMlp>(call_factory(*factory, where, args, place, [&](lua_State* state) {
      set_count(state, "dim", place.dim);
      set_count(state, "hidden_dim", place.hidden);
    }));
  });
}

void add_norm(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("norm", info);
  const auto factory = take_factory(L, 2, "norm");
  session.registries.norm.add(std::move(info), [factory, where](const PartArgs& args, const Place& place) -> std::shared_ptr<Norm> {
    return std::make_shared<LuaNorm>(call_factory(*factory, where, args, place, [&](lua_State* state) {
      set_count(state, "dim", place.dim);
      set(state, "eps", args.config.model.norm_eps);
    }));
  });
}

void add_attention(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("attention", info);
  const auto factory = take_factory(L, 2, "attention");
  session.registries.attention.add(
      std::move(info), [factory, where](const PartArgs& args, const Place& place) -> std::shared_ptr<Attention> {
        return std::make_shared<LuaAttention>(call_factory(*factory, where, args, place, [&](lua_State* state) {
          const config::ModelConfig& model = args.config.model;
          set_count(state, "dim", place.dim);
          set_count(state, "n_heads", model.n_heads);
          set_count(state, "n_kv_heads", config::kv_heads(model));
          set_count(state, "head_dim", config::head_dim(model));
          set_count(state, "layer", place.layer);
        }));
      });
}

void add_adapter(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("adapter", info);
  const auto factory = take_factory(L, 2, "adapter");
  session.registries.adapter.add(std::move(info),
                                 [factory, where](const PartArgs& args, const AdapterPlace& place) -> std::shared_ptr<LinearAdapter> {
                                   const Place inside{-1, place.in, 0, nullptr};
                                   LuaPart part = call_factory(*factory, where, args, inside, [&](lua_State* state) {
                                     set_count(state, "dim", place.in);
                                     set_count(state, "out_dim", place.out);
                                     set(state, "layer_name", place.layer);
                                   });
                                   return std::make_shared<LuaAdapter>(std::move(part), place);
                                 });
}

void add_block(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("block", info);
  const auto factory = take_factory(L, 2, "block");
  session.registries.block.add(std::move(info), [factory, where](const PartArgs& args, const Place& place) -> std::shared_ptr<Block> {
    return std::make_shared<LuaBlock>(call_factory(*factory, where, args, place, [&](lua_State* state) {
      set_count(state, "layer", place.layer);
      set_count(state, "dim", args.config.model.dim);
      set_count(state, "hidden_dim", config::ffn_hidden_dim(args.config.model));
    }));
  });
}

void add_model(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("model", info);
  const auto factory = take_factory(L, 2, "model");
  session.registries.model.add(std::move(info), [factory, where](const PartArgs& args) -> std::shared_ptr<Model> {
    const Place place{-1, args.config.model.dim, 0, nullptr};
    return std::make_shared<LuaModel>(call_factory(*factory, where, args, place, {}), args.config);
  });
}

}  // namespace kf::lua
