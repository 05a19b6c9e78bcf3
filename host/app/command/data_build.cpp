#include <iostream>

#include "app/command/data_commands.h"
#include "app/command/data_job.h"
#include "core/log.h"
#include "data/cache/cached_documents.h"

namespace kf {

int data_build(const Arguments& args) {
  const DataJob job(parse_data_call(args, "usage: kf-host data build JOB|PATH [--section.key=value ...]"));
  for (const DataSource& source : job.sources(true)) {
    const SourceFiles files = find_files(source.spec, job.config());
    if (files.tokens) {
      std::cout << source.what() << ": token files, which need no cache\n";
      continue;
    }
    const TokenizedText text = open_tokenized_text(files, source.spec, source.options);
    if (text.cached == nullptr) {
      std::cout << source.what() << ": " << text.documents->describe() << "; nothing to cache\n";
    } else {
      std::cout << source.what() << ": " << text.documents->describe() << "; " << (text.built ? "built " : "already in ")
                << text.cached->folder().string() << "\n";
    }
  }
  return 0;
}

}  // namespace kf
