// A spline network as values on rows: what its scores are computed from, and its formula, edge by edge.
#pragma once

#include <span>

#include "gradloom/base/layer_nodes.h"
#include "gradloom/formula/functions.h"
#include "gradloom/formula/search.h"

namespace gradloom::formula {

// Layers of functions on edges, seen at N rows. Node (0, i) is input i after normalisation. Edges of a layer lead to
// its Out sums, which become its nodes (base/layer_nodes.h).
struct NetworkSamples {
  std::vector<std::size_t> widths;                     // nodes: inputs, hidden layers, outputs
  std::vector<std::size_t> multiply;                   // of each hidden layer, nodes that multiply; empty: none
  std::vector<std::vector<std::vector<double>>> node;  // (layer, i): N values that arrive at input i of the layer
  // (layer, i * Out + j): N values of the function from i to j.
  std::vector<std::vector<std::vector<double>>> edge;
  std::vector<std::vector<double>> bias;          // (layer, j)
  std::vector<double> input_mean, input_scale;    // node = (x - mean) * scale
  std::vector<double> output_mean, output_scale;  // y = mean + scale * last layer

  // Of the nodes above a layer of edges.
  LayerNodes nodes(std::size_t layer) const { return layer_nodes(widths, multiply, layer); }
  // Where the edges of a layer lead to.
  std::size_t sums(std::size_t layer) const { return nodes(layer).sums(); }
  std::size_t rows() const { return node.empty() || node[0].empty() ? 0 : node[0][0].size(); }
};

// A score, and its standard error from the data (a jackknife over ten blocks of rows).
struct Score {
  double value = 0, error = 0;
};

// Shares of the variance of the outputs, by backward attribution (docs/math/formula.md). The score of a product is
// shared by its factors; a constant one has nothing of it. Inputs add up to 1 unless the outputs are constant; a column
// that does not vary scores exactly 0.
struct Scores {
  std::vector<std::vector<Score>> edges;  // (layer, i * Out + j)
  std::vector<std::vector<Score>> nodes;  // (layer, i): the inputs of each layer; nodes[0] are the inputs
  std::vector<Score> columns;             // of the table: sums over the inputs of each
};
// column_of (Inputs): the column that each input was made of, from 0 without a gap; empty: each is one of its own.
Scores score(const NetworkSamples& network, std::span<const std::size_t> column_of = {});

struct ExplainedEdge {
  std::size_t layer = 0, from = 0, to = 0;  // from a node to a sum
  Score score;
  bool kept = true;
  std::vector<EdgeCandidate> candidates;  // best first; the first is in the formula
};

struct EdgeFormulaOptions {
  double threshold = 1e-3;  // edges that score less are left out
  std::size_t output = 0;
  Functions functions;
  EdgeFitOptions fit;
};

// Every edge, with candidates where it matters or is fixed. An edge whose function is not defined on its values has
// none.
std::vector<ExplainedEdge> explain_edges(const Exec& ex, const NetworkSamples& network, const Scores& scores,
                                         const EdgeFormulaOptions& options);

// The formula in the raw inputs: each edge that is kept becomes its first candidate, then all constants are fitted
// together to `table`, whose rows need not be those of the samples. A candidate that would make a function that is
// forbidden everywhere of those before it (1/x of x^2 is a lorentz) is removed from its edge; an edge that all of its
// functions are forbidden on in this way has none left and becomes its mean.
Expr edge_formula(const NetworkSamples& network, std::vector<ExplainedEdge>& edges, const Table& table,
                  std::size_t output, const Functions& functions = {});

}  // namespace gradloom::formula
