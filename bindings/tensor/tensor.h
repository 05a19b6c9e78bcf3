#pragma once
// A tensor as Lua holds it: one userdata around an at::Tensor.

#include <ATen/core/Tensor.h>
#include <lua.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace kf::lua {

/// For how long a lent tensor may be used: until the callback that got it returns.
struct Lease {
  std::string what;  // "the gradients of step 10"
  bool over = false;
};

/// Ends a lease when the callback returns, whichever way.
class LeaseScope {
 public:
  explicit LeaseScope(std::string what) : lease_(std::make_shared<Lease>(Lease{std::move(what)})) {}
  ~LeaseScope() { lease_->over = true; }
  LeaseScope(const LeaseScope&) = delete;
  LeaseScope& operator=(const LeaseScope&) = delete;
  const std::shared_ptr<Lease>& lease() const { return lease_; }

 private:
  std::shared_ptr<Lease> lease_;
};

/// What the userdata holds. `magic` tells it from any other userdata without a look at metatables.
struct TensorBox {
  static constexpr std::uint64_t kMagic = 0x6b665f74656e736fULL;
  std::uint64_t magic = kMagic;
  at::Tensor tensor;                   // undefined once freed
  std::int64_t bytes = 0;              // as told to the collector
  std::shared_ptr<const Lease> lease;  // null: owned
};

/// Whether the memory of a pushed tensor was made for it, so that the collector should know of it.
enum class Memory { shared, fresh };

/// Pushes a tensor; nil for an undefined one.
void push_tensor(lua_State* L, at::Tensor tensor, Memory memory = Memory::shared);
/// Pushes a tensor that Lua may use until `lease` ends.
void push_lent(lua_State* L, at::Tensor tensor, const std::shared_ptr<Lease>& lease);

/// The userdata's content; null for anything else than a tensor.
inline TensorBox* box_at(lua_State* L, int index) {
  void* place = lua_touserdata(L, index);
  if (place == nullptr || lua_objlen(L, index) != sizeof(TensorBox)) {
    return nullptr;
  }
  auto* box = static_cast<TensorBox*>(place);
  return box->magic == TensorBox::kMagic ? box : nullptr;
}
/// Throws when the tensor was freed or its lease is over.
const at::Tensor& usable(const TensorBox& box);
/// The tensor at `index`, null for anything else. Throws as `usable` does.
inline const at::Tensor* tensor_at(lua_State* L, int index) {
  const TensorBox* box = box_at(L, index);
  return box != nullptr ? &usable(*box) : nullptr;
}
/// The same where nothing else will do: "t:item: expected a tensor, got nil".
const at::Tensor& check_tensor(lua_State* L, int index, std::string_view function);

/// Whether t:name() is a method that is no operator ("numel").
bool has_method(lua_State* L, const std::string& name);

/// t:free(): gives the memory back now.
int free_tensor(lua_State* L);

/// Makes the metatable of tensors: arithmetic, indexing, methods, printing.
void open_tensors(lua_State* L);

/// "float32 (2, 3)"; "int64 scalar".
std::string tensor_text(const at::Tensor& tensor);
/// As `describe`, and tensors as "a tensor float32 (2, 3)".
std::string describe_any(lua_State* L, int index);

}  // namespace kf::lua
