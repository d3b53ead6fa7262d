// The cases on which the spline kernels are compared, differentiated and timed, and the memory of one such case.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/exec/buffer.h"
#include "gradloom/kernels/spline/spline.h"

namespace gradloom::kernels::spline {

struct Case {
  Shape shape;
  std::size_t batch = 1;

  std::string name() const {
    static constexpr const char* kPolicies[] = {"linear", "clamp", "extend", "zero"};
    return std::to_string(shape.in) + "x" + std::to_string(shape.out) + "_g" + std::to_string(shape.grid) + "_p" +
           std::to_string(shape.degree) + "_" + kPolicies[static_cast<int>(shape.outside)] +
           (shape.knots == Knots::free ? "_free" : "_uniform") + (shape.base ? "_base" : "") +
           (shape.bias ? "_bias" : "") + "_b" + std::to_string(batch);
  }
};

// Every degree with every policy and kind of knots; sizes, grids, batches and options take turns.
inline std::vector<Case> parity_cases() {
  constexpr std::size_t ins[] = {1, 2, 21, 7, 8, 17, 16, 3, 33}, outs[] = {1, 64, 24, 3, 8, 40, 16, 65, 130, 48, 17},
                        batches[] = {1, 64, 7, 256, 16, 257, 0, 255, 30, 600};
  constexpr unsigned grids[] = {1, 5, 2, 64, 3, 8, 12, 16, 1024};
  std::vector<Case> cases;
  std::size_t turn = 0;
  for (unsigned degree = 1; degree <= kMaxDegree; ++degree)
    for (const OutOfGrid outside : {OutOfGrid::linear, OutOfGrid::clamp, OutOfGrid::extend, OutOfGrid::zero})
      for (const Knots knots : {Knots::uniform, Knots::free})
        for (int repeat = 0; repeat < 2; ++repeat, ++turn) {
          Case c;
          c.shape = {ins[turn * 2 % 9],
                     outs[turn % 11],
                     grids[turn * 4 % 9],
                     degree,
                     turn % 2 == 0,
                     turn % 3 != 0,
                     outside,
                     knots};
          c.batch = batches[turn * 3 % 10];
          if (c.shape.grid >= 64) {  // the definition of weight_gradient takes its time
            c.shape.in = std::min<std::size_t>(c.shape.in, 3);
            if (c.shape.grid > 64) c.shape.out = std::min<std::size_t>(c.shape.out, 24);
          }
          cases.push_back(c);
        }
  for (const std::size_t batch : {64, 256, 600}) {  // the layers that are timed
    cases.push_back({{21, 64, 5, 3, false, true}, batch});
    cases.push_back({{64, 64, 5, 3, true, true}, batch});
    cases.push_back({{64, 24, 5, 3, false, false}, batch});
    cases.push_back({{5, 128, 64, 3, true, false}, batch});
  }
  // Where sorting by span changes its way: more than 16 and 32 spans; vectors of 32 samples that are not full.
  for (const std::size_t batch : {1, 31, 33, 257})
    for (const unsigned grid : {17u, 32u, 33u})
      cases.push_back({{batch == 33 ? 16u : 9u, 64, grid, 3, grid == 32, true}, batch});
  // Where the input gradient changes its way: few samples, a grid that is just too large to be packed; several blocks.
  for (const std::size_t batch : {15, 16})
    for (const unsigned grid : {5u, 9u, 10u})
      for (const unsigned degree : {2u, 3u}) cases.push_back({{9, 88, grid, degree, grid != 5, true}, batch});
  return cases;
}

// Small ones, for checks that cost a run per element.
inline std::vector<Case> gradient_cases() {
  std::vector<Case> cases;
  std::size_t turn = 0;
  for (unsigned degree = 2; degree <= kMaxDegree; ++degree)
    for (const OutOfGrid outside : {OutOfGrid::linear, OutOfGrid::clamp, OutOfGrid::extend, OutOfGrid::zero})
      for (const Knots knots : {Knots::uniform, Knots::free}) {
        Case c;
        constexpr std::size_t outs[] = {3, 9, 17, 66};
        c.shape = {1 + turn % 4, outs[turn % 4], 1 + static_cast<unsigned>(turn % 6),
                   degree,       turn % 2 == 0,  turn % 3 != 0,
                   outside,      knots};
        c.batch = turn % 5 == 0 ? 1 : 6;
        cases.push_back(c);
        ++turn;
      }
  return cases;
}

enum class Points {
  inside,      // of the grid, away from knots
  everywhere,  // also on knots, outside, far away
  hostile,     // also NaN and infinities
};

// A layer with random weights, knots and inputs, a tape, and room for every result. Moving it keeps the pointers valid.
template <class T>
struct Problem {
  Case what;
  Layer<T> layer;
  LayerTape<T> tape;
  Buffer<T> lo, hi, inverse_step, extended, inverse, weight, bias, x, dl_dy;
  Buffer<T> value, slope, base_value, base_slope, y, dl_dx, dl_dw, dl_db;
  Buffer<std::uint16_t> span;

  Problem(const Case& c, std::uint64_t seed, Points points) : what(c) {
    const Shape& s = c.shape;
    const std::size_t in_padded = s.in_padded(), out = s.out_padded(), basis = s.in * c.batch * basis_stride(s.degree);
    lo = Buffer<T>(in_padded), hi = Buffer<T>(in_padded), inverse_step = Buffer<T>(in_padded);
    weight = Buffer<T>(s.in * s.rows() * out), dl_dw = Buffer<T>(weight.size());
    bias = Buffer<T>(out), dl_db = Buffer<T>(out);
    x = Buffer<T>(in_padded * c.batch), dl_dx = Buffer<T>(x.size());
    y = Buffer<T>(out * c.batch), dl_dy = Buffer<T>(y.size());
    value = Buffer<T>(basis), slope = Buffer<T>(basis), span = Buffer<std::uint16_t>(s.in * c.batch);
    if (s.base) base_value = Buffer<T>(s.in * c.batch), base_slope = Buffer<T>(s.in * c.batch);
    layer.shape = s;
    make_grid(seed);
    fill(weight, RandomStream(seed, RandomUse::check, 1), s.in * s.rows(), s.out, out);
    fill(bias, RandomStream(seed, RandomUse::check, 2), 1, s.out, out);
    const RandomStream dy(seed, RandomUse::check, 3);
    std::uint32_t at = 0;
    for (std::size_t b = 0; b < c.batch; ++b)
      for (std::size_t j = 0; j < s.out; ++j)
        dl_dy[((j / kPanel) * c.batch + b) * kPanel + j % kPanel] = T(dy.normal(at++));
    make_points(seed, points);
    connect();
  }

  void connect() {
    const Shape& s = what.shape;
    layer.grid = {lo.data(), hi.data(), inverse_step.data(), extended.data(), inverse.data()};
    layer.weight = weight.data();
    layer.bias = s.bias ? bias.data() : nullptr;
    tape = {what.batch, x.data(), span.data(), value.data(), slope.data(), base_value.data(), base_slope.data()};
  }

 private:
  static void fill(Buffer<T>& to, const RandomStream& random, std::size_t rows, std::size_t columns,
                   std::size_t stride) {
    std::uint32_t at = 0;
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) to[r * stride + c] = T(random.normal(at++));
  }

  void make_grid(std::uint64_t seed) {
    const Shape& s = what.shape;
    const RandomStream random(seed, RandomUse::check, 4);
    const std::size_t knots = s.extended_knots(), p = s.degree;
    if (s.knots == Knots::free) extended = Buffer<T>(s.in * knots), inverse = Buffer<T>(s.in * p * knots);
    std::uint32_t at = 0;
    for (std::size_t i = 0; i < s.in; ++i) {
      std::vector<double> t(s.grid + 1);
      t[0] = -1 - random.uniform(at++);
      const double step = (1 + random.uniform(at++) - t[0]) / s.grid;
      for (unsigned k = 1; k <= s.grid; ++k)
        t[k] = t[k - 1] + step * (s.knots == Knots::free ? 0.5 + random.uniform(at++) : 1);
      lo[i] = T(t.front()), hi[i] = T(t.back());
      inverse_step[i] = T(s.grid) / (hi[i] - lo[i]);
      if (s.knots != Knots::free) continue;
      T* e = extended.data() + i * knots;
      for (unsigned k = 0; k <= s.grid; ++k) e[2 * p + k] = T(t[k]);
      for (std::size_t k = 1; k <= 2 * p; ++k) {
        e[2 * p - k] = T(t[0] - k * (t[1] - t[0]));
        e[2 * p + s.grid + k] = T(t[s.grid] + k * (t[s.grid] - t[s.grid - 1]));
      }
      for (std::size_t d = 1; d <= p; ++d)
        for (std::size_t m = 0; m + d < knots; ++m) inverse[(i * p + d - 1) * knots + m] = 1 / (e[m + d] - e[m]);
    }
  }

  void make_points(std::uint64_t seed, Points points) {
    const Shape& s = what.shape;
    const RandomStream random(seed, RandomUse::check, 5);
    std::uint32_t at = 0;
    for (std::size_t i = 0; i < s.in; ++i)
      for (std::size_t b = 0; b < what.batch; ++b) {
        const double width = hi[i] - lo[i], u = random.uniform(at++), kind = random.uniform(at++);
        T v = T(lo[i] + u * width);
        if (points == Points::everywhere && kind < 0.3) {
          const T special[] = {lo[i],
                               hi[i],
                               T(lo[i] - u * width),
                               T(hi[i] + u * width),
                               T(0),
                               T(-0.0),
                               T(1e30),
                               T(-1e30),
                               T(lo[i] + width / s.grid * static_cast<int>(u * s.grid)),
                               T(1e-39)};
          v = special[random.below(at++, 10)];
        }
        if (points == Points::hostile && kind < 0.5) {
          const T infinity = std::numeric_limits<T>::infinity(), huge = std::numeric_limits<T>::max();
          const T special[] = {infinity, -infinity, std::numeric_limits<T>::quiet_NaN(), huge, -huge};
          v = special[random.below(at++, 5)];
        }
        x[((i / kPanel) * what.batch + b) * kPanel + i % kPanel] = v;
      }
  }
};

}  // namespace gradloom::kernels::spline
