// What the store says of trials.

#include <map>
#include <utility>

#include "core/error.h"
#include "sweep/columns.h"
#include "sweep/store.h"

namespace kf::sweep {

std::vector<Trial> Store::heads(const std::string& where, const SqlValue& value) {
  std::vector<Trial> out;
  for (const SqlRow& row : database_.run(
           "SELECT trial_id, number, state, datetime_start, datetime_complete FROM trials WHERE " + where + " ORDER BY number", {value})) {
    Trial trial;
    trial.id = integer(row[0]);
    trial.number = integer(row[1]);
    trial.state = state_of(text(row[2]));
    trial.started = text(row[3]);
    trial.completed = text(row[4]);
    out.push_back(std::move(trial));
  }
  return out;
}

std::vector<Trial> Store::read_trials(const std::string& where, const SqlValue& value) {
  const std::string chosen = "(SELECT trial_id FROM trials WHERE " + where + ") ";
  std::vector<Trial> out = heads(where, value);
  std::map<std::int64_t, std::size_t> place;
  for (std::size_t i = 0; i < out.size(); ++i) {
    place[out[i].id] = i;
  }
  for (const SqlRow& row :
       database_.run("SELECT trial_id, param_name, param_value, distribution_json FROM trial_params WHERE trial_id IN " + chosen +
                         "ORDER BY param_id",
                     {value})) {
    out[place.at(integer(row[0]))].parameters.push_back({text(row[1]), Distribution::from_json(text(row[3])), real(row[2])});
  }
  for (const SqlRow& row :
       database_.run("SELECT trial_id, value, value_type FROM trial_values WHERE objective = 0 AND trial_id IN " + chosen, {value})) {
    out[place.at(integer(row[0]))].value = from_stored(row[1], text(row[2]));
  }
  for (const SqlRow& row : database_.run(
           "SELECT trial_id, step, intermediate_value, intermediate_value_type FROM trial_intermediate_values WHERE trial_id IN " + chosen,
           {value})) {
    out[place.at(integer(row[0]))].reports[integer(row[1])] = from_stored(row[2], text(row[3]));
  }
  for (const SqlRow& row :
       database_.run("SELECT trial_id, \"key\", value_json FROM trial_user_attributes WHERE trial_id IN " + chosen, {value})) {
    out[place.at(integer(row[0]))].attributes[text(row[1])] = json(text(row[2]));
  }
  return out;
}

std::vector<Trial> Store::trials() {
  return database_.read([&] {
    std::vector<Trial> all = heads("study_id = ?", study_);
    std::string unread;  // ids
    std::size_t count = 0;
    for (const Trial& trial : all) {
      const auto known = ended_.find(trial.id);
      if (known == ended_.end() || known->second.state != trial.state || known->second.completed != trial.completed) {
        unread += (unread.empty() ? "" : ", ") + std::to_string(trial.id);
        ++count;
      }
    }
    std::map<std::int64_t, Trial> now;
    if (count > 0) {
      const std::string these = count == all.size() ? "" : " AND trial_id IN (" + unread + ")";
      for (Trial& trial : read_trials("study_id = ?" + these, study_)) {
        now.emplace(trial.id, std::move(trial));
      }
    }
    for (Trial& trial : all) {
      const auto read = now.find(trial.id);
      if (read == now.end()) {
        trial = ended_.at(trial.id);
        continue;
      }
      trial = std::move(read->second);
      if (trial.finished()) {
        ended_[trial.id] = trial;
      }
    }
    return all;
  });
}

Trial Store::trial(std::int64_t number) {
  std::vector<Trial> found =
      database_.read([&] { return read_trials("study_id = " + std::to_string(study_) + " AND number = ?", number); });
  KF_CHECK(found.size() == 1, Code::data, "the sweep '{}' has no trial {}", name_, number);
  return std::move(found.front());
}

}  // namespace kf::sweep
