#pragma once
// State dicts: tensors by name in a file of torch.save (.pt, .pth, .bin, .ckpt).

#include "checkpoint/files/weights.h"
#include "checkpoint/pickle/saved_file.h"
#include "core/fs.h"

namespace kf {

/// The tensors of a state dict, also of one that lies in a training checkpoint under "state_dict", "model_state_dict", "model" or "module"
/// (the log says so). Names lose what wrappers of PyTorch put into them ("_orig_mod.", "module."), and, in files of Lightning, the name of
/// the model's attribute where all of them have it. What is no tensor is left out, with a log line. Throws Code::checkpoint.
NamedTensors open_state_dict(const fs::path& path);
NamedTensors open_state_dict(const std::shared_ptr<const pickle::SavedFile>& file);

}  // namespace kf
