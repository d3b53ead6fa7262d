// The family of spline networks: data, model of each stage, refits and refinement between them.
#pragma once

#include <limits>
#include <optional>

#include "gradloom/data/ranges.h"
#include "gradloom/models/kan/device_network.h"
#include "gradloom/models/kan/dual.h"
#include "gradloom/session/families/kan/options.h"
#include "gradloom/session/family.h"
#include "gradloom/session/rows.h"

namespace gradloom {

template <class T>
class KanFamily final : public Family<T, kan::Network<T>, RowDataset<T>, KanOptions> {
 public:
  using Model = kan::Network<T>;
  using Data = RowDataset<T>;
  using Source = RowSplits;
  using DeviceModel = kan::DeviceNetwork<T>;

  static constexpr double kLargestInput = std::numeric_limits<T>::max();

  // Throws invalid_input when the loss does not fit the classes.
  KanFamily(KanOptions options, const Source& source);

  std::optional<Data> new_rows(const RowDataset<double>& rows) const override { return convert<T>(rows, centres_); }
  // Inputs are scaled by buffers; the name of the scale stands beside them, and what is subtracted before.
  ModelDescription describe() const override;
  static KanFamily from_model(const KanOptions& options, const ModelDescription& description);

  Model model(std::size_t stage) const override;
  std::string stage_note(std::size_t stage) const override;  // "grid 10"
  TrainState<T> start(const Exec& ex, std::size_t restart) const override;
  // Refines the grid, where it is another one.
  void take_over(const Model& trained, TrainState<T>& state) const override;
  // The same between stages, and removes what the options of the stage say.
  void enter_stage(const Exec& ex, std::size_t stage, TrainState<T>& state) const override;
  bool refines(std::size_t stage) const override;  // a finer grid, and nothing else that losses do not tell
  // Refits grids where the options ask for it.
  bool before_epoch(const Exec& ex, std::size_t stage, std::uint64_t epoch, TrainState<T>& state) const override;
  Result<void> restore(const Model& model, TrainState<T>& state) const override {
    return model.derive(state.buffers.span());
  }

  // What pruning has left: `pruned` with `edges`, `edges_before` and the names of `inputs`.
  nlohmann::json conclude(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                          const Metrics& metrics) const override;
  std::map<std::string, double> metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                        const Data& data, View<const T, 2> y) const override;
  // Inputs outside of the grids; columns that the precision cannot hold, or that are no use as they are.
  std::vector<std::string> warnings(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const override;
  std::map<std::string, std::size_t> rows_outside() const override;
  std::optional<std::size_t> new_rows_outside(const RowDataset<double>& rows) const override {
    return count_outside(schema_.ranges, rows);
  }
  // Rows far outside of the training data.
  std::vector<std::string> data_warnings(const Data& rows, std::string_view name) const override;
  CheckSubject<Model> check_subject(const Exec& ex, std::size_t samples) const override;
  static double exact_derivative(const Model& model, const ModelArrays<T>& arrays, const RowBatch<T>& batch,
                                 View<const T, 2> dl_dy, std::size_t i) requires std::same_as<T, double> {
    return kan::dual_derivative(model, arrays, batch, {dl_dy.data(), dl_dy.extent(0) * dl_dy.stride(0)},
                                dl_dy.stride(0), i);
  }

  const RowSchema& schema() const { return schema_; }
  const RowCentres& centres() const { return centres_; }
  std::vector<double> output_centres() const override { return centres_.target; }

 private:
  void prune_state(const Exec& ex, std::size_t stage, TrainState<T>& state) const;
  double loss_of(const Exec& ex, std::size_t stage, const ModelArrays<T>& arrays) const;

  using Base = Family<T, Model, Data, KanOptions>;
  using Base::options_, Base::train_, Base::validation_, Base::test_;

  RowSchema schema_;
  RowCentres centres_;
  ColumnRanges<T> ranges_;      // of the training rows, centred
  ColumnRanges<T> far_ranges_;  // the same; a feature that stands for a category can always be 0 or 1
  std::vector<std::string> table_warnings_;
};

}  // namespace gradloom
