// Removes inputs, nodes and edges of a spline network that matter little.
#pragma once

#include <vector>

#include "gradloom/exec/buffer.h"
#include "gradloom/formula/edges.h"
#include "gradloom/models/kan/network.h"

namespace gradloom::app {

// What stays. An input of a layer stays when one of its edges does and its node is reached.
struct KeptParts {
  std::vector<std::vector<bool>> nodes;  // (layer, i): inputs of each layer; the first are the network's
  std::vector<std::vector<bool>> edges;  // (layer, i * Out + j)

  std::size_t count(std::size_t layer) const;
};

// Edges that score at least the threshold, and what connects them; each hidden layer keeps a node, and the network an
// input.
KeptParts keep_above(const formula::NetworkSamples& network, const formula::Scores& scores, double threshold);
// The `inputs` that score highest, with all that hangs on them.
KeptParts keep_inputs(const formula::NetworkSamples& network, const formula::Scores& scores, std::size_t inputs);

template <class T>
struct PrunedNetwork {
  kan::Network<T> network;
  Buffer<T> parameters, buffers;
};

// The smaller network. What is removed is replaced by its mean over the rows of `samples`, which biases take up.
template <class T>
PrunedNetwork<T> prune_network(const kan::Network<T>& network, const ModelArrays<T>& arrays,
                               const formula::NetworkSamples& samples, const KeptParts& kept);

}  // namespace gradloom::app
