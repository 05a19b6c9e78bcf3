#include "train/profile/place_costs.h"

#include <algorithm>
#include <cctype>

#include "core/text.h"
#include "core/text_table.h"

namespace kf {
namespace {

constexpr std::size_t kShown = 10;
constexpr std::int64_t kWorthAName = 10;  // an operator with less than a tenth of a place is not what it is about

std::string millis(double nanos) { return fixed(nanos / 1e6, 3); }

std::string percent(double part, double whole) { return whole > 0 ? fixed(100 * part / whole, 1) + " %" : ""; }

/// The layers of a model as one: "layers.3.attention" is "layers.*.attention".
std::string together(const std::string& label) {
  const std::size_t layers_end = std::min(label.find(" > "), label.size());
  std::string out;
  for (std::size_t i = 0; i < label.size(); ++i) {
    const bool number = i < layers_end && i > 0 && label[i - 1] == '.' && std::isdigit(static_cast<unsigned char>(label[i])) != 0;
    if (!number) {
      out += label[i];
      continue;
    }
    while (i + 1 < layers_end && std::isdigit(static_cast<unsigned char>(label[i + 1])) != 0) {
      ++i;
    }
    out += '*';
  }
  return out;
}

/// The largest first, ten at most.
template <class Item, class Size>
std::vector<const Item*> largest(const std::vector<Item>& items, const Size& size) {
  std::vector<const Item*> out;
  for (const Item& item : items) {
    out.push_back(&item);
  }
  std::stable_sort(out.begin(), out.end(), [&](const Item* a, const Item* b) { return size(*a) > size(*b); });
  out.resize(std::min(out.size(), kShown));
  return out;
}

}  // namespace

void PlaceCosts::Cost::add(const Cost& other) {
  own += other.own;
  calls += other.calls;
  for (const auto& [name, time] : other.operators) {
    operators[name] += time;
  }
}

void PlaceCosts::add(const ThreadEvents& thread, bool trains) {
  Costs& costs = trains ? training_ : beside_;
  std::vector<Cost*> cost_of(thread.places.size(), nullptr);
  for (const TraceEvent& event : thread.events) {
    const TracePlace& place = thread.places[event.place];
    Cost*& cost = cost_of[event.place];
    cost = cost != nullptr ? cost : &costs[{place.phase, place.label}];
    cost->own += event.own;
    if (place.kind == TraceKind::op) {
      cost->operators[place.name] += event.own;
      calls_[place.name] += trains ? 1 : 0;
    } else {
      ++cost->calls;
    }
  }
}

void PlaceCosts::add_step(std::int64_t took) {
  ++steps_;
  total_ += took;
}

std::string PlaceCosts::table(const Costs& costs, const std::string& title) const {
  const std::vector<Costs::value_type> all(costs.begin(), costs.end());
  const double steps = static_cast<double>(std::max<std::int64_t>(1, steps_));
  std::vector<std::vector<std::string>> rows{{title, "", "ms a step", "share", "calls", "mostly"}};
  for (const Costs::value_type* const entry : largest(all, [](const Costs::value_type& e) { return e.second.own; })) {
    const auto& [key, cost] = *entry;
    const auto most =
        std::max_element(cost.operators.begin(), cost.operators.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const bool has_most = most != cost.operators.end() && most->second * kWorthAName >= cost.own && cost.own > 0;
    rows.push_back(
        {key.first.empty() ? "step" : key.first, key.second, millis(static_cast<double>(cost.own) / steps),
         percent(static_cast<double>(cost.own), static_cast<double>(total_)), to_text(cost.calls),
         has_most ? format("{} {}", most->first, percent(static_cast<double>(most->second), static_cast<double>(cost.own))) : ""});
  }
  return text_table(rows, {2, 3, 4});
}

std::string PlaceCosts::operators() const {
  std::map<std::string, std::int64_t> times;
  for (const auto& [key, cost] : training_) {
    for (const auto& [name, time] : cost.operators) {
      times[name] += time;
    }
  }
  const std::vector<std::pair<std::string, std::int64_t>> all(times.begin(), times.end());
  const double steps = static_cast<double>(std::max<std::int64_t>(1, steps_));
  std::vector<std::vector<std::string>> rows{{"operator", "ms a step", "share", "calls"}};
  for (const auto* const entry : largest(all, [](const auto& e) { return e.second; })) {
    const auto calls = calls_.find(entry->first);
    rows.push_back({entry->first, millis(static_cast<double>(entry->second) / steps),
                    percent(static_cast<double>(entry->second), static_cast<double>(total_)),
                    calls != calls_.end() ? to_text(calls->second) : ""});
  }
  return text_table(rows, {1, 2, 3});
}

std::string PlaceCosts::text() const {
  Costs single = training_;
  std::int64_t known = 0;
  for (const auto& [key, cost] : single) {
    known += cost.own;
  }
  single[{"", "(what is in no range)"}].own = std::max<std::int64_t>(0, total_ - known);
  Costs alike;
  for (const auto& [key, cost] : single) {
    alike[{key.first, together(key.second)}].add(cost);
  }
  const double mean = static_cast<double>(total_) / static_cast<double>(std::max<std::int64_t>(1, steps_));
  std::string out = format("{} {} of {} ms\n\n", steps_, steps_ == 1 ? "step" : "steps", millis(mean));
  out += table(alike, "place");
  if (alike.size() != single.size()) {
    out += '\n' + table(single, "one by one");
  }
  out += '\n' + operators();
  if (!beside_.empty()) {
    out += '\n' + table(beside_, "beside the steps");
  }
  return out;
}

}  // namespace kf
