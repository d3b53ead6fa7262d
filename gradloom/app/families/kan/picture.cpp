#include "gradloom/app/families/kan/picture.h"

#include <algorithm>
#include <cmath>

#include "gradloom/session/families/kan/functions.h"

namespace gradloom::app {
namespace {

constexpr std::size_t kPoints = 65;                // of a curve
constexpr std::size_t kBins = 32;                  // of a density
constexpr std::size_t kSamples = 2000;             // at most
constexpr std::size_t kEvaluations = 100'000'000;  // functions times samples of a layer, about
constexpr std::size_t kAllDrawn = 4096;            // networks of more functions show a part of them
constexpr std::size_t kMostDrawn = 64;             // then, of each layer
static_assert(kMostDrawn >= kGalleryCurves);

// (in, out): the share of a destination's standard deviation that comes over each edge.
template <class T>
std::vector<double> importance_of(const LayerFunctions<T>& f, const kan::Network<T>& network,
                                  const typename kan::Network<T>::Tape& tape, std::size_t l, std::size_t samples) {
  const std::size_t in = f.shape().in, out = f.shape().out;
  samples = std::clamp<std::size_t>(kEvaluations / (in * out), std::min<std::size_t>(samples, 16), samples);
  std::vector<double> share(in * out), value(out), sum(out), squares(out), total(out, 0.0);
  for (std::size_t i = 0; i < in; ++i) {
    std::fill(sum.begin(), sum.end(), 0.0);
    std::fill(squares.begin(), squares.end(), 0.0);
    for (std::size_t m = 0; m < samples; ++m) {
      f.at(i, network.layer_input(tape, l, m, i), 0, out, value.data());
      for (std::size_t j = 0; j < out; ++j) sum[j] += value[j], squares[j] += value[j] * value[j];
    }
    for (std::size_t j = 0; j < out; ++j) {
      const double n = static_cast<double>(samples), mean = sum[j] / n;
      const double variance = std::max(0.0, squares[j] / n - mean * mean);
      share[i * out + j] = std::sqrt(variance);
      total[j] += variance;
    }
  }
  for (std::size_t e = 0; e < share.size(); ++e)
    share[e] = total[e % out] > 0 ? share[e] / std::sqrt(total[e % out]) : 0.0;
  return share;
}

template <class T>
void draw(const LayerFunctions<T>& f, EdgeFunction& edge) {
  for (std::size_t m = 0; m < kPoints; ++m) {
    const double x =
        edge.grid_lo + (edge.grid_hi - edge.grid_lo) * static_cast<double>(m) / static_cast<double>(kPoints - 1);
    double y = 0.0;
    f.at(edge.from, static_cast<T>(x), edge.to, edge.to + 1, &y);
    edge.x.push_back(x);
    edge.y.push_back(y);
  }
}

// Values that arrive at input i of a layer, counted in bins of its grid.
template <class T>
std::vector<double> density_of(const kan::Network<T>& network, const typename kan::Network<T>::Tape& tape,
                               std::size_t l, std::size_t i, std::size_t samples, double low, double high) {
  std::vector<double> counts(kBins, 0.0);
  for (std::size_t m = 0; m < samples; ++m) {
    const double at = (static_cast<double>(network.layer_input(tape, l, m, i)) - low) / (high - low) * kBins;
    if (at >= 0 && at <= kBins) counts[std::min<std::size_t>(static_cast<std::size_t>(at), kBins - 1)] += 1;
  }
  return counts;
}

}  // namespace

template <class T>
SplineNetwork spline_picture(const Exec& ex, const kan::Network<T>& network, const ModelArrays<T>& arrays,
                             const RowDataset<T>& rows) {
  SplineNetwork picture;
  picture.title = "The network and what it learned";
  picture.note =
      "Each box is the function on one edge, spline and base branch together, over its input values. The "
      "stronger the line, the larger the edge's share of the next node's variation.";
  picture.widths = network.options().widths, picture.multiply = network.options().multiply;
  picture.input_names = rows.feature_names();
  picture.output_names = rows.is_classification() ? rows.class_names() : rows.target_names();
  const RowBatch<T> batch = first_rows(rows.all(), kSamples);
  const auto tape = evaluate_rows(ex, network, arrays, batch).tape;
  for (std::size_t l = 0; l < network.layers(); ++l) picture.functions += network.shape(l).in * network.shape(l).out;
  for (std::size_t l = 0; l < network.layers(); ++l) {
    const LayerFunctions<T> f(network, l, arrays);
    const std::size_t out = f.shape().out;
    const std::vector<double> importance = importance_of(f, network, tape, l, batch.size);
    // Those that matter most of this layer; of equal ones the first.
    double drawn_from = 0.0;
    if (picture.functions > kAllDrawn && importance.size() > kMostDrawn) {
      std::vector<double> sorted = importance;
      const auto at = sorted.begin() + kMostDrawn - 1;
      std::nth_element(sorted.begin(), at, sorted.end(), std::greater<>());
      drawn_from = *at;
    }
    std::vector<std::vector<double>> density(f.shape().in);
    std::size_t equal = 0;
    for (std::size_t e = 0; e < importance.size(); ++e) {
      picture.all_importance += importance[e];
      const bool curve =
          picture.functions <= kAllDrawn || importance[e] > drawn_from || (importance[e] == drawn_from && equal++ == 0);
      if (!curve && importance.size() > kLargestMap) continue;
      const std::size_t i = e / out;
      EdgeFunction edge{l, i, e % out, {}, {}, importance[e], f.low(i), f.high(i)};
      if (curve) {
        draw(f, edge);
        if (density[i].empty()) density[i] = density_of(network, tape, l, i, batch.size, f.low(i), f.high(i));
        edge.density = density[i];
      }
      picture.edges.push_back(std::move(edge));
    }
  }
  return picture;
}

template SplineNetwork spline_picture(const Exec&, const kan::Network<float>&, const ModelArrays<float>&,
                                      const RowDataset<float>&);
template SplineNetwork spline_picture(const Exec&, const kan::Network<double>&, const ModelArrays<double>&,
                                      const RowDataset<double>&);

}  // namespace gradloom::app
