// tostring(t): as PyTorch prints tensors, long ones with their middle left out.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "bindings/tensor/methods.h"
#include "bindings/tensor/names.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/stack.h"
#include "core/decimal.h"
#include "core/text.h"

namespace kf::lua {
namespace {

constexpr std::int64_t kWhole = 1000;  // elements printed in full
constexpr std::int64_t kEdge = 3;      // rows kept at either end otherwise

/// By "%.4f", "%.4e" or "%.0f.": printf's own would follow the locale.
std::string printed(std::string_view pattern, double value) {
  const int digits = pattern[2] - '0';
  return (pattern[3] == 'e' ? scientific(value, digits) : fixed(value, digits)).append(pattern.substr(4));
}

/// How the elements of one tensor are written: all alike.
class Writer {
 public:
  explicit Writer(const at::Tensor& tensor) : data_(tensor.detach().to(at::kCPU)), type_(tensor.scalar_type()) {
    summary_ = data_.numel() > kWhole;
    if (at::isFloatingType(type_) && data_.numel() > 0) {
      choose_pattern();
    }
    measure(data_);
  }

  std::string text() const {
    std::string out = "tensor(";
    write(out, data_, 8);
    return out;
  }

 private:
  void choose_pattern() {
    const at::Tensor wide = data_.to(at::kDouble).flatten();
    const at::Tensor finite = wide.masked_select(wide.isfinite().logical_and(wide.ne(0))).abs();
    if (finite.numel() == 0) {
      pattern_ = "%.0f.";
      return;
    }
    const double largest = finite.max().item<double>();
    const double smallest = finite.min().item<double>();
    const bool whole = finite.eq(finite.floor()).all().item<bool>();
    if (whole) {
      pattern_ = largest >= 1e8 ? "%.4e" : "%.0f.";
    } else {
      pattern_ = largest / smallest > 1000 || largest >= 1e8 || smallest < 1e-4 ? "%.4e" : "%.4f";
    }
  }

  std::string element(const at::Tensor& value) const {
    const at::Scalar scalar = value.item();
    if (scalar.isBoolean()) {
      return scalar.toBool() ? "true" : "false";
    }
    if (scalar.isComplex()) {
      const auto c = scalar.toComplexDouble();
      return printed("%.4f", c.real()) + (c.imag() < 0 ? "-" : "+") + printed("%.4fi", std::abs(c.imag()));
    }
    if (!scalar.isFloatingPoint()) {
      return std::to_string(scalar.toLong());
    }
    const double number = scalar.toDouble();
    if (std::isnan(number)) {
      return "nan";
    }
    if (std::isinf(number)) {
      return number > 0 ? "inf" : "-inf";
    }
    return printed(pattern_, number);
  }

  bool cut(std::int64_t length) const { return summary_ && length > 2 * kEdge; }

  void measure(const at::Tensor& part) {
    if (part.dim() == 0) {
      width_ = std::max(width_, element(part).size());
      return;
    }
    for (std::int64_t i = 0; i < part.size(0); ++i) {
      if (cut(part.size(0)) && i == kEdge) {
        i = part.size(0) - kEdge;
      }
      measure(part[i]);
    }
  }

  void write(std::string& out, const at::Tensor& part, std::size_t indent) const {
    if (part.dim() == 0) {
      const std::string text = element(part);
      out += data_.dim() == 0 ? text : std::string(width_ - text.size(), ' ') + text;
      return;
    }
    const std::string between =
        part.dim() == 1 ? " " : std::string(static_cast<std::size_t>(part.dim() - 1), '\n') + std::string(indent, ' ');
    out += '[';
    for (std::int64_t i = 0; i < part.size(0); ++i) {
      if (i > 0) {
        out += "," + between;
      }
      if (cut(part.size(0)) && i == kEdge) {
        out += "..." + ("," + between);
        i = part.size(0) - kEdge;
      }
      write(out, part[i], indent + 1);
    }
    out += ']';
  }

  at::Tensor data_;
  at::ScalarType type_;
  const char* pattern_ = "%.4f";
  bool summary_ = false;
  std::size_t width_ = 0;
};

}  // namespace

int tensor_to_text(lua_State* L) {
  const TensorBox* box = box_at(L, 1);
  if (box == nullptr || !box->tensor.defined()) {
    push(L, std::string_view("tensor (freed)"));
    return 1;
  }
  const at::Tensor& tensor = usable(*box);
  if (tensor.layout() != at::kStrided || tensor.is_meta() || tensor.is_quantized()) {
    push(L, std::string_view("tensor(..., " + tensor_text(tensor) + ", " + std::string(name_of(tensor.layout())) + ")"));
    return 1;
  }
  const at::NoGradGuard no_grad;
  std::string out = Writer(tensor).text();
  const at::ScalarType type = tensor.scalar_type();
  if (tensor.numel() == 0 && tensor.dim() != 1) {
    out += format(", size = ({})", join(
                                       [&] {
                                         std::vector<std::string> sizes;
                                         for (const std::int64_t size : tensor.sizes()) {
                                           sizes.push_back(to_text(size));
                                         }
                                         return sizes;
                                       }(),
                                       ", "));
  }
  if (type != at::kFloat && type != at::kLong && type != at::kBool) {
    out += ", dtype = \"" + std::string(name_of(type)) + "\"";
  }
  if (!tensor.is_cpu()) {
    out += ", device = \"" + tensor.device().str() + "\"";
  }
  if (tensor.requires_grad()) {
    out += ", requires_grad = true";
  }
  push(L, std::string_view(out + ")"));
  return 1;
}

}  // namespace kf::lua
