// Rewriting expressions as the application sees it: a network learns one pass of the rules, and is applied until it
// keeps everything.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "gradloom/app/families/rewrite/options.h"
#include "gradloom/app/family.h"
#include "gradloom/app/report.h"
#include "gradloom/app/settings.h"
#include "gradloom/io/run_folder.h"
#include "gradloom/models/graph/rewrite_loss.h"
#include "gradloom/models/graph/rewrite_path.h"
#include "gradloom/models/graph/tree_network.h"

namespace gradloom {

// The loss of trees, for everything that asks for the loss of a batch. `options.kind` is cross_entropy; its reduction
// is over trees. `partials` is not used.
template <class T>
double evaluate_loss(const Exec& ex, const LossOptions& options, const TreeBatch<T>& batch, View<const T, 2> y,
                     View<T, 2> dl_dy, std::span<double>) {
  const double trees = static_cast<double>(batch.size);
  const double factor = options.scale / (options.reduction == Reduction::mean && batch.size > 0 ? trees : 1.0);
  return graph::rewrite_loss<T>(ex, batch, y, dl_dy, factor);
}

}  // namespace gradloom

namespace gradloom::app {

// Training samples are all passes of the training expressions whose edits are proven to be exact edit paths, rule by
// rule; validation and test samples are the first pass of expressions that are none of those.
template <class T>
class RewriteFamily {
 public:
  static constexpr bool kOwnLoss = true;  // not one over rows
  using Scalar = T;
  using Model = graph::TreeNetwork<T>;
  using Data = TreeDataset<T>;
  using Options = RewriteOptions;

  static Result<RewriteFamily> load(const Options& options, const std::filesystem::path& data_root);

  const Options& options() const { return options_; }

  const Data& train() const { return *train_; }
  const Data* validation() const { return validation_ ? &*validation_ : nullptr; }
  const Data* test() const { return test_ ? &*test_ : nullptr; }

  Model model(std::size_t stage) const;
  std::string stage_note(std::size_t stage) const;
  TrainState<T> start(const Exec& ex, std::size_t restart) const;
  void enter_stage(const Exec&, std::size_t, TrainState<T>&) const {}
  bool before_epoch(const Exec&, std::size_t, std::uint64_t, TrainState<T>&) const { return false; }
  bool goal_reached(const Exec&, const Model&, const ModelArrays<T>&, std::uint64_t) const { return false; }
  Result<void> restore(const Model&, TrainState<T>&) const { return {}; }

  // edit_accuracy (of nodes) and pass_match (of expressions) after one pass; exact_match, ged (mean distance to the
  // normal form, unit costs; ged_exact is the share that was proven) and settled after rewriting to the end;
  // keep_everything: the share that needs no rewriting. Of at most 1000 expressions.
  std::map<std::string, double> metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                        const Data& data, View<const T, 2> y) const;
  // Adds `large` (metrics on larger expressions) and `paths` (how many edits were proven) to the summary.
  Result<void> finish(const Exec& ex, const Model& model, const ModelArrays<T>& arrays, const RunFolder& folder,
                      nlohmann::json& summary) const;
  Result<nlohmann::json> study(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const;
  CheckSubject<Model> check_subject(const Exec& ex, std::size_t samples) const;

  void describe(const Exec& ex, const Model& model, const ModelArrays<T>& arrays, const nlohmann::json& summary,
                Report& report) const;
  std::vector<std::string> warnings(const Exec&, const Model&, const ModelArrays<T>&) const { return {}; }

 private:
  explicit RewriteFamily(Options options) : options_(std::move(options)) {}
  void make_data();
  std::map<std::string, double> final_metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                              std::span<const Expression> expressions) const;
  nlohmann::json large_metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const;

  Options options_;
  std::optional<Data> train_, validation_, test_;
  std::vector<Expression> large_;
  std::size_t exact_ = 0, beaten_ = 0, open_ = 0;  // paths of training samples
};

}  // namespace gradloom::app
