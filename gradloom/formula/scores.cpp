#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "gradloom/base/error.h"
#include "gradloom/formula/edges.h"

namespace gradloom::formula {
namespace {

constexpr std::size_t kBlocks = 10;

// The variance over the rows outside of block `without` (kBlocks: all rows); exactly 0 for equal numbers.
double variance(const std::vector<double>& v, std::size_t without) {
  double sum = 0, low = 1e308, high = -1e308;
  std::size_t n = 0;
  const auto each = [&](const auto& f) {
    for (std::size_t i = 0; i < v.size(); ++i)
      if (without == kBlocks || i * kBlocks / v.size() != without) f(v[i]);
  };
  each([&](double x) { sum += x, ++n, low = std::min(low, x), high = std::max(high, x); });
  if (n == 0 || low == high) return 0;
  const double mean = sum / static_cast<double>(n);
  double squares = 0;
  each([&](double x) { squares += (x - mean) * (x - mean); });
  return squares / static_cast<double>(n);
}

double mean_without(const std::vector<double>& v, std::size_t without) {
  double sum = 0;
  std::size_t n = 0;
  for (std::size_t i = 0; i < v.size(); ++i)
    if (without == kBlocks || i * kBlocks / v.size() != without) sum += v[i], ++n;
  return n == 0 ? 0 : sum / static_cast<double>(n);
}

// A sum of a layer at every row.
std::vector<double> sum_values(const NetworkSamples& s, std::size_t layer, std::size_t j) {
  const std::size_t out = s.sums(layer);
  std::vector<double> v(s.rows(), s.bias[layer][j]);
  for (std::size_t i = 0; i < s.widths[layer]; ++i)
    for (std::size_t r = 0; r < v.size(); ++r) v[r] += s.edge[layer][i * out + j][r];
  return v;
}

// Scores of the sums of a layer from those of its nodes. Of a product a b of independent factors the variance is
// E(b)^2 V(a) + E(a)^2 V(b) + V(a) V(b); both have the same share of the last part.
std::vector<double> score_sums(const NetworkSamples& s, std::size_t layer, std::size_t without,
                               std::vector<double> nodes) {
  const LayerNodes shape = s.nodes(layer);
  nodes.resize(shape.sums(), 0.0);
  for (std::size_t j = shape.plain(); j < shape.nodes; ++j) {
    const std::size_t second = shape.second_factor(j);
    const std::vector<double> a = sum_values(s, layer, j), b = sum_values(s, layer, second);
    const double va = variance(a, without), vb = variance(b, without);
    const double ea = mean_without(a, without), eb = mean_without(b, without);
    const double of_a = eb * eb * va + va * vb / 2, of_b = ea * ea * vb + va * vb / 2;
    const double share = of_a + of_b > 0 ? of_a / (of_a + of_b) : 0;
    nodes[second] = of_a + of_b > 0 ? nodes[j] * (1 - share) : 0;
    nodes[j] *= share;
  }
  return nodes;
}

// Inputs of one column depend on each other: of the 0/1 inputs of categories, one is 1 in every row. So the column's
// edges to a sum count as one function, whose variance they share as their own variances (`var`, (In, Out)) stand.
void count_columns_as_one(const NetworkSamples& s, std::span<const std::size_t> column_of, std::size_t without,
                          std::vector<double>& var) {
  const std::size_t out = s.sums(0);
  std::map<std::size_t, std::vector<std::size_t>> inputs;
  for (std::size_t i = 0; i < column_of.size(); ++i) inputs[column_of[i]].push_back(i);
  for (const auto& [column, members] : inputs) {
    if (members.size() < 2) continue;
    for (std::size_t j = 0; j < out; ++j) {
      std::vector<double> whole(s.rows(), 0.0);
      double apart = 0;
      for (const std::size_t i : members) {
        apart += var[i * out + j];
        for (std::size_t r = 0; r < whole.size(); ++r) whole[r] += s.edge[0][i * out + j][r];
      }
      const double factor = apart > 0 ? variance(whole, without) / apart : 0;
      for (const std::size_t i : members) var[i * out + j] *= factor;
    }
  }
}

// Scores without one block of rows.
Scores score_without(const NetworkSamples& s, std::span<const std::size_t> column_of, std::optional<std::size_t> output,
                     std::size_t without) {
  const std::size_t layers = s.edge.size();
  Scores scores;
  scores.edges.resize(layers), scores.nodes.resize(layers);
  // Outputs share the variance in their own units.
  const std::size_t outputs = s.widths.back();
  std::vector<double> above(outputs, 0.0);
  double total = 0;
  for (std::size_t j = 0; j < outputs; ++j) {
    if (output && j != *output) continue;
    std::vector<double> y(s.rows(), 0.0);
    for (std::size_t i = 0; i < s.widths[layers - 1]; ++i)
      for (std::size_t r = 0; r < y.size(); ++r) y[r] += s.edge[layers - 1][i * outputs + j][r];
    above[j] = variance(y, without) > 0 ? 1.0 : 0.0;
    total += above[j];
  }
  for (double& a : above) a = total > 0 ? a / total : 0;
  for (std::size_t l = layers; l-- > 0;) {
    const std::size_t in = s.widths[l], out = s.sums(l);
    above = score_sums(s, l, without, std::move(above));
    std::vector<double> var(in * out), sum(out, 0.0), below(in, 0.0);
    for (std::size_t e = 0; e < var.size(); ++e) var[e] = variance(s.edge[l][e], without);
    if (l == 0) count_columns_as_one(s, column_of, without, var);
    for (std::size_t e = 0; e < var.size(); ++e) sum[e % out] += var[e];
    scores.edges[l].resize(in * out);
    for (std::size_t e = 0; e < var.size(); ++e) {
      const double share = sum[e % out] > 0 ? above[e % out] * var[e] / sum[e % out] : 0;
      scores.edges[l][e].value = share;
      below[e / out] += share;
    }
    for (const double b : below) scores.nodes[l].push_back({b, 0});
    above = std::move(below);
  }
  for (std::size_t i = 0; i < above.size(); ++i) {
    const std::size_t column = column_of.empty() ? i : column_of[i];
    if (column >= scores.columns.size()) scores.columns.resize(column + 1);
    scores.columns[column].value += above[i];
  }
  return scores;
}

void add_errors(std::vector<std::vector<Score>>& all, const std::vector<std::vector<std::vector<Score>>>& without) {
  for (std::size_t l = 0; l < all.size(); ++l)
    for (std::size_t e = 0; e < all[l].size(); ++e) {
      double mean = 0, squares = 0;
      for (const auto& w : without) mean += w[l][e].value / static_cast<double>(kBlocks);
      for (const auto& w : without) squares += std::pow(w[l][e].value - mean, 2);
      all[l][e].error = std::sqrt(squares * static_cast<double>(kBlocks - 1) / static_cast<double>(kBlocks));
    }
}

}  // namespace

Scores score(const NetworkSamples& network, std::span<const std::size_t> column_of, std::optional<std::size_t> output) {
  if (!column_of.empty() && column_of.size() != network.widths.front())
    throw_invalid(
        fmt::format("there are columns of {} inputs; the network has {}", column_of.size(), network.widths.front()));
  Scores all = score_without(network, column_of, output, kBlocks);
  std::vector<std::vector<std::vector<Score>>> edges, nodes, columns;
  for (std::size_t b = 0; b < kBlocks; ++b) {
    Scores s = score_without(network, column_of, output, b);
    edges.push_back(std::move(s.edges)), nodes.push_back(std::move(s.nodes));
    columns.push_back({std::move(s.columns)});
  }
  add_errors(all.edges, edges);
  add_errors(all.nodes, nodes);
  std::vector<std::vector<Score>> one{std::move(all.columns)};
  add_errors(one, columns);
  all.columns = std::move(one.front());
  return all;
}

}  // namespace gradloom::formula
