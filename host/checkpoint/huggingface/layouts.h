#pragma once
// How tensors of a Hugging Face file and ours are made of one another, in both directions.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/huggingface/rules.h"
#include "config/tree/node.h"

namespace kf::huggingface {

/// Part of a tensor of the file.
struct Piece {
  std::string theirs;
  Layout layout = Layout::same;
  std::int64_t first = 0;  // rows, columns: where ours begins
  std::int64_t count = 0;
  std::int64_t all = 0;   // rows or columns of the tensor by the model
  std::int64_t head = 0;  // groups: width of a head
};

bool by_groups(Layout layout);
bool by_rows(Layout layout);

/// Ours, out of the file's. Throws Code::checkpoint where the shape makes no sense.
at::Tensor cut(const at::Tensor& whole, const Piece& piece);

/// The file's tensor out of all of ours that lie in it, in the order of the table; `head` is the width of a head. Throws Code::checkpoint
/// where one of them is missing.
at::Tensor joined(const std::string& theirs, const std::vector<std::pair<Layout, at::Tensor>>& parts, std::int64_t head);

/// Width of a head by a config.json; 0 where it does not say.
std::int64_t head_dim_in(const config::Table& json);

}  // namespace kf::huggingface
