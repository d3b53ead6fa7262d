// Nodes of a layer from its sums: gradloom/kernels/product/product.h, forward. An invocation owns a node of a sample.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "gradloom/kernels/product/layout.glsl"

layout(std430, binding = 0) readonly buffer Sums { real sums[]; };
layout(std430, binding = 1) writeonly buffer Nodes { real nodes[]; };

void main() {
  const uint element = my_element(), s = element / node_stride(), j = element % node_stride();
  if (s >= shape.batch) return;
  const uint row = s * sum_stride();
  real node = j < shape.nodes ? sums[row + j] : real(0);
  if (j >= plain() && j < shape.nodes) {
    precise real product = node * sums[row + j + shape.products];
    node = product;
  }
  nodes[element] = node;
}
