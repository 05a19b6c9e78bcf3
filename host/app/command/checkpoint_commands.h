#pragma once
// The checkpoint commands, one file each. Arguments come without the command's name; the exit status is returned.

#include "app/command/commands.h"

namespace kf {

/// `kf-host checkpoint list RUN`: what was saved, and whether it is whole.
int checkpoint_list(const Arguments& args);
/// `kf-host checkpoint verify CHECKPOINT|RUN ...`: every byte against its checksum; status 6 when not.
int checkpoint_verify(const Arguments& args);
/// `kf-host checkpoint info CHECKPOINT`: job, weights and optimizer, by headers alone.
int checkpoint_info(const Arguments& args);
/// `kf-host checkpoint diff A B`: which weights moved how far.
int checkpoint_diff(const Arguments& args);
/// `kf-host checkpoint average A B ... -o OUT`: the uniform soup.
int checkpoint_average(const Arguments& args);
/// `kf-host checkpoint convert CHECKPOINT OUT [--dtype T] [--experts FORM]`.
int checkpoint_convert(const Arguments& args);
/// `kf-host checkpoint merge-lora CHECKPOINT FOLDER`: as `adapter export --merged`.
int checkpoint_merge_lora(const Arguments& args);
/// `kf-host checkpoint prune RUN --keep-last N [--dry-run]`: what retention would remove.
int checkpoint_prune(const Arguments& args);

}  // namespace kf
