// TypedSession: a session whose family and precision are known, for those who look inside its model.
#pragma once

#include <type_traits>

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

// Whether a session is of family F, such as KanFamily, in either precision.
template <template <class> class F>
bool is_of(const Session& session) {
  return dynamic_cast<const TypedSession<F<float>>*>(&session) ||
         dynamic_cast<const TypedSession<F<double>>*>(&session);
}

// What f returns for a session of family F in its precision. S: Session or const Session; f gets a TypedSession that is
// const where S is. Throws std::bad_cast for other families.
template <template <class> class F, class S, class Call>
decltype(auto) with_typed(S& session, Call&& f) {
  static_assert(std::is_same_v<std::remove_const_t<S>, Session>);
  using Single = TypedSession<F<float>>;
  using Twice = TypedSession<F<double>>;
  if constexpr (std::is_const_v<S>) {
    if (const auto* single = dynamic_cast<const Single*>(&session)) return f(*single);
    return f(dynamic_cast<const Twice&>(session));
  } else {
    if (auto* single = dynamic_cast<Single*>(&session)) return f(*single);
    return f(dynamic_cast<Twice&>(session));
  }
}

}  // namespace gradloom
