// Removes inputs, nodes and edges of a spline network that matter little.
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "gradloom/exec/buffer.h"
#include "gradloom/formula/edges.h"
#include "gradloom/models/kan/network.h"

namespace gradloom {

// What stays. An input of a layer stays when one of its edges does and its node is reached.
struct KeptParts {
  std::vector<std::vector<bool>> nodes;  // (layer, i): inputs of each layer; the first are the network's
  std::vector<std::vector<bool>> edges;  // (layer, i * Out + j); Out are sums

  std::size_t count(std::size_t layer) const;
};

// Edges that score at least the threshold, and what connects them; each hidden layer keeps a node, and the network an
// input.
KeptParts keep_above(const formula::NetworkSamples& network, const formula::Scores& scores, double threshold);
// The `inputs` that score highest, with all that hangs on them.
KeptParts keep_inputs(const formula::NetworkSamples& network, const formula::Scores& scores, std::size_t inputs);

// The largest threshold of 1/2, 1/4, ... whose parts are good enough, and those parts.
std::pair<double, KeptParts> keep_while(const formula::NetworkSamples& network, const formula::Scores& scores,
                                        const std::function<bool(const KeptParts&)>& good_enough);

template <class T>
struct PrunedNetwork {
  kan::Network<T> network;
  Buffer<T> parameters, buffers;
};

// The smaller network. What is removed is replaced by its mean over the rows of `samples`, which biases take up. A
// product stays one where nothing enters one of its factors any more, which is then a bias.
template <class T>
PrunedNetwork<T> prune_network(const kan::Network<T>& network, const ModelArrays<T>& arrays,
                               const formula::NetworkSamples& samples, const KeptParts& kept);

// The same without changing shapes: weights of edges that are gone become 0, their means go to the biases, which the
// network has.
template <class T>
void clear_edges(const kan::Network<T>& network, const formula::NetworkSamples& samples, const KeptParts& kept,
                 std::span<T> parameters);

// Edges of a network with weights that are not 0: (layer, i * Out + j).
template <class T>
std::vector<std::vector<bool>> live_edges(const kan::Network<T>& network, std::span<const T> parameters);

}  // namespace gradloom
