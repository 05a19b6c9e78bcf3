#include "checkpoint/huggingface/layouts.h"

#include <ATen/ATen.h>

#include "core/error.h"

namespace kf::huggingface {
namespace {

/// The queries, the keys or the values of (Hkv (H / Hkv + 2) D, ..) rows.
at::Tensor cut_group(const at::Tensor& whole, const Piece& piece) {
  const std::int64_t rows = whole.size(0);
  const bool queries = piece.layout == Layout::group_q;
  KF_CHECK(piece.head > 0 && rows % piece.head == 0 && piece.count % piece.head == 0 && piece.count > 0, Code::checkpoint,
           "{} has {} rows, which are no whole heads of {}", piece.theirs, rows, piece.head);
  const std::int64_t heads = piece.count / piece.head;  // of ours
  const std::int64_t groups = queries ? (rows / piece.head - heads) / 2 : heads;
  KF_CHECK(groups > 0 && rows / piece.head % groups == 0 && (!queries || heads % groups == 0), Code::checkpoint,
           "{} has {} heads of queries, keys and values together, which do not fit the model's", piece.theirs, rows / piece.head);
  const std::int64_t each = rows / piece.head / groups;
  const at::Tensor grouped = whole.unflatten(0, {groups, each, piece.head});
  const at::Tensor part = queries                           ? grouped.narrow(1, 0, each - 2)
                          : piece.layout == Layout::group_k ? grouped.narrow(1, each - 2, 1)
                                                            : grouped.narrow(1, each - 1, 1);
  return part.flatten(0, 2);
}

/// One of three in each of four blocks of rows.
at::Tensor cut_shards(const at::Tensor& whole, const Piece& piece, std::int64_t which) {
  KF_CHECK(whole.size(0) % 12 == 0, Code::checkpoint, "{} has {} rows, which are no four blocks of queries, values and keys", piece.theirs,
           whole.size(0));
  return whole.unflatten(0, {4, 3, -1}).select(1, which).flatten(0, 1);
}

/// The tensors of `parts` that lie so, in their order; each of `wanted` once.
std::vector<at::Tensor> of_layouts(const std::string& theirs, const std::vector<std::pair<Layout, at::Tensor>>& parts,
                                   std::initializer_list<Layout> wanted) {
  std::vector<at::Tensor> out;
  for (const Layout layout : wanted) {
    for (const auto& [lies, tensor] : parts) {
      if (lies == layout) {
        out.push_back(tensor);
      }
    }
  }
  KF_CHECK(out.size() == wanted.size() && parts.size() == wanted.size(), Code::checkpoint,
           "{} is made of {} tensors; the model has {} of them", theirs, wanted.size(), parts.size());
  return out;
}

std::vector<at::Tensor> all_of(const std::vector<std::pair<Layout, at::Tensor>>& parts) {
  std::vector<at::Tensor> out;
  for (const auto& [layout, tensor] : parts) {
    out.push_back(tensor);
  }
  return out;
}

/// Groups of queries with the key and the value that they share.
at::Tensor join_groups(const std::string& theirs, const std::vector<at::Tensor>& qkv, std::int64_t head) {
  const auto heads = [&](const at::Tensor& x) {
    KF_CHECK(head > 0 && x.size(0) % head == 0, Code::checkpoint, "{}: {} rows are no whole heads of {}", theirs, x.size(0), head);
    return x.size(0) / head;
  };
  const std::int64_t groups = heads(qkv[1]);
  KF_CHECK(groups > 0 && heads(qkv[0]) % groups == 0, Code::checkpoint, "{}: {} heads of queries and {} of keys make no groups", theirs,
           heads(qkv[0]), groups);
  std::vector<at::Tensor> grouped;
  for (const at::Tensor& part : qkv) {
    grouped.push_back(part.unflatten(0, {groups, heads(part) / groups, head}));
  }
  return at::cat(grouped, 1).flatten(0, 2);
}

at::Tensor join_shards(const std::string& theirs, const std::vector<at::Tensor>& qvk) {
  std::vector<at::Tensor> shards;
  for (const at::Tensor& part : qvk) {
    KF_CHECK(part.size(0) % 4 == 0, Code::checkpoint, "{}: {} rows are no four blocks", theirs, part.size(0));
    shards.push_back(part.unflatten(0, {4, -1}));
  }
  return at::stack(shards, 1).flatten(0, 2);
}

at::Tensor swap_halves(const std::string& theirs, const at::Tensor& whole, std::int64_t head) {
  KF_CHECK(head > 0 && head % 2 == 0 && whole.size(0) % head == 0, Code::checkpoint,
           "{} has {} rows, which are no whole heads of {} with two halves", theirs, whole.size(0), head);
  const at::Tensor halves = whole.unflatten(0, {-1, 2, head / 2});
  return at::cat({halves.narrow(1, 1, 1), halves.narrow(1, 0, 1)}, 1).flatten(0, 2);
}

/// Of a tensor of the file that is one of ours alone.
at::Tensor laid_out(const std::string& theirs, Layout layout, const at::Tensor& ours, std::int64_t head) {
  switch (layout) {
    case Layout::transposed: return ours.t();
    case Layout::swapped: return ours.mT();
    case Layout::stacked: return ours.flatten(0, 1);
    case Layout::stacked_swapped: return ours.mT().flatten(0, 1);
    case Layout::flat: return ours.unsqueeze(0);
    case Layout::half_swapped: return swap_halves(theirs, ours, head);
    case Layout::behind_two: {
      std::vector<std::int64_t> two = ours.sizes().vec();
      two[0] = 2;  // rows of no position
      return at::cat({at::zeros(two, ours.options()), ours}, 0);
    }
    default: return ours;
  }
}

}  // namespace

bool by_groups(Layout layout) { return layout == Layout::group_q || layout == Layout::group_k || layout == Layout::group_v; }
bool by_rows(Layout layout) { return layout == Layout::rows || layout == Layout::rows_of_transposed; }

at::Tensor cut(const at::Tensor& whole, const Piece& piece) {
  const auto every_second = [&](std::int64_t first) { return whole.slice(-1, first, whole.size(-1), 2); };
  const auto rows = [&](const at::Tensor& x) {
    KF_CHECK(x.size(0) == piece.all, Code::checkpoint, "{} has {} rows; the model wants {}", piece.theirs, x.size(0), piece.all);
    return x.narrow(0, piece.first, piece.count);
  };
  const auto half = [&](std::int64_t dim, std::int64_t which) {
    KF_CHECK(whole.dim() > 1 && whole.size(dim) % 2 == 0, Code::checkpoint, "{} holds no two halves", piece.theirs);
    return whole.narrow(dim, which * whole.size(dim) / 2, whole.size(dim) / 2);
  };
  switch (piece.layout) {
    case Layout::same: return whole;
    case Layout::transposed: return whole.t();
    case Layout::rows: return rows(whole);
    case Layout::rows_of_transposed: return rows(whole.t());
    case Layout::columns: {
      KF_CHECK(whole.dim() == 2 && whole.size(1) == piece.all, Code::checkpoint, "{} has {} columns; the model wants {}", piece.theirs,
               whole.size(-1), piece.all);
      return whole.narrow(1, piece.first, piece.count);
    }
    case Layout::even: return every_second(0);
    case Layout::odd: return every_second(1);
    case Layout::first_half: return half(-1, 0);
    case Layout::second_half: return half(-1, 1);
    case Layout::upper: return half(1, 0).mT();
    case Layout::lower: return half(1, 1).mT();
    case Layout::swapped: return whole.mT();
    case Layout::stacked:
    case Layout::stacked_swapped: {
      KF_CHECK(piece.count > 0 && whole.size(0) % piece.count == 0, Code::checkpoint, "{} has {} rows, which are no {} equal blocks",
               piece.theirs, whole.size(0), piece.count);
      const at::Tensor stack = whole.unflatten(0, {piece.count, -1});
      return piece.layout == Layout::stacked ? stack : stack.mT();
    }
    case Layout::flat: return whole.flatten();
    case Layout::behind_two: return whole.narrow(0, 2, whole.size(0) - 2);
    case Layout::group_q:
    case Layout::group_k:
    case Layout::group_v: return cut_group(whole, piece);
    case Layout::shard_q: return cut_shards(whole, piece, 0);
    case Layout::shard_v: return cut_shards(whole, piece, 1);
    case Layout::shard_k: return cut_shards(whole, piece, 2);
    case Layout::half_swapped: return swap_halves(piece.theirs, whole, piece.head);
  }
  return whole;
}

at::Tensor joined(const std::string& theirs, const std::vector<std::pair<Layout, at::Tensor>>& parts, std::int64_t head) {
  const auto those = [&](std::initializer_list<Layout> wanted) { return of_layouts(theirs, parts, wanted); };
  KF_CHECK(!parts.empty(), Code::checkpoint, "{} is made of nothing", theirs);
  switch (parts.front().first) {
    case Layout::rows: return at::cat(all_of(parts), 0);
    case Layout::rows_of_transposed: return at::cat(all_of(parts), 0).t();
    case Layout::columns: return at::cat(all_of(parts), 1);
    case Layout::even:
    case Layout::odd: return at::stack(those({Layout::even, Layout::odd}), -1).flatten(-2);
    case Layout::first_half:
    case Layout::second_half: return at::cat(those({Layout::first_half, Layout::second_half}), -1);
    case Layout::upper:
    case Layout::lower: return at::cat(those({Layout::upper, Layout::lower}), -1).mT();
    case Layout::group_q:
    case Layout::group_k:
    case Layout::group_v: return join_groups(theirs, those({Layout::group_q, Layout::group_k, Layout::group_v}), head);
    case Layout::shard_q:
    case Layout::shard_v:
    case Layout::shard_k: return join_shards(theirs, those({Layout::shard_q, Layout::shard_v, Layout::shard_k}));
    default: break;
  }
  KF_CHECK(parts.size() == 1, Code::checkpoint, "{} is one tensor of the model; {} are given", theirs, parts.size());
  return laid_out(theirs, parts.front().first, parts.front().second, head);
}

std::int64_t head_dim_in(const config::Table& json) {
  const auto number = [&](std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
      const config::Node* const node = json.find(key);
      if (const auto* value = node ? std::get_if<std::int64_t>(&node->value) : nullptr; value && *value > 0) {
        return *value;
      }
    }
    return std::int64_t{0};
  };
  const std::int64_t given = number({"head_dim"});
  const std::int64_t heads = number({"num_attention_heads", "n_head"});
  return given > 0 ? given : heads > 0 ? number({"hidden_size", "n_embd", "n_embed"}) / heads : 0;
}

}  // namespace kf::huggingface
