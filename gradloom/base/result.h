// Result<T>: a value, or the Error that explains why there is none; for what is expected to fail now and then.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "gradloom/base/error.h"

namespace gradloom {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Precondition: ok() for value(), !ok() for error().
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  const Error& error() const { return std::get<1>(state_); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // The value, or the error thrown as an Exception.
  T or_throw() && {
    if (!ok()) throw Exception(error());
    return std::get<0>(std::move(state_));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }
  void or_throw() && {
    if (error_) throw Exception(*error_);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace gradloom
