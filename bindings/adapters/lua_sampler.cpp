#include "bindings/adapters/lua_sampler.h"

#include <ATen/ATen.h>

#include "bindings/adapters/callback.h"
#include "bindings/adapters/kept_state.h"
#include "bindings/session/factory.h"
#include "bindings/tensor/tensor.h"
#include "bindings/value/ids.h"
#include "bindings/vm/stack.h"
#include "core/text.h"
#include "generate/generate.h"

namespace kf::lua {
namespace {

class LuaSampler final : public TokenChooser {
 public:
  LuaSampler(std::string where, FunctionPart part) : where_(std::move(where)), part_(std::move(part)) {}

  void begin(const std::vector<std::int64_t>& prompt, const GenerateOptions& options) override {
    step_ = 0;
    part_.function.runtime().protect([&](lua_State* L) {
      lua_createtable(L, 0, 10);
      push_ids(L, prompt);
      lua_setfield(L, -2, "prompt");
      set(L, "temperature", options.temperature);
      set(L, "top_k", static_cast<double>(options.top_k));
      set(L, "top_p", options.top_p);
      set(L, "min_p", options.min_p);
      set(L, "repetition_penalty", options.repetition_penalty);
      set(L, "seed", static_cast<double>(options.seed));
      state_ = Ref(L);
    });
  }

  at::Tensor next(const at::Tensor& logits) override {
    const std::int64_t rows = logits.size(0);
    const std::vector<std::int64_t> ids = call_part(
        part_.function, where_, format(" at token {}", step_),
        [&](lua_State* L) {
          push_tensor(L, logits.to(at::kFloat).clone(), Memory::fresh);  // its own: the script may write into it
          state_.push(L);
          set(L, "step", static_cast<double>(step_));
          return 2;
        },
        [&](lua_State* L) { return read_ids(L, -1, logits.size(-1), where_); });
    KF_CHECK(static_cast<std::int64_t>(ids.size()) == rows, Code::script, "{} must give {} ids, one a row of the logits, got {}", where_,
             rows, ids.size());
    ++step_;
    return at::tensor(ids, at::kLong);
  }

 private:
  std::string where_;
  FunctionPart part_;
  Ref state_;
  std::int64_t step_ = 0;
};

}  // namespace

void add_sampler(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("sampler", info);
  const auto factory = take_factory(L, 2, "sampler");
  session.registries.sampler.add(std::move(info), [factory, where](const PartArgs& args) -> std::unique_ptr<TokenChooser> {
    return std::make_unique<LuaSampler>(where, build_function(*factory, where, args, {}, "a function(logits, state) that gives ids"));
  });
}

}  // namespace kf::lua
