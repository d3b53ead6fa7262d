// Options of a run that trains a spline network.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradloom/models/kan/network.h"
#include "gradloom/session/options/rows.h"

namespace gradloom {

// How inputs are scaled before the first layer.
enum class InputScale { none, standard, range };
inline constexpr Choice<InputScale> kInputScales[] = {
    {InputScale::none, "none", "not at all"},
    {InputScale::standard, "standard", "to mean 0 and standard deviation 1"},
    {InputScale::range, "range", "to the range of the grid"},
};

// `widths` follow from the data and `hidden`.
struct KanModelOptions : kan::NetworkOptions {
  SizePolicy size = SizePolicy::given;  // automatic: chosen before training, from the data
  std::vector<std::size_t> hidden{5};   // widths
  InputScale normalise = InputScale::none;
  bool scale_targets = true;         // regression: predict in units of the targets' standard deviation
  std::vector<std::uint64_t> refit;  // epochs before which grids are refitted; the number of epochs: after the last
  bool refit_inputs = false;         // the first layer's grids too
  double refit_margin = 0.02;        // how far grids reach beyond the data, as a fraction of its range
  double refit_uniform = 0.05;       // free knots: 0 at quantiles, 1 evenly
  // Before a stage that is not the first, at most one of them; unset: nothing is removed.
  std::optional<double> prune;              // edges and inputs with a smaller share of the outputs' variance
  std::optional<std::size_t> prune_inputs;  // all but this number of inputs
  std::optional<double> prune_worse;        // as much as possible while the loss grows by at most this share

  bool prunes() const { return prune || prune_inputs || prune_worse; }
};

// The search for a formula after the last stage.
struct KanFormulaOptions {
  bool search = false;
  double effort = 60000;               // units of a million multiply-adds
  double threshold = 1e-3;             // edges with a smaller score are left out of approximations
  std::vector<std::string> functions;  // of the library that edges are compared with; empty: all
  std::vector<std::string> define;     // "name = expression in x": more functions
  std::vector<std::string> forbid;     // functions, or "LAYER.FROM.TO function" for one edge
  std::vector<std::string> fix;        // "LAYER.FROM.TO function"
};

struct KanOptions : RowFamilyOptions {
  KanOptions() { family = "kan"; }

  KanModelOptions model;
  KanFormulaOptions formula;
  std::vector<KanOptions> stages;
};

// The network of a stage for data of these widths.
inline kan::NetworkOptions network_options(const KanOptions& stage, std::size_t inputs, std::size_t outputs) {
  kan::NetworkOptions o = stage.model;
  o.widths = {inputs};
  o.widths.insert(o.widths.end(), stage.model.hidden.begin(), stage.model.hidden.end());
  o.widths.push_back(outputs);
  return o;
}

}  // namespace gradloom
