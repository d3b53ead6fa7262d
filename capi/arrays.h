// Arrays of callers: checked, and as views.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gradloom/base/view.h"
#include "gradloom/c_api.h"
#include "gradloom/data/memory_rows.h"

namespace gradloom::capi {

// All throw invalid_input, naming `argument`, when the array has another type, number of dimensions or shape, a
// negative extent, a stride that is no multiple of its elements, or no data where some are needed.

// A matrix of float32 or float64; one dimension is one column.
MatrixView matrix(const gradloom_array* array, const char* argument);

// Whether the array is there at all.
bool present(const gradloom_array& array);

// The values of an array of one dimension, copied; `count` of them.
std::vector<std::int64_t> integers(const gradloom_array& array, const char* argument, std::size_t count);
std::vector<double> numbers(const gradloom_array& array, const char* argument, std::size_t count);

// y as what is to be learned: numbers, or classes, with the names of `classes` where there are some.
TargetView target_view(const gradloom_array* y, const std::vector<std::string>& classes);

// What a function reads or writes element by element. T is double, float, std::uint8_t, ...
template <class T>
struct Strided {
  T* data = nullptr;
  std::vector<std::int64_t> shape, strides;  // strides in elements
  T& at(std::size_t i) const { return data[static_cast<std::int64_t>(i) * strides[0]]; }
  T& at(std::size_t i, std::size_t j) const {
    return data[static_cast<std::int64_t>(i) * strides[0] + static_cast<std::int64_t>(j) * strides[1]];
  }
  T& at(std::size_t i, std::size_t j, std::size_t k) const {
    return data[static_cast<std::int64_t>(i) * strides[0] + static_cast<std::int64_t>(j) * strides[1] +
                static_cast<std::int64_t>(k) * strides[2]];
  }
  std::size_t extent(std::size_t d) const { return static_cast<std::size_t>(shape[d]); }
};
template <class T>
Strided<T> strided(const gradloom_array* array, const char* argument, std::int32_t dimensions);

// A matrix that a function fills, of float32 or float64.
class OutMatrix {
 public:
  OutMatrix(const gradloom_array* array, const char* argument);
  std::size_t rows() const;
  std::size_t columns() const;
  void set(std::size_t row, std::size_t column, double value) const;
  // Throws unless it is (rows, columns).
  void check(std::size_t rows, std::size_t columns) const;

 private:
  const char* argument_;
  Strided<double> wide_;
  Strided<float> narrow_;
};

}  // namespace gradloom::capi
