// What every family has in common for the application. A family F (families.h lists them) has
// F::Scalar, F::Model, F::Data; load() from a recipe; train(), validation() and test() data; the model of a stage; the
// state to start from and what happens to it between stages and epochs; metrics, warnings, what its report shows and
// what it writes at the end of a run. kan_family.h has the words for each.
#pragma once

#include <memory>

#include "gradloom/data/batch.h"
#include "gradloom/train/state.h"

namespace gradloom::app {

// A model, its state and some data, small enough to be evaluated thousands of times. The batch belongs to the family or
// to `owner`.
template <class M>
struct CheckSubject {
  M model;
  TrainState<typename M::Scalar> state;
  typename M::Batch batch;
  std::shared_ptr<const void> owner;
  double noise = 1.0;        // deviation of what is added to the parameters, so that no gradient is zero by chance
  double input_noise = 0.0;  // the same for the inputs; nodes of a graph are often equal, and a maximum of equals has
                             // no derivative
};

}  // namespace gradloom::app
