#include "checkpoint/pickle/globals.h"

#include <algorithm>
#include <array>
#include <string>

namespace kf::pickle {
namespace {

constexpr NumberType kTypes[] = {
    {"torch.float32", "torch.FloatStorage", 4},
    {"torch.float64", "torch.DoubleStorage", 8},
    {"torch.float16", "torch.HalfStorage", 2},
    {"torch.bfloat16", "torch.BFloat16Storage", 2},
    {"torch.int8", "torch.CharStorage", 1},
    {"torch.int16", "torch.ShortStorage", 2},
    {"torch.int32", "torch.IntStorage", 4},
    {"torch.int64", "torch.LongStorage", 8},
    {"torch.uint8", "torch.ByteStorage", 1},
    {"torch.uint16", "", 2},
    {"torch.uint32", "", 4},
    {"torch.uint64", "", 8},
    {"torch.bool", "torch.BoolStorage", 1},
    {"torch.complex64", "torch.ComplexFloatStorage", 8},
    {"torch.complex128", "torch.ComplexDoubleStorage", 16},
    {"torch.float8_e4m3fn", "", 1},
    {"torch.float8_e5m2", "", 1},
    {"torch.float8_e4m3fnuz", "", 1},
    {"torch.float8_e5m2fnuz", "", 1},
};

constexpr std::string_view kOthers[] = {
    // Tensors, and what is beside them in state dicts.
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._tensor._rebuild_from_type_v2",
    "torch.Tensor",
    "torch.nn.parameter.Parameter",
    "torch.UntypedStorage",
    "torch.storage.UntypedStorage",
    "torch.Size",
    "torch.device",
    "torch.serialization._get_layout",
    "collections.OrderedDict",
    "collections.Counter",
    "collections.defaultdict",
    "builtins.set",
    "builtins.frozenset",
    "builtins.bytearray",
    "builtins.complex",
    "builtins.dict",
    "builtins.list",
    "builtins.int",
    "builtins.float",
    "_codecs.encode",
    // Numbers and settings beside them in training checkpoints.
    "numpy.core.multiarray.scalar",
    "numpy._core.multiarray.scalar",
    "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray._reconstruct",
    "numpy.ndarray",
    "numpy.dtype",
    "argparse.Namespace",
    // The index of a distributed checkpoint.
    "torch.distributed.checkpoint.metadata.Metadata",
    "torch.distributed.checkpoint.metadata.MetadataIndex",
    "torch.distributed.checkpoint.metadata.TensorStorageMetadata",
    "torch.distributed.checkpoint.metadata.ChunkStorageMetadata",
    "torch.distributed.checkpoint.metadata.BytesStorageMetadata",
    "torch.distributed.checkpoint.metadata.TensorProperties",
    "torch.distributed.checkpoint.metadata.StorageMeta",
    "torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING",
    "torch.distributed._shard.sharded_tensor.metadata.TensorProperties",
    "torch.distributed._shard.sharded_tensor.metadata.MEM_FORMAT_ENCODING",
    "torch.distributed.checkpoint.filesystem._StorageInfo",
    "torch.distributed.checkpoint.filesystem._StoragePrefix",
    "pathlib.PosixPath",
    "pathlib._local.PosixPath",
    "pathlib.Path",
};

}  // namespace

std::string_view allowed_global(std::string_view module, std::string_view name) {
  std::string full(module == "__builtin__" ? "builtins" : module);
  full.append(".").append(name);
  if (const NumberType* type = number_type(full)) {
    return full == type->dtype ? type->dtype : type->storage;
  }
  const auto* const found = std::find(std::begin(kOthers), std::end(kOthers), full);
  return found == std::end(kOthers) ? std::string_view() : *found;
}

const NumberType* number_type(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const NumberType& type) {
    return name == type.dtype || (!type.storage.empty() && name == type.storage);
  });
  return found == std::end(kTypes) ? nullptr : found;
}

}  // namespace kf::pickle
