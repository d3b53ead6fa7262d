// The cases on which the gate kernels are compared, differentiated and timed, and the memory of one such case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/exec/buffer.h"
#include "gradloom/kernels/gate/gate.h"

namespace gradloom::kernels::gate {

enum class Wiring {
  random,  // also twice the same input
  circle,  // gate g reads g and g + 1, in random order
  halves,  // gate g reads 2 g and 2 g + 1
  same,    // six gates in turn read the same two inputs
  fan,     // gate g reads an input of its own and the one in the middle, in random order; fewer gates than inputs
  mixed,   // a fan of four around input 2, and a path from input 5 on
};

struct Case {
  std::size_t inputs = 1, gates = 1, kernels = 1;  // gates of all kernels together; kernels: stride of the logits
  Wiring wiring = Wiring::random;
  std::uint32_t given = kNoRow;  // as in LayerPlan
  std::size_t step = kTile;      // from a row of dl_din to the next

  std::string name() const {
    const char* const wirings[] = {"", "_circle", "_halves", "_same", "_fan", "_mixed"};
    return std::to_string(inputs) + "_to_" + std::to_string(gates) + "_k" + std::to_string(kernels) +
           wirings[static_cast<int>(wiring)] + (given == kNoRow ? "" : "_given" + std::to_string(given)) +
           (step == kTile ? "" : "_apart");
  }
};

inline std::vector<Case> cases() {
  std::vector<Case> all;
  for (const bool given : {false, true})
    for (const auto& [inputs, gates, kernels] : {std::tuple<std::size_t, std::size_t, std::size_t>{1, 0, 1},
                                                 {1, 1, 1},
                                                 {2, 1, 1},
                                                 {9, 8, 1},
                                                 {9, 48, 6},
                                                 {3, 5, 1},
                                                 {2, 7, 1},
                                                 {8, 8, 2},
                                                 {17, 31, 1},
                                                 {64, 32, 16},
                                                 {264, 256, 1},
                                                 {256, 256, 1}})
      all.push_back({inputs, gates, kernels, Wiring::random, given ? static_cast<std::uint32_t>(inputs / 2) : kNoRow});
  for (const auto& [inputs, gates] :
       {std::pair<std::size_t, std::size_t>{2, 2}, {3, 3}, {5, 4}, {5, 5}, {40, 40}, {40, 33}, {40, 45}, {264, 256}})
    all.push_back({inputs, gates, 1, Wiring::circle});
  for (const std::size_t gates : {1, 4, 32, 128}) all.push_back({2 * gates, gates, 1, Wiring::halves});
  all.push_back({65, 32, 2, Wiring::halves});
  for (const std::uint32_t given : {kNoRow, 0u, 4u}) {
    all.push_back({9, 48, 6, Wiring::same, given});
    all.push_back({30, 24, 1, Wiring::mixed, given});
    for (const std::size_t inputs : {9, 20}) all.push_back({inputs, inputs - 1, 1, Wiring::fan, given});
  }
  // Every kind of run with rows that lie apart.
  for (std::size_t n = all.size(); n-- > 0;)
    if (n % 3 == 0 || all[n].wiring != Wiring::random) {
      all.push_back(all[n]);
      all.back().step = kTile + 7;
    }
  return all;
}

enum class Logits {
  initial,   // 0, and 10 for gate A
  mixed,     // normal, standard deviation 1
  decided,   // normal, standard deviation 30: one function wins, others underflow
  one_each,  // gate n is function n % 16
};

// A layer with wires, logits, inputs and dl_dout, and room for every result.
template <class T>
struct Problem {
  Case what;
  Buffer<T> logits, in, dl_dout, out, dl_din, sums, dl_dz;
  std::vector<Gate<T>> gates;  // in the order of evaluation
  LayerPlan plan;

  Problem(const Case& c, Logits kind, std::uint64_t seed)
      : what(c),
        logits(c.gates * kFunctions),
        in(c.inputs * kTile),
        dl_dout(c.gates * kTile),
        out(c.gates * kTile),
        dl_din(c.inputs * c.step),
        sums(c.gates * kPartial),
        dl_dz(c.gates * kFunctions),
        gates(c.gates) {
    const RandomStream random(seed, RandomUse::check);
    std::uint32_t at = 0;
    for (std::size_t g = 0; g < c.gates; ++g) {
      for (std::size_t i = 0; i < kFunctions; ++i) {
        const double normal = random.normal(at++);
        T& z = logits[g * kFunctions + i];
        if (kind == Logits::initial) z = i == 3 ? T(10) : T(0);
        if (kind == Logits::mixed) z = T(normal);
        if (kind == Logits::decided) z = T(30 * normal);
        if (kind == Logits::one_each) z = i == g % kFunctions ? T(100) : T(0);
      }
    }
    std::vector<GateRows> rows(c.gates);
    const auto inputs = static_cast<std::uint32_t>(c.inputs);
    for (std::uint32_t g = 0; g < c.gates; ++g) {
      if (c.wiring == Wiring::random) rows[g] = {random.below(at, inputs), random.below(at + 1, inputs)};
      if (c.wiring == Wiring::circle) rows[g] = {g % inputs, (g + 1) % inputs};
      if (c.wiring == Wiring::halves) rows[g] = {2 * g, 2 * g + 1};
      if (c.wiring == Wiring::same) rows[g] = {g / 6 % inputs, (g / 6 + 4) % inputs};
      if (c.wiring == Wiring::mixed) rows[g] = g < 4 ? GateRows{g + (g >= 2), 2} : GateRows{g + 1, g + 2};
      if (c.wiring == Wiring::fan) rows[g] = {g + (g >= inputs / 2), inputs / 2};
      at += 2;
    }
    if (c.wiring != Wiring::random && c.wiring != Wiring::same)
      for (std::size_t g = c.gates; g > 1; --g)
        std::swap(rows[g - 1], rows[random.below(at++, static_cast<std::uint32_t>(g))]);
    plan = plan_layer(rows, c.inputs, c.given);
    place_gates<T>(rows, plan, gates.data());
    for (T& v : in.span()) {
      const double u = random.uniform(at++);
      v = u < 0.2 ? T(0) : u > 0.8 ? T(1) : T(u);
    }
    for (T& v : dl_dout.span()) v = T(random.normal(at++));
    // What was there before: results add to it, or replace it.
    for (Buffer<T>* b : {&out, &dl_din, &sums, &dl_dz})
      for (T& v : b->span()) v = T(random.normal(at++));
  }

  Layer<T> layer() const { return {gates, &plan}; }

  void prepare(Variant variant) {
    const std::size_t per_kernel = what.gates / what.kernels;
    for (std::size_t k = 0; k < what.kernels; ++k)
      coefficients<T>(variant, {logits.data() + k * per_kernel * kFunctions, per_kernel * kFunctions},
                      plan.position.data() + k, what.kernels, gates.data());
  }

  // Everything once: coefficients, forward, backward, gradient of the logits.
  void run(Variant variant, GradientMode mode) {
    prepare(variant);
    forward<T>(variant, layer(), in.data(), out.data());
    backward<T>(variant, layer(), {in.data(), dl_dout.data(), dl_din.data(), sums.data(), what.step});
    const std::size_t per_kernel = what.gates / what.kernels;
    for (std::size_t k = 0; k < what.kernels; ++k)
      logit_gradient<T>(variant, {logits.data() + k * per_kernel * kFunctions, per_kernel * kFunctions},
                        plan.position.data() + k, what.kernels, sums.data(), mode,
                        dl_dz.data() + k * per_kernel * kFunctions);
  }
};

}  // namespace gradloom::kernels::gate
