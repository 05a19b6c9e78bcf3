#pragma once
// Weights of a model by name: out for a checkpoint, in from any safetensors file that has them.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/files/load_rules.h"
#include "checkpoint/files/pieces.h"
#include "checkpoint/files/stored_tensors.h"
#include "checkpoint/files/weights_by_name.h"
#include "model/model.h"

namespace kf {

/// Where the output head of a model comes from when it takes its weights from elsewhere (checkpoint.init_head).
enum class HeadSource {
  file,       // as it lies there
  embedding,  // the file's embedding: a tied file for a model with a head of its own, or the other way round
  fresh       // what the model has: its initial values
};

/// What becomes of rows of the vocabulary that a model has and a file lacks (checkpoint.init_vocab): embedding, output head and its bias;
/// and of the head itself.
struct VocabRows {
  enum class Fill { none, init, mean };  // refused; as the model was initialised, by seed and name; the mean of the file's rows
  Fill fill = Fill::none;
  std::int64_t vocab_size = 0;  // of the model; 0: nothing is known of it
  HeadSource head = HeadSource::file;
};

/// A line for a message, "\n  missing in the file (12): a, b, ...", of at most ten names; "" for none.
std::string list_names(const char* what, const std::vector<std::string>& names);

/// All `pieces_of` a model that lies whole here, as files have them.
std::vector<std::pair<std::string, at::Tensor>> weights_of(Model& model);

/// Whether a weight needs its first values although a file follows: files may lack it, or `rows` take from them what the file lacks.
bool needs_first_values(const Parameter& parameter, const VocabRows& rows = {}, const LoadRules& rules = {});

/// The tensors of a file as they stand. `stored` outlives what is returned.
NamedTensors named(const StoredTensors& stored);

/// Copies the tensors of `stored` into masters and values, of each weight the part that lies here. A file with names that begin with
/// "weights." gives those alone, without the prefix (and the log says so). A shared weight may stand under any of its names; under several,
/// they must agree. A stack of experts may stand as one tensor or as one an expert. Buffers that are not counted (running means) may be
/// missing, and so may the weights of adapters, all of them together. One Code::checkpoint error lists what is missing, unexpected or
/// misshapen; the model is then as it was. By `rules` weights may stay unfilled (LoadRules::leave_gaps, draw_unfilled).
void load_weights_from(const StoredTensors& stored, Model& model, const VocabRows& rows = {}, const Placements& placements = own_placement,
                       const LoadRules& rules = {});
/// The same for tensors from elsewhere; `path` is for messages.
void load_weights_from(const NamedTensors& tensors, const fs::path& path, Model& model, const VocabRows& rows = {},
                       const Placements& placements = own_placement, const LoadRules& rules = {});

}  // namespace kf
