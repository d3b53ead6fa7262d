// The family of classifiers made of logic gates: rows become bits, with thresholds from the training part.
#pragma once

#include <limits>
#include <optional>

#include "gradloom/data/binarise.h"
#include "gradloom/models/logic/classifier.h"
#include "gradloom/models/logic/dual.h"
#include "gradloom/session/families/gates/options.h"
#include "gradloom/session/family.h"
#include "gradloom/session/rows.h"

namespace gradloom {

template <class T>
class GatesFamily final : public Family<T, logic::GateClassifier<T>, RowDataset<T>, GatesOptions> {
 public:
  using Model = logic::GateClassifier<T>;
  using Data = RowDataset<T>;
  using Source = RowSplits;

  static constexpr double kLargestInput = std::numeric_limits<double>::infinity();  // they become bits

  GatesFamily(GatesOptions options, const Source& source);

  std::optional<Data> new_rows(const RowDataset<double>& rows) const override {
    return convert<T>(binarise(rows, bits_));
  }
  // The bits, each with its feature and threshold.
  ModelDescription describe() const override;
  static GatesFamily from_model(const GatesOptions& options, const ModelDescription& description);

  Model model(std::size_t stage) const override;
  Result<void> restore(const Model& model, TrainState<T>& state) const override {
    return model.derive(state.buffers.span());
  }

  // accuracy (soft) and hard_accuracy (of the circuit; the lowest class on ties).
  std::map<std::string, double> metrics(const Exec& ex, const Model& model, const ModelArrays<T>& arrays,
                                        const Data& data, View<const T, 2> y) const override;
  nlohmann::json study(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const override;
  std::optional<circuit::AnyCircuit> hard_circuit(const Model& model, const ModelArrays<T>& arrays) const override;
  std::vector<std::string> warnings(const Exec& ex, const Model& model, const ModelArrays<T>& arrays) const override;
  std::map<std::string, std::size_t> rows_outside() const override { return outside_; }
  std::optional<std::size_t> new_rows_outside(const RowDataset<double>& rows) const override {
    return count_outside(schema_.ranges, rows);
  }
  CheckSubject<Model> check_subject(const Exec& ex, std::size_t samples) const override;
  static double exact_derivative(const Model& model, const ModelArrays<T>& arrays, const RowBatch<T>& batch,
                                 View<const T, 2> dl_dy, std::size_t i) requires std::same_as<T, double> {
    return logic::dual_derivative(model, arrays, batch, dl_dy, i);
  }

  const RowSchema& schema() const { return schema_; }

 private:
  using Base = Family<T, Model, Data, GatesOptions>;
  using Base::options_, Base::train_, Base::validation_, Base::test_;

  RowSchema schema_;  // of the features that the bits are made of
  std::vector<BitColumn> bits_;
  std::map<std::string, std::size_t> outside_;  // counted before rows became bits
  std::vector<std::string> table_warnings_;
};

}  // namespace gradloom
