#pragma once
// What a checkpoint says of the data: a line for each source, below it its files. A run that goes on compares it and names what differs.
//
//   1f0c...              one source, or "HASH NAME" of a mixture, or what the loader adds ("holdout=0.1")
//     9ab2... data.txt   a file of it
//   evaluation           from here on the evaluation sets

#include <string>
#include <string_view>
#include <vector>

namespace kf {

struct SourceFiles;

/// A file of a source, by its name below the source's folder.
struct FilePrint {
  std::string name;
  std::string hash;
};

/// Sources of more files are not recorded file by file: a checkpoint stays small.
inline constexpr std::size_t kMostFilePrints = 2000;

/// Of samples: the size, both ends, and places in between (of all files together some thousands). Reads them; throws Code::data.
std::vector<FilePrint> sampled_prints(const SourceFiles& files);

/// The lines below a source's own.
std::string file_lines(const std::vector<FilePrint>& files);

struct EvalRecord {
  std::string name;  // "" for the one that has none
  std::string fingerprint;
};
/// The whole record of a run.
std::string data_record(const std::string& training, const std::vector<EvalRecord>& evaluation);

/// In words, "" where nothing changed: "the data files have changed since ... was saved: a.txt, b.txt (gone)".
struct DataChanges {
  std::string training;
  std::string evaluation;
};
/// What the record of a checkpoint does not have (an older program wrote less) is not compared. `only`: how a single source is called.
DataChanges data_changes(const std::string& before, const std::string& after, const std::string& since, const std::string& only = {});

}  // namespace kf
