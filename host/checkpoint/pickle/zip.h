#pragma once
// A zip archive whose entries are stored, not compressed: what torch.save writes. The libraries of zip archives hand out streams; here an
// entry is a range of the file, to be mapped and read in parts, and an archive may itself be a part of one (.distcp).

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "checkpoint/pickle/unpickle.h"

namespace kf::pickle {

struct ZipEntry {
  std::uint64_t begin = 0;  // in the archive
  std::uint64_t size = 0;
  std::uint32_t crc = 0;    // 0: the writer computed none (torch.serialization.set_crc32_options)
  bool compressed = false;  // its bytes are of no use here
};

/// Whether bytes begin as an archive does.
bool is_zip(std::span<const std::byte> bytes);

/// The entries by name, by the directory at the archive's end (zip64, too); each lies inside of the archive. Throws Code::checkpoint naming
/// the file and what is wrong with it: encrypted entries, an archive in several files, bounds that do not hold.
std::map<std::string, ZipEntry> zip_entries(std::span<const std::byte> archive, const Place& place);

/// Throws where an entry is compressed.
void check_stored(const ZipEntry& entry, const std::string& name, const Place& place);

/// Throws where the bytes of an entry have another checksum than the archive says.
void check_crc(std::span<const std::byte> bytes, const ZipEntry& entry, const std::string& name, const Place& place);

}  // namespace kf::pickle
