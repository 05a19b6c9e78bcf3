#pragma once
// data.batch_transforms, eval.batch_transforms: registered transforms of whole batches, between loader and model.

#include <memory>
#include <string>
#include <vector>

#include "data/loader/loader.h"

namespace kf {

/// `loader`, each batch of which goes through the transforms `names`, in this order, on the thread that asks for it: threads that make
/// batches ahead see none of them. `loader` itself where there are no names. Throws Code::config for an unknown one.
std::unique_ptr<Loader> with_batch_transforms(std::unique_ptr<Loader> loader, const std::vector<std::string>& names,
                                              const config::Config& config, const LoaderOptions& options, bool training);

}  // namespace kf
