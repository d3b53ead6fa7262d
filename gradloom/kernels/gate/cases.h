// The cases on which the gate kernels are compared, differentiated and timed, and the memory of one such case.
#pragma once

#include <string>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/exec/array.h"
#include "gradloom/kernels/gate/gate.h"

namespace gradloom::kernels::gate {

struct Case {
  std::size_t inputs = 1, gates = 1, kernels = 1;  // gates of all kernels together; kernels: stride of the logits

  std::string name() const {
    return std::to_string(inputs) + "_to_" + std::to_string(gates) + "_k" + std::to_string(kernels);
  }
};

inline std::vector<Case> cases() {
  return {{1, 0, 1}, {1, 1, 1}, {2, 1, 1},   {9, 8, 1},    {9, 48, 6},    {3, 5, 1},
          {2, 7, 1}, {8, 8, 2}, {17, 31, 1}, {64, 32, 16}, {264, 256, 1}, {256, 256, 1}};
}

enum class Logits {
  initial,   // 0, and 10 for gate A
  mixed,     // normal, deviation 1
  decided,   // normal, deviation 30: one function wins, others underflow
  one_each,  // gate n is function n % 16
};

// A layer with random wires (also twice the same), logits, inputs and dl_dout, and room for every result.
template <class T>
struct Problem {
  Case what;
  Buffer<T> logits, in, dl_dout, out, dl_din, sums, dl_dz;
  std::vector<Gate<T>> gates;

  Problem(const Case& c, Logits kind, std::uint64_t seed)
      : what(c),
        logits(c.gates * kFunctions),
        in(c.inputs * kTile),
        dl_dout(c.gates * kTile),
        out(c.gates * kTile),
        dl_din(c.inputs * kTile),
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
      const auto inputs = static_cast<std::uint32_t>(c.inputs);
      gates[g].a = random.below(at++, inputs) * static_cast<std::uint32_t>(kTile);
      gates[g].b = random.below(at++, inputs) * static_cast<std::uint32_t>(kTile);
    }
    for (T& v : in.span()) {
      const double u = random.uniform(at++);
      v = u < 0.2 ? T(0) : u > 0.8 ? T(1) : T(u);
    }
    for (T& v : dl_dout.span()) v = T(random.normal(at++));
    // What was there before: results add to it, or replace it.
    for (Buffer<T>* b : {&out, &dl_din, &sums, &dl_dz})
      for (T& v : b->span()) v = T(random.normal(at++));
  }

  // Everything once: coefficients, forward, backward, gradient of the logits.
  void run(Variant variant, GradientMode mode) {
    const std::size_t per_kernel = what.gates / what.kernels;
    for (std::size_t k = 0; k < what.kernels; ++k)
      coefficients<T>(variant, {logits.data() + k * per_kernel * kFunctions, per_kernel * kFunctions}, gates.data() + k,
                      what.kernels);
    const std::span<const Gate<T>> layer(gates);
    forward<T>(variant, layer, in.data(), out.data());
    backward<T>(variant, layer, {in.data(), dl_dout.data(), dl_din.data(), sums.data()});
    for (std::size_t k = 0; k < what.kernels; ++k)
      logit_gradient<T>(variant, {logits.data() + k * per_kernel * kFunctions, per_kernel * kFunctions},
                        sums.data() + k * kPartial, what.kernels, mode, dl_dz.data() + k * per_kernel * kFunctions);
  }
};

}  // namespace gradloom::kernels::gate
