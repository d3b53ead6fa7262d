// Options that families of rows have in common.
#pragma once

#include <optional>
#include <string>

#include "gradloom/base/choice.h"
#include "gradloom/base/file_name.h"
#include "gradloom/data/source.h"
#include "gradloom/session/options/family.h"

namespace gradloom {

// How the size of the network and its training are chosen.
enum class SizePolicy { given, automatic };
inline constexpr Choice<SizePolicy> kSizePolicies[] = {
    {SizePolicy::given, "given", "as the recipe sets them"},
    {SizePolicy::automatic, "auto", "chosen for the table, except keys that the recipe sets"},
};

struct RowDataOptions {
  std::string root;                     // folder of the files; empty: the current one, then that of the data
  std::optional<FileName> path;         // unset: formula
  std::optional<FileName> test_path;    // in the columns of `path`; empty: none
  std::optional<FileName> labels;       // of an IDX file; unset: derived from its name
  std::optional<std::string> formula;   // several targets are separated by ';'
  std::size_t test_samples = 1000;      // of a formula
  std::optional<std::uint64_t> seed;    // of formula samples and of the split; unset: that of training
  RowSource source;                     // how files and formulas are read; the paths are above
  double validation = 0.1, test = 0.2;  // fractions held out
  std::size_t folds = 0, fold = 0;      // cross-validation; 0: off
};

struct RowFamilyOptions : FamilyOptions {
  Task task = Task::regression;
  RowDataOptions data;
};

// The loss is that of the task, unless one is chosen.
inline TrainOptions train_options(const RowFamilyOptions& o) {
  TrainOptions t = o.train;
  const LossKind usual = o.task == Task::classification ? LossKind::cross_entropy : LossKind::mse;
  t.loss.kind = o.train.loss_kind.value_or(usual);
  return t;
}

}  // namespace gradloom
