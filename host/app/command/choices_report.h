#pragma once
// kf-host eval --choices: the file, its scores, and how they are shown.

#include <iosfwd>
#include <string>

#include "app/script/inference.h"
#include "train/eval/choices.h"

namespace kf {

struct ChoicesRequest {
  std::string file;
  std::string items;  // where each question's scores go, JSON lines; "" for nowhere
  bool json = false;
  ChoiceOptions options;
};

/// Scores the questions of the file and prints accuracies. Throws Code::data for a faulty file.
void report_choices(const LoadedModel& loaded, const ChoicesRequest& request, std::ostream& out);

}  // namespace kf
