// Tensors of a file of torch.save, by the calls that would make them.

#include <limits>

#include "checkpoint/pickle/saved_file.h"
#include "core/error.h"

namespace kf::pickle {
namespace {

constexpr std::size_t kMostDims = 64;  // as LibTorch has it

class TensorReader {
 public:
  explicit TensorReader(const std::string& file) : file_(file) {}

  std::optional<SavedTensor> read(const Value& value) const {
    if (value.is(Kind::object, "torch._utils._rebuild_parameter") || value.is(Kind::object, "torch._utils._rebuild_parameter_with_state")) {
      return read(argument(value, 0));
    }
    if (value.is(Kind::object, "torch._tensor._rebuild_from_type_v2")) {  // (function, class, its arguments, state)
      const Value function = argument(value, 0);
      check(function.is(Kind::global), "a subclass of torch.Tensor is made by no function");
      return rebuilt(function.text(), argument(value, 2));
    }
    return value.is(Kind::object) ? rebuilt(value.text(), value) : std::nullopt;
  }

 private:
  void check(bool holds, std::string_view what) const { KF_CHECK(holds, Code::checkpoint, "{}: {}", file_, what); }

  Value argument(const Value& call, std::size_t index) const {
    KF_CHECK(index < call.size(), Code::checkpoint, "{}: {} has {} arguments; {} and more are needed", file_,
             call.is(Kind::object) ? call.text() : "a tensor", call.size(), index + 1);
    return call.item(index);
  }

  /// `call`: an object, or the tuple of its arguments.
  std::optional<SavedTensor> rebuilt(std::string_view function, const Value& call) const {
    if (function == "torch._utils._rebuild_parameter" || function == "torch._utils._rebuild_parameter_with_state") {
      return read(argument(call, 0));
    }
    const bool typed = function == "torch._utils._rebuild_tensor_v3";
    if (!typed && function != "torch._utils._rebuild_tensor_v2" && function != "torch._utils._rebuild_tensor") {
      return std::nullopt;
    }
    // ("storage", torch.FloatStorage, key, device, count of numbers)
    const Value reference = argument(call, 0);
    check(reference.is(Kind::reference) && reference.target().is(Kind::tuple), "a tensor has no storage");
    const Value storage = reference.target();
    const Value kind = argument(storage, 1), key = argument(storage, 2), count = argument(storage, 4);
    check(kind.is(Kind::global) && key.is(Kind::text) && count.is(Kind::integer) && count.integer() >= 0,
          "a storage is not described as torch.save does it");
    check(storage.size() < 6 || argument(storage, 5).is(Kind::none), "a storage is a view of another one, as PyTorch 0.1 had them");
    SavedTensor out;
    out.type = number_type(typed ? text_of(argument(call, 6)) : kind.text());
    KF_CHECK(out.type, Code::checkpoint, "{}: a tensor is of the type {}, which is not read", file_,
             typed ? text_of(argument(call, 6)) : kind.text());
    out.storage = key.text();
    out.offset = static_cast<std::uint64_t>(number(argument(call, 1)));
    out.shape = numbers(argument(call, 2));
    out.strides = numbers(argument(call, 3));
    check_plain(call, typed ? 7 : 6);
    const std::uint64_t numbers_there = static_cast<std::uint64_t>(count.integer()) / (typed ? out.type->bytes : 1);
    check_inside(out, numbers_there);
    return out;
  }

  /// Views may say that their storage holds the negative or the conjugate of their numbers.
  void check_plain(const Value& call, std::size_t index) const {
    const Value marks = index < call.size() ? call.item(index) : call;
    for (std::size_t i = 0; marks.is(Kind::dict) && i < marks.size(); ++i) {
      check(marks.value(i).is(Kind::boolean) && !marks.value(i).boolean(),
            "a tensor is a negative or conjugate view of its storage; save a copy of it (.resolve_neg().resolve_conj())");
    }
  }

  static std::string_view text_of(const Value& value) { return value.is(Kind::global) ? value.text() : words_for(value.kind()); }

  std::int64_t number(const Value& value) const {
    check(value.is(Kind::integer) && value.integer() >= 0, "a tensor has a size, stride or offset that is none");
    return value.integer();
  }

  /// Of a tuple, or of a torch.Size, which holds one.
  std::vector<std::int64_t> numbers(const Value& value) const {
    const Value list = value.is(Kind::object, "torch.Size") ? argument(value, 0) : value;
    check((list.is(Kind::tuple) || list.is(Kind::list)) && list.size() <= kMostDims, "a tensor has a shape that is none");
    std::vector<std::int64_t> out;
    for (std::size_t i = 0; i < list.size(); ++i) {
      out.push_back(number(list.item(i)));
    }
    return out;
  }

  /// The last element lies inside of the storage, and nothing overflows: LibTorch multiplies sizes without looking.
  void check_inside(const SavedTensor& tensor, std::uint64_t count) const {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    check(tensor.shape.size() == tensor.strides.size(), "a tensor has more dims than strides, or fewer");
    std::uint64_t last = tensor.offset, bytes = tensor.type->bytes;
    bool empty = false;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      const auto size = static_cast<std::uint64_t>(tensor.shape[i]), stride = static_cast<std::uint64_t>(tensor.strides[i]);
      const std::uint64_t steps = size > 0 ? size - 1 : 0;
      check(bytes <= kMost / (size > 0 ? size : 1), "a tensor would have more than 2^63 bytes");
      bytes *= size > 0 ? size : 1;
      check(steps == 0 || stride <= (kMost - last) / steps, "a tensor reaches outside of its storage");
      last += steps * stride;
      empty = empty || size == 0;
    }
    KF_CHECK(empty ? tensor.offset <= count : last < count, Code::checkpoint,
             "{}: a tensor reaches number {} of its storage '{}', which has {}", file_, last, tensor.storage, count);
  }

  const std::string& file_;
};

}  // namespace

std::optional<SavedTensor> SavedFile::tensor(const Value& value) const { return TensorReader(place_.file).read(value); }

}  // namespace kf::pickle
