#include "checkpoint/weights_file.h"

#include "checkpoint/files/stored_tensors.h"
#include "checkpoint/foreign/state_dict.h"
#include "checkpoint/pickle/saved_file.h"

namespace kf {

void load_weights_file(const fs::path& path, Model& model, const VocabRows& rows, const Placements& placements) {
  if (pickle::is_saved_file(MappedFile(path).bytes())) {
    load_weights_from(open_state_dict(path), path, model, rows, placements);
  } else {
    load_weights_from(StoredTensors(path), model, rows, placements);
  }
}

}  // namespace kf
