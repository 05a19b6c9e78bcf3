#pragma once
// Whether a layer may compute as one node of the graph, without what lies inside of it.

namespace kf {

/// Not while somebody looks at results of modules, keeps results of products, puts off gradients of weights, or differentiates twice.
bool may_be_one_node();

}  // namespace kf
