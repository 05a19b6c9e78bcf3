#pragma once
// Which kernels compute the matrix products of a run, kept over its restarts.

#include <ATen/core/Tensor.h>

#include "config/schema/config.h"
#include "config/tree/node.h"
#include "kernels/product/product.h"
#include "model/model.h"

namespace kf {

/// Chooses how matrix products are computed (kernels/product/choose_products.h), for the whole process, and says so in the log. What an
/// earlier start of the run chose on a processor like this one, `kept`, is taken again: another kernel would change the last bits, and a
/// resumed run is to equal an undisturbed one. On a GPU, with train.cpu_products = "plain" and where train.compile_model is false, products
/// are LibTorch's own. Returns what a checkpoint is to keep; null where there was nothing to choose.
config::Node choose_run_products(Model& model, const config::TrainConfig& train, at::ScalarType compute, const config::Node& kept);

/// What a checkpoint keeps of that, for its model outside of its run: the run's own products where they were chosen on a processor like
/// this one, with as many threads, so that an evaluation has the run's own numbers; else LibTorch's. Chooses nothing.
Products kept_products(const config::Node& kept);

}  // namespace kf
