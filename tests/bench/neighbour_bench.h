#pragma once
// What a step takes while another program computes on one of the cores.

#include <string>

namespace kf {

struct Registries;

namespace bench {

class Goals;

/// Steps of kf-host alone and beside a program that never rests, for several ways in which threads wait for each other, as rows of a
/// Markdown table. `model`: small, debug or tiny; "" for small and tiny.
void bench_neighbour(const Registries& registries, const std::string& model, Goals& goals);

}  // namespace bench
}  // namespace kf
