#include "programs.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <csignal>
#include <functional>
#include <map>
#include <thread>

#include "core/error.h"
#include "formulas.h"
#include "parallel/group.h"
#include "parallel/mesh/mesh.h"
#include "parallel/world.h"

namespace kf::test {
namespace {

std::string bits_of(const at::Tensor& t) { return std::string(static_cast<const char*>(t.const_data_ptr()), t.nbytes()); }

// A few steps that look like training: weights gathered ahead, gradients summed behind, letters around a ring, words.
std::string mixed(Group& all) {
  std::string bits;
  const auto files = all.part("files", [&] {
    std::vector<std::int64_t> ranks;
    for (std::int64_t rank = 0; rank < all.size(); ++rank) {
      ranks.push_back(rank);
    }
    return ranks;
  }());
  at::Tensor whole = numbers({23, 17}, at::kFloat, 0);
  at::Tensor part = all.scattered(whole);
  for (std::int64_t step = 0; step < 3; ++step) {
    whole = at::empty({23, 17}, at::kFloat);
    Pending ahead = all.begin_gather(whole, part);
    at::Tensor norms = numbers({2}, at::kDouble, all.rank(), step);
    Pending norm = files->begin_sum(norms);
    const at::Tensor gradient = numbers({23, 17}, step % 2 == 0 ? at::kFloat : at::kBFloat16, all.rank(), step);
    ahead.wait();
    const at::Tensor mine = all.scattered(whole.mul(0.3).to(gradient.scalar_type()).add(gradient));
    part = part.sub(mine.to(at::kFloat), 0.1);
    norm.wait();
    bits += bits_of(part) + bits_of(norms);
    for (const std::string& word : all.tell(std::string(1, static_cast<char>('a' + all.rank())))) {
      bits += word;
    }
  }
  return bits;
}

std::string calls(Group& all) {
  check_calls(all);
  return "right";
}

// Groups of two by halves, and of every second rank, used in turn.
std::string parts(Group& all) {
  const std::int64_t half = all.size() / 2, rank = all.rank();
  const auto make = [&](const char* name, std::int64_t first, std::int64_t step, std::int64_t count) {
    std::vector<std::int64_t> ranks;
    for (std::int64_t i = 0; i < count; ++i) {
      ranks.push_back(first + i * step);
    }
    return all.part(name, ranks);
  };
  const auto near = make("near", rank < half ? 0 : half, 1, rank < half ? half : all.size() - half);
  const auto far = make("far", rank % 2, 2, (all.size() - rank % 2 + 1) / 2);
  check_some_calls(*near);
  check_some_calls(*far);
  const at::Tensor a = numbers({9}, at::kFloat, rank), b = a.clone();
  Pending one = near->begin_sum(a), two = far->begin_sum(b);  // on two communicators at once
  two.wait();
  one.wait();
  return bits_of(a) + bits_of(b);
}

// A mesh of the ranks: tp 2, the rest dp_shard.
std::string mesh(Group& all) {
  const World world(all, Mesh::of_world({1, 1, -1, 1, 1, all.size() % 2 == 0 ? 2 : 1}, all.size()));
  check_some_calls(world.along(Axis::tp));
  check_some_calls(world.data());
  const at::Tensor t = numbers({5}, at::kFloat, all.rank());
  world.data().sum(t);
  world.along(Axis::tp).sum(t);
  world.files().sum(t);
  return bits_of(t) + to_text(world.share().rank) + "/" + to_text(world.share().world);
}

void sum_once(Group& all) { all.sum(at::ones({3})); }

std::string throws(Group& all) {
  sum_once(all);
  if (all.rank() == 1) {
    fail(Code::data, "the file is broken");
  }
  sum_once(all);
  return {};
}

std::string killed(Group& all) {
  sum_once(all);
  if (all.rank() == all.size() - 1) {
    std::raise(SIGKILL);
  }
  sum_once(all);
  return {};
}

std::string first_killed(Group& all) {
  sum_once(all);
  if (all.rank() == 0) {
    std::raise(SIGKILL);
  }
  sum_once(all);
  return {};
}

// Killed while others wait in a call of a smaller group that it is not of, and for its letter.
std::string killed_elsewhere(Group& all) {
  const std::int64_t last = all.size() - 1;
  if (all.rank() == last) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    std::raise(SIGKILL);
  }
  const at::Tensor t = at::ones({3});
  if (all.rank() == 0) {
    all.receive(t, last);
  } else {
    sum_once(all);
  }
  return {};
}

// Killed while the others' calls run behind them, in two groups.
std::string killed_behind(Group& all) {
  const std::int64_t last = all.size() - 1;
  const auto other = all.part("other", all.ranks());
  std::vector<at::Tensor> sums;
  std::vector<Pending> pending;
  for (int i = 0; i < 50; ++i) {
    if (i == 25 && all.rank() == last) {
      std::raise(SIGKILL);
    }
    for (Group* const group : {&all, other.get()}) {
      sums.push_back(numbers({30000}, at::kFloat, all.rank()));
      pending.push_back(group->begin_sum(sums.back()));
    }
  }
  for (Pending& one : pending) {
    one.wait();
  }
  return {};
}

std::string late(Group& all) {
  sum_once(all);
  if (all.rank() == 1) {
    std::this_thread::sleep_for(std::chrono::seconds(5));
  }
  sum_once(all);
  return {};
}

std::string mismatched(Group& all) {
  sum_once(all);
  const at::Tensor t = at::ones({all.size()});
  if (all.rank() == 1) {
    all.gather(t, at::ones({1}));
  } else {
    all.sum(t);
  }
  return {};
}

std::string other_lengths(Group& all) {
  all.begin_sum(at::ones({all.rank() == 0 ? 40000 : 50000})).wait();
  return {};
}

std::string other_rows(Group& all) {
  std::vector<std::int64_t> two(static_cast<std::size_t>(all.size()), 2), sent = two;
  if (all.rank() == 1) {
    sent[0] = 3;
  }
  all.exchange(at::empty({2 * all.size()}), at::ones({offsets_of(sent).back()}), {sent, two});
  return {};
}

std::string other_letter(Group& all) {
  if (all.rank() == 0) {
    all.send(at::ones({3}), 1);
  } else if (all.rank() == 1) {
    all.receive(at::ones({4}), 0);
  }
  sum_once(all);
  return {};
}

// The error of a call that was begun comes out of its wait, and again out of every later call.
std::string twice(Group& all) {
  sum_once(all);
  if (all.rank() == 1) {
    fail(Code::data, "the file is broken");
  }
  std::string first, second;
  Pending pending = all.begin_sum(at::ones({3}));
  try {
    pending.wait();
  } catch (const Error& e) {
    first = e.what();
  }
  try {
    all.barrier();
  } catch (const Error& e) {
    second = e.what();
  }
  const auto verdict = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  fail(Code::communication, "{}", verdict(first) == verdict(second) ? "twice: " + first : first + " and then " + second);
}

}  // namespace

std::string run_program(const std::string& name, Group& all) {
  static const std::map<std::string, std::function<std::string(Group&)>> programs{
      {"mixed", mixed},
      {"calls", calls},
      {"parts", parts},
      {"mesh", mesh},
      {"throws", throws},
      {"killed", killed},
      {"first_killed", first_killed},
      {"killed_elsewhere", killed_elsewhere},
      {"killed_behind", killed_behind},
      {"late", late},
      {"mismatched", mismatched},
      {"other_lengths", other_lengths},
      {"other_rows", other_rows},
      {"other_letter", other_letter},
      {"twice", twice},
  };
  return programs.at(name)(all);
}

}  // namespace kf::test
