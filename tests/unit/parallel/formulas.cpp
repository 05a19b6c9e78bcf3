#include "formulas.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/text.h"
#include "parallel/group.h"

namespace kf::test {
namespace {

constexpr at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kLong, at::kInt, at::kByte, at::kBFloat16, at::kHalf};

void expect(bool right, const Group& group, const std::string& what) {
  if (!right) {
    throw std::runtime_error(format("rank {} of {}: {} is not the formula's", group.rank(), group.size(), what));
  }
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && at::equal(a, b);
}

// ((r0 + r1) + r2) + ... of every element, in Sum, rounded once to T.
template <class T, class Sum>
at::Tensor sum_by_loop(const std::vector<at::Tensor>& parts) {
  at::Tensor result = at::empty_like(parts.front());
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    Sum sum = static_cast<Sum>(parts.front().const_data_ptr<T>()[i]);
    for (std::size_t rank = 1; rank < parts.size(); ++rank) {
      sum = static_cast<Sum>(sum + static_cast<Sum>(parts[rank].const_data_ptr<T>()[i]));
    }
    result.mutable_data_ptr<T>()[i] = static_cast<T>(sum);
  }
  return result;
}

at::Tensor sum_of(const std::vector<at::Tensor>& parts) {
  switch (parts.front().scalar_type()) {
    case at::kFloat: return sum_by_loop<float, float>(parts);
    case at::kDouble: return sum_by_loop<double, double>(parts);
    case at::kLong: return sum_by_loop<std::int64_t, std::int64_t>(parts);
    case at::kInt: return sum_by_loop<std::int32_t, std::int32_t>(parts);
    case at::kByte: return sum_by_loop<std::uint8_t, std::uint8_t>(parts);
    case at::kBFloat16: return sum_by_loop<at::BFloat16, float>(parts);
    case at::kHalf: return sum_by_loop<at::Half, float>(parts);
    default: throw std::runtime_error("no such type here");
  }
}

at::Tensor largest_by_loop(const std::vector<at::Tensor>& parts) {
  at::Tensor result = at::empty(parts.front().sizes(), at::kDouble);
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    double largest = -std::numeric_limits<double>::infinity();
    for (const at::Tensor& part : parts) {
      largest = std::fmax(largest, part.to(at::kDouble).const_data_ptr<double>()[i]);
    }
    result.mutable_data_ptr<double>()[i] = largest;
  }
  return result.to(parts.front().scalar_type());
}

std::vector<at::Tensor> of_all(const Group& group, const std::vector<std::int64_t>& shape, at::ScalarType type, std::int64_t salt) {
  std::vector<at::Tensor> all;
  for (std::int64_t rank = 0; rank < group.size(); ++rank) {
    all.push_back(numbers(shape, type, rank, salt));
  }
  return all;
}

at::Tensor part_of(const at::Tensor& whole, const std::vector<std::int64_t>& rows, std::int64_t rank) {
  return whole.narrow(0, offsets_of(rows)[static_cast<std::size_t>(rank)], rows[static_cast<std::size_t>(rank)]).contiguous();
}

// Rank 0 two rows, rank 1 none, rank 2 five, ...
std::vector<std::int64_t> odd_rows(std::int64_t ranks) {
  std::vector<std::int64_t> rows;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    rows.push_back(rank % 2 == 1 ? 0 : 2 + rank * 3 / 2);
  }
  return rows;
}

void check_reductions(Group& group, at::ScalarType type) {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{}, {0}, {1}, {3, 5}, {0, 4}, {2, 3, 4}, {20000}, {1, 12347}}) {  // the last two go in parts
    const std::string what = format("sum of {} numbers of type {}", numbers(shape, type, 0).numel(), at::toString(type));
    const std::vector<at::Tensor> all = of_all(group, shape, type, 1);
    at::Tensor t = all[static_cast<std::size_t>(group.rank())].clone();
    group.sum(t);
    expect(same(t, sum_of(all)), group, what);
    t = all[static_cast<std::size_t>(group.rank())].clone();
    Pending pending = group.begin_sum(t);
    pending.wait();
    pending.wait();
    expect(same(t, sum_of(all)), group, "begun " + what);
    if (t.numel() < 100) {
      t = all[static_cast<std::size_t>(group.rank())].clone();
      group.largest(t);
      expect(same(t, largest_by_loop(all)), group, format("largest of {} numbers of type {}", t.numel(), at::toString(type)));
    }
    for (std::int64_t root = 0; root < group.size(); ++root) {
      t = all[static_cast<std::size_t>(group.rank())].clone();
      group.broadcast(t, root);
      expect(same(t, all[static_cast<std::size_t>(root)]), group, "broadcast");
    }
  }
}

void check_parts(Group& group, at::ScalarType type, const std::vector<std::int64_t>& rows, bool named) {
  const std::int64_t length = offsets_of(rows).back();
  const std::vector<std::int64_t> given = named ? rows : std::vector<std::int64_t>{};
  for (const std::vector<std::int64_t>& row : {std::vector<std::int64_t>{}, {3}, {2, 0}, {1, 900}}) {
    std::vector<std::int64_t> shape{length};
    shape.insert(shape.end(), row.begin(), row.end());
    const std::vector<at::Tensor> all = of_all(group, shape, type, 2);
    const at::Tensor whole = at::empty_like(all[0]);
    group.gather(whole, part_of(all[0], rows, group.rank()), given);
    expect(same(whole, all[0]), group, "gather");

    const at::Tensor in_place = at::zeros_like(all[0]);
    const at::Tensor place =
        in_place.narrow(0, offsets_of(rows)[static_cast<std::size_t>(group.rank())], rows[static_cast<std::size_t>(group.rank())]);
    place.copy_(part_of(all[0], rows, group.rank()));
    group.begin_gather(in_place, place, given).wait();
    expect(same(in_place, all[0]), group, "gather in place");
    if (type == at::kBool) {
      continue;
    }
    const at::Tensor sum = part_of(sum_of(all), rows, group.rank());
    const at::Tensor part = at::empty_like(sum);
    group.scatter_sum(part, all[static_cast<std::size_t>(group.rank())], given);
    expect(same(part, sum), group, "scatter_sum");
    in_place.copy_(all[static_cast<std::size_t>(group.rank())]);
    group.begin_scatter_sum(place, in_place, given).wait();
    expect(same(place, sum), group, "scatter_sum in place");
    if (!named) {
      expect(same(group.scattered(all[static_cast<std::size_t>(group.rank())]), sum), group, "scattered");
      expect(same(group.gathered(part_of(all[0], rows, group.rank()), length), all[0]), group, "gathered");
    }
  }
}

// Rank a sends (a + 2 b) % 4 rows to rank b.
void check_exchange(Group& group, at::ScalarType type) {
  const auto rows = [](std::int64_t from, std::int64_t to) { return (from + 2 * to) % 4; };
  std::vector<std::int64_t> sent;
  std::vector<at::Tensor> expected;
  for (std::int64_t other = 0; other < group.size(); ++other) {
    sent.push_back(rows(group.rank(), other));
    std::int64_t before = 0, length = 0;
    for (std::int64_t to = 0; to < group.size(); ++to) {
      before += to < group.rank() ? rows(other, to) : 0;
      length += rows(other, to);
    }
    expected.push_back(numbers({length, 3}, type, other, 3).narrow(0, before, rows(other, group.rank())));
  }
  const Splits splits = group.agree(sent);
  const at::Tensor from = numbers({offsets_of(sent).back(), 3}, type, group.rank(), 3);
  expect(same(group.exchanged(from, splits), at::cat(expected)), group, "exchange");
  const at::Tensor to = at::empty({offsets_of(splits.received).back(), 3}, type);
  group.begin_exchange(to, from, splits).wait();
  expect(same(to, at::cat(expected)), group, "begun exchange");
}

// A ring in one direction: everybody sends before anybody waits. Several letters of different lengths are under way at once.
void check_ring(Group& group, at::ScalarType type) {
  if (group.size() == 1) {
    return;
  }
  const std::int64_t next = (group.rank() + 1) % group.size(), before = (group.rank() + group.size() - 1) % group.size();
  std::vector<Pending> pending;
  std::vector<at::Tensor> got;
  for (const std::int64_t length : {5, 0, 5, 3000}) {
    const std::int64_t salt = static_cast<std::int64_t>(got.size());
    pending.push_back(group.begin_send(numbers({length}, type, group.rank(), salt), next));
    got.push_back(at::empty({length}, type));
    pending.push_back(group.begin_receive(got.back(), before));
  }
  for (Pending& one : pending) {
    one.wait();
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    expect(same(got[i], numbers(got[i].sizes().vec(), type, before, static_cast<std::int64_t>(i))), group, "letter");
  }
  const at::Tensor t = numbers({7}, type, group.rank());
  if (group.rank() == 0) {
    group.send(t, 1);
  } else if (group.rank() == 1) {
    group.receive(t, 0);
    expect(same(t, numbers({7}, type, 0)), group, "send and receive");
  }
}

void check_bool_and_nan(Group& group) {
  for (std::int64_t only = 0; only < group.size(); ++only) {
    const at::Tensor any = at::full({3}, group.rank() == only, at::kBool);
    any.mutable_data_ptr<bool>()[1] = false;
    group.largest(any);
    expect(any.const_data_ptr<bool>()[0] && !any.const_data_ptr<bool>()[1], group, "any");
    const at::Tensor nan = at::full({2}, group.rank() == only ? std::nan("") : 1e30, at::kFloat);
    group.largest(nan);
    expect(std::isnan(nan.const_data_ptr<float>()[1]), group, "largest with a NaN");
  }
}

void check_words(Group& group) {
  const auto word = [](std::int64_t rank) {
    return rank == 1 ? std::string() : std::string(static_cast<std::size_t>(rank * 1000 + 3), 'a') + '\0' + 'b';
  };
  const std::vector<std::string> told = group.tell(word(group.rank()));
  for (std::int64_t rank = 0; rank < group.size(); ++rank) {
    expect(told.at(static_cast<std::size_t>(rank)) == word(rank), group, "tell");
  }
  group.barrier();
}

// Three under way at once, waited for in another order; between them one that is not begun.
void check_overlap(Group& group) {
  const std::vector<at::Tensor> all = of_all(group, {5000}, at::kFloat, 4);
  std::vector<at::Tensor> sums;
  std::vector<Pending> pending;
  for (int i = 0; i < 3; ++i) {
    sums.push_back(all[static_cast<std::size_t>(group.rank())].mul(i + 1));
    pending.push_back(group.begin_sum(sums.back()));
  }
  const at::Tensor t = all[static_cast<std::size_t>(group.rank())].clone();
  group.sum(t);
  for (int i = 2; i >= 0; --i) {
    pending[static_cast<std::size_t>(i)].wait();
    std::vector<at::Tensor> scaled;
    for (const at::Tensor& one : all) {
      scaled.push_back(one.mul(i + 1));
    }
    expect(same(sums[static_cast<std::size_t>(i)], sum_of(scaled)), group, "one of three sums");
  }
  expect(same(t, sum_of(all)), group, "the sum behind them");
}

void check_type(Group& group, at::ScalarType type) {
  check_reductions(group, type);
  check_exchange(group, type);
  check_ring(group, type);
  for (const std::int64_t length : {0, 1, 2, 7, 12}) {
    check_parts(group, type, even_rows(length, group.size()), false);
  }
  check_parts(group, type, odd_rows(group.size()), true);
}

}  // namespace

at::Tensor numbers(const std::vector<std::int64_t>& shape, at::ScalarType type, std::int64_t rank, std::int64_t salt) {
  const at::Tensor t = at::empty(shape, at::kDouble);
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    const std::int64_t mixed = (i * 7919 + rank * 104729 + salt * 1299709 + 12345) * 2654435761 % 1000003;
    t.mutable_data_ptr<double>()[i] = (static_cast<double>(mixed) / 500001.5 - 1) * (rank % 2 == 0 ? 1 : 60);
  }
  if (type == at::kBool) {
    return t.gt(0);
  }
  return type == at::kByte ? t.abs().to(type) : t.to(type);
}

void check_calls(Group& group) {
  for (const at::ScalarType type : kTypes) {
    check_type(group, type);
  }
  check_parts(group, at::kBool, even_rows(5, group.size()), false);
  check_exchange(group, at::kBool);
  check_bool_and_nan(group);
  check_words(group);
  check_overlap(group);
}

void check_some_calls(Group& group) {
  check_type(group, at::kDouble);
  check_type(group, at::kBFloat16);
  check_words(group);
}

}  // namespace kf::test
