// TypedSession: a session whose family and precision are known, for those who look inside its model.
#pragma once

#include "gradloom/session/family.h"
#include "gradloom/session/session.h"

namespace gradloom {

// F is a family such as KanFamily<float>.
template <class F>
class TypedSession : public Session {
 public:
  using T = typename F::Scalar;

  virtual const F& family() const = 0;
  virtual const Exec& exec() const = 0;
  virtual ModelArrays<T> result_arrays() const = 0;  // those that the session hands out
  typename F::Model model() const { return family().model(position().stage); }
  // Of data that the family was not made of, as it reads them.
  virtual PredictedRows predict_on(const typename F::Data& data) const = 0;
  virtual PartMetrics measure_on(const typename F::Data& data) const = 0;

 protected:
  using Session::Session;
};

}  // namespace gradloom
