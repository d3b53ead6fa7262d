// What the product shaders share: gradloom/kernels/product/product.h with row-major matrices (B, padded width).
#include "gradloom/kernels/shader/real.glsl"

layout(push_constant) uniform Shape {
#include "gradloom/kernels/product/push.inc"
} shape;

uint node_stride() { return (shape.nodes + 15) / 16 * 16; }
uint sum_stride() { return (shape.nodes + shape.products + 15) / 16 * 16; }
uint plain() { return shape.nodes - shape.products; }
uint my_element() { return group_number() * kGroup + gl_LocalInvocationID.x; }
