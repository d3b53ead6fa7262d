// Models whose loss has a part that depends on parameters alone.
#pragma once

#include "gradloom/models/model.h"

namespace gradloom {

// penalty() computes it at the given parameters, keeping what it needs in the tape; backward adds its gradient to one
// that is complete, and leaves its value in Tape::penalty(). Both are 0 where the options ask for none. For sums over
// samples that were completed elsewhere, complete_gradient() does what backward does behind them, and returns the
// penalty; where sums_are_gradient() it does nothing.
template <class M>
concept HasPenalty = requires(const M& m, const Exec& ex, std::span<const typename M::Scalar> parameters,
                              typename M::Tape& tape, const typename M::Tape& kept,
                              std::span<typename M::Scalar> sums) {
  { m.penalty(ex, parameters, tape) } -> std::convertible_to<double>;
  { kept.penalty() } -> std::convertible_to<double>;
  { m.sums_are_gradient() } -> std::convertible_to<bool>;
  { m.complete_gradient(ex, Step(), parameters, tape, sums) } -> std::convertible_to<double>;
};

// Whether backward does anything behind the sums over samples.
template <class M>
bool completes_gradient(const M& model) {
  if constexpr (HasPenalty<M>)
    return !model.sums_are_gradient();
  else
    return false;
}

}  // namespace gradloom
