// How the sums of a layer become its nodes: most nodes are sums, the last ones products of two.
#pragma once

#include <cstddef>
#include <span>

namespace gradloom {

// Node j is sum j; of the last `products` nodes, sum j times sum j + products. So the factors of a product are two of
// the layer's nodes + products sums, and every sum enters one node.
struct LayerNodes {
  std::size_t nodes = 0;
  std::size_t products = 0;  // at most nodes

  std::size_t sums() const { return nodes + products; }
  std::size_t plain() const { return nodes - products; }  // nodes that are sums: the first ones
  bool multiplies(std::size_t node) const { return node >= plain(); }
  std::size_t second_factor(std::size_t node) const { return node + products; }
  std::size_t node_of(std::size_t sum) const { return sum < nodes ? sum : sum - products; }
};

// The nodes that the sums of layer l become, in a network of these widths (inputs, hidden layers, outputs) whose hidden
// layers have so many products each; none are no products at all.
inline LayerNodes layer_nodes(std::span<const std::size_t> widths, std::span<const std::size_t> products,
                              std::size_t l) {
  return {widths[l + 1], l < products.size() ? products[l] : 0};
}

}  // namespace gradloom
