// The family of networks that rewrite expressions: one pass of the rules is learned, and applied until nothing changes.
#pragma once

#include <optional>

#include "gradloom/data/rewrite_dataset.h"
#include "gradloom/models/graph/dual.h"
#include "gradloom/models/graph/rewrite_loss.h"
#include "gradloom/models/graph/tree_network.h"
#include "gradloom/session/families/rewrite/options.h"
#include "gradloom/session/family.h"

namespace gradloom {

template <class T>
double loss_factor(const LossOptions& options, const TreeBatch<T>& batch, std::size_t) {
  const double trees = static_cast<double>(batch.size);
  return options.scale / (options.reduction == Reduction::mean && batch.size > 0 ? trees : 1.0);
}

// The loss of trees, for everything that asks for the loss of a batch. `options.kind` is cross_entropy; its reduction
// is over trees. `partials` is not used.
template <class T>
double evaluate_loss(const Exec& ex, const LossOptions& options, const TreeBatch<T>& batch, View<const T, 2> y,
                     View<T, 2> dl_dy, std::span<double>) {
  return graph::rewrite_loss<T>(ex, batch, y, dl_dy, options.factor ? *options.factor : loss_factor(options, batch, 0));
}

// What a family is opened from that draws its data itself.
struct NoSource {};

// Training samples are all passes of the training expressions whose edits are proven to be exact edit paths, rule by
// rule; validation and test samples are the first pass of expressions that are none of those.
template <class T>
class RewriteFamily final : public Family<T, graph::TreeNetwork<T>, TreeDataset<T>, RewriteOptions> {
 public:
  using Model = graph::TreeNetwork<T>;
  using Data = TreeDataset<T>;
  using Source = NoSource;

  // Draws the expressions. Throws invalid_input when options do not fit each other.
  RewriteFamily(RewriteOptions options, Source);

  // How large the expressions are that were trained on.
  ModelDescription describe() const override;
  static RewriteFamily from_model(const RewriteOptions& options, const ModelDescription& description);
  std::size_t most_nodes() const { return most_nodes_; }
  void check_part(const Model&, const Data&) const override {}  // drawn for its loss

  Model model(std::size_t stage) const override;

  // edit_accuracy (of nodes) and pass_match (of expressions) after one pass; exact_match, ged (mean distance to the
  // normal form, unit costs; ged_exact is the share that was proven) and settled after rewriting to the end;
  // keep_everything: the share that needs no rewriting. Of at most 1000 expressions.
  std::map<std::string, double> metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                        const Data& data, View<const T, 2> y) const override;
  // Those of them that are known after rewriting to the end, of expressions that the family was not made of.
  std::map<std::string, double> final_metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                              std::span<const Expression> expressions) const;
  nlohmann::json study(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const override;
  // Adds `large` (metrics on larger expressions) and `paths` (how many edits were proven).
  nlohmann::json conclude(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                          const Metrics& metrics) const override;
  CheckSubject<Model> check_subject(const Exec& ex, std::size_t samples) const override;
  static double exact_derivative(const Model& model, const ModelArrays<T>& arrays, const TreeBatch<T>& batch,
                                 View<const T, 2> dl_dy, std::size_t i) requires std::same_as<T, double> {
    return graph::dual_derivative(model, arrays, batch, dl_dy, i);
  }

  // Training samples whose edits are proven to be exact, those that a cheaper path beats, and those left open.
  struct Proofs {
    std::size_t exact = 0, beaten = 0, open = 0;
  };
  const Proofs& proofs() const { return proofs_; }

 private:
  using Base = Family<T, Model, Data, RewriteOptions>;
  using Base::options_, Base::train_, Base::validation_, Base::test_;
  RewriteFamily(RewriteOptions options, std::size_t most_nodes)
      : Family<T, Model, Data, RewriteOptions>(std::move(options)), most_nodes_(most_nodes) {}
  void make_data();
  nlohmann::json large_metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const;

  std::size_t most_nodes_ = 0;  // of an expression of the data
  std::vector<Expression> large_;
  Proofs proofs_;
};

}  // namespace gradloom
