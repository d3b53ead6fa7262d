// Attention: the bits of its definition on every instruction set, and gradients against differences.
#include "gradloom/kernels/message/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gradloom/base/float_mode.h"
#include "gradloom/kernels/simd_targets.h"
#include "tests/kernels/graph_kernels_support.h"

namespace gradloom::kernels {
namespace {

struct AttentionShape {
  std::size_t heads, channels, edge_features;

  friend std::ostream& operator<<(std::ostream& out, const AttentionShape& s) {
    return out << s.heads << " heads of " << s.channels << ", " << s.edge_features << " edge features";
  }
};

constexpr AttentionShape kAttentionShapes[] = {{1, 1, 0},  {1, 7, 0},  {1, 8, 0},  {1, 16, 0}, {1, 50, 0}, {1, 64, 0},
                                               {1, 96, 0}, {2, 8, 0},  {8, 8, 0},  {3, 5, 0},  {2, 4, 0},  {9, 1, 0},
                                               {2, 12, 0}, {3, 24, 0}, {5, 16, 0}, {1, 7, 1},  {1, 16, 3}, {2, 8, 2},
                                               {3, 5, 3},  {2, 4, 17}, {1, 64, 4}, {7, 3, 1}};

// Everything that one forward and backward pass reads and writes.
template <class T>
struct AttentionPass {
  test::SquarePattern pattern;
  AttentionShape shape;
  std::size_t width, stride, edge_stride;
  Buffer<T> left, right, a, edge, edge_weight, dl_dy;
  Buffer<T> alpha, self_alpha, y, ds, self_ds, dl_dleft, dl_dright, dl_da, dl_dedge_weight, dl_dedge;

  explicit AttentionPass(const AttentionShape& s)
      : shape(s),
        width(s.heads * s.channels),
        stride(round_up(width, std::size_t{16})),
        edge_stride(round_up(s.edge_features, std::size_t{16})) {
    const std::size_t n = pattern.rows(), arcs = pattern.arcs();
    left = rows_of(n, 1), right = rows_of(n, 2), a = rows_of(1, 3), edge_weight = rows_of(s.edge_features, 4);
    dl_dy = rows_of(n, 5), edge = test::random_numbers<T>(arcs * edge_stride, 6);
    const T other(7);  // all of it is to be overwritten
    for (auto* b : {&y, &dl_dleft, &dl_dright}) *b = Buffer<T>(n * stride), std::fill_n(b->data(), b->size(), other);
    dl_da = Buffer<T>(stride), dl_dedge_weight = Buffer<T>(s.edge_features * stride);
    for (auto* b : {&dl_da, &dl_dedge_weight}) std::fill_n(b->data(), b->size(), other);
    alpha = Buffer<T>(arcs * s.heads), ds = Buffer<T>(arcs * s.heads);
    self_alpha = Buffer<T>(n * s.heads), self_ds = Buffer<T>(n * s.heads);
    dl_dedge = Buffer<T>(arcs * edge_stride);
  }

  Buffer<T> rows_of(std::size_t rows, std::uint32_t sample) const {
    auto b = test::random_numbers<T>(rows * stride, sample);
    for (std::size_t i = 0; i < rows; ++i) std::fill_n(b.data() + i * stride + width, stride - width, T(0));
    return b;
  }

  message::Attention<T> attention() {
    return {.ptr = pattern.ptr.data(),
            .source = pattern.source.data(),
            .out_ptr = pattern.out_ptr.data(),
            .out_target = pattern.out_target.data(),
            .slot = pattern.slot.data(),
            .heads = shape.heads,
            .channels = shape.channels,
            .stride = stride,
            .left = left.data(),
            .right = right.data(),
            .a = a.data(),
            .edge_features = shape.edge_features,
            .edge_stride = edge_stride,
            .edge = edge.data(),
            .edge_weight = edge_weight.data(),
            .alpha = alpha.data(),
            .self_alpha = self_alpha.data(),
            .y = y.data()};
  }

  void forward(Variant variant) { message::attend<T>(variant, attention(), 0, pattern.rows()); }

  void backward(Variant variant) {
    const message::AttentionGradient<T> g{.dl_dy = dl_dy.data(),
                                          .ds = ds.data(),
                                          .self_ds = self_ds.data(),
                                          .dl_dleft = dl_dleft.data(),
                                          .dl_dright = dl_dright.data(),
                                          .dl_da = dl_da.data(),
                                          .dl_dedge_weight = dl_dedge_weight.data(),
                                          .dl_dedge = dl_dedge.data()};
    const std::size_t n = pattern.rows();
    message::attend_gradient<T>(variant, attention(), g, 0, n);
    message::attend_source_gradient<T>(variant, attention(), g, 0, n);
    message::attend_edge_gradient<T>(variant.arithmetic, attention(), g, 0, n);
  }
};

template <class T>
class AttentionKernel : public ::testing::Test {};
using AttentionScalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(AttentionKernel, AttentionScalars);

TYPED_TEST(AttentionKernel, GivesTheBitsOfTheDefinitionOnEveryTarget) {
  using T = TypeParam;
  const FlushSubnormals flush;
  for (const Arithmetic arithmetic : available_arithmetics())
    for (const AttentionShape& shape : kAttentionShapes) {
      const auto run = [&](Variant variant) {
        AttentionPass<T> pass(shape);
        pass.forward(variant);
        pass.backward(variant);
        return pass;
      };
      const AttentionPass<T> expected = run(Variant(Variant::reference, arithmetic));
      for (const std::string& target : simd_targets(arithmetic)) {
        const ForceSimdTarget force(target);
        const AttentionPass<T> found = run(Variant(Variant::fast, arithmetic));
        const auto expect = [&](Buffer<T> AttentionPass<T>::*which, const char* name) {
          EXPECT_TRUE(test::same_bits(expected.*which, found.*which)) << name << ", " << target << ", " << shape;
        };
        using P = AttentionPass<T>;
        expect(&P::alpha, "alpha"), expect(&P::self_alpha, "self_alpha"), expect(&P::y, "y"), expect(&P::ds, "ds");
        expect(&P::self_ds, "self_ds"), expect(&P::dl_dleft, "dl_dleft"), expect(&P::dl_dright, "dl_dright");
        expect(&P::dl_da, "dl_da"), expect(&P::dl_dedge_weight, "dl_dedge_weight");
      }
    }
}

TEST(Attention, GradientsMatchCentralDifferencesAlsoAtHubs) {
  for (const AttentionShape& shape : {AttentionShape{1, 7, 0}, {2, 8, 0}, {3, 5, 2}}) {
    AttentionPass<double> pass(shape);
    const auto loss = [&] {
      pass.forward(Variant::fast);
      double sum = 0;
      for (std::size_t k = 0; k < pass.y.size(); ++k) sum += pass.y[k] * pass.dl_dy[k];
      return sum;
    };
    loss();
    pass.backward(Variant::fast);
    // Arrays of rows, of which the first `logical` numbers count. Steps are small: a kink between the two points of a
    // difference would show as an error of the size of a gradient.
    const auto check = [&](const char* name, Buffer<double>& x, const Buffer<double>& gradient, std::size_t row,
                           std::size_t logical, std::size_t count) {
      const double step = 1e-6;
      for (std::size_t k = 0; k < std::min(count, x.size()); ++k) {
        if (k % row >= logical) continue;
        const double at = x[k];
        x[k] = at + step;
        const double above = loss();
        x[k] = at - step;
        const double below = loss();
        x[k] = at;
        EXPECT_NEAR(gradient[k], (above - below) / (2 * step), 1e-7) << name << " " << k << ", " << shape;
      }
    };
    const std::size_t all = pass.pattern.rows() * pass.stride;
    check("left", pass.left, pass.dl_dleft, pass.stride, pass.width, all);
    check("right", pass.right, pass.dl_dright, pass.stride, pass.width, all);
    check("a", pass.a, pass.dl_da, pass.stride, pass.width, all);
    check("edge_weight", pass.edge_weight, pass.dl_dedge_weight, pass.stride, pass.width, all);
    if (shape.edge_features > 0)
      check("edge", pass.edge, pass.dl_dedge, pass.edge_stride, shape.edge_features, 20 * pass.edge_stride);
  }
}

}  // namespace
}  // namespace gradloom::kernels
