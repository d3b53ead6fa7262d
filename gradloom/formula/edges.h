// A spline network as values on rows: what its scores are computed from, and its formula, edge by edge.
#pragma once

#include <optional>
#include <span>

#include "gradloom/base/layer_nodes.h"
#include "gradloom/formula/functions.h"
#include "gradloom/formula/search.h"
#include "gradloom/formula/work.h"

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
// output: the only one whose variance is shared out; none: all outputs share 1 equally.
Scores score(const NetworkSamples& network, std::span<const std::size_t> column_of = {},
             std::optional<std::size_t> output = {});

struct ExplainedEdge {
  std::size_t layer = 0, from = 0, to = 0;  // from a node to a sum
  Score score;
  bool kept = true;
  bool compared = true;  // with all functions that it may become; false: the work was used up, it becomes a line
  std::vector<EdgeCandidate> candidates;  // best first; the first is in the formula
};

struct EdgeFormulaOptions {
  double threshold = 1e-3;  // edges that score less are left out
  std::size_t output = 0;
  Functions functions;
  EdgeFitOptions fit;
};

// Every edge, with candidates where it matters or is fixed. An edge whose function is not defined on its values has
// none. Edges that are fixed come first, then those with the highest score.
std::vector<ExplainedEdge> explain_edges(Work& work, const NetworkSamples& network, const Scores& scores,
                                         const EdgeFormulaOptions& options);

// The formula in the raw inputs: each edge that is kept becomes its first candidate, then all constants are fitted
// together to `table`, whose rows need not be those of the samples; as far as the work allows, the second and third
// candidates of each edge are tried as well, and come first where they are better, and edges are left out. A candidate
// that would make a function that is forbidden everywhere of those before it (1/x of x^2 is a lorentz), or one that is
// not defined on the wider rows (domain.h), is removed from its edge; an edge that has none left becomes its mean.
Expr edge_formula(Work& work, const NetworkSamples& network, std::vector<ExplainedEdge>& edges, const Table& table,
                  std::size_t output, const Functions& functions = {});

// confirm_exact() of such a formula. Edges have many functions with constants of their own, and some of them come as
// close to simpler ones as one likes: it is refused with more than two constants that did not snap, and where a part of
// it is as good as a line on the rows.
std::optional<Expr> confirm_edges(const Expr& formula, const SplitRows& rows, const AllowedFormula& allowed);

}  // namespace gradloom::formula
