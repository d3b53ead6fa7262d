#include "capi/arrays.h"

#include <fmt/format.h>

#include "capi/call.h"

namespace gradloom::capi {
namespace {

constexpr const char* kTypes[] = {"float32", "float64", "uint8", "int32", "int64"};
constexpr std::int64_t kSizes[] = {4, 8, 1, 4, 8};

std::string type_text(std::int32_t dtype) {
  return dtype >= 0 && dtype < 5 ? kTypes[dtype] : fmt::format("unknown type {}", dtype);
}

template <class T>
constexpr std::int32_t dtype_code() {
  if constexpr (std::is_same_v<std::remove_const_t<T>, float>) return GRADLOOM_FLOAT32;
  if constexpr (std::is_same_v<std::remove_const_t<T>, double>) return GRADLOOM_FLOAT64;
  if constexpr (std::is_same_v<std::remove_const_t<T>, std::uint8_t>) return GRADLOOM_UINT8;
  if constexpr (std::is_same_v<std::remove_const_t<T>, std::int32_t>) return GRADLOOM_INT32;
  if constexpr (std::is_same_v<std::remove_const_t<T>, std::int64_t>) return GRADLOOM_INT64;
}

const gradloom_array& checked(const gradloom_array* array, const char* argument) {
  given(array, argument);
  if (array->dtype < 0 || array->dtype > GRADLOOM_INT64)
    throw_invalid(fmt::format("{} has the {}", argument, type_text(array->dtype)));
  if (array->dimensions < 1 || array->dimensions > GRADLOOM_MOST_DIMENSIONS)
    throw_invalid(fmt::format("{} has {} dimensions; it must have 1 to {}", argument, array->dimensions,
                              GRADLOOM_MOST_DIMENSIONS));
  std::int64_t elements = 1;
  for (std::int32_t d = 0; d < array->dimensions; ++d) {
    if (array->shape[d] < 0 || array->shape[d] > (std::int64_t{1} << 48))
      throw_invalid(fmt::format("{} has the extent {} in dimension {}", argument, array->shape[d], d));
    if (__builtin_mul_overflow(elements, array->shape[d], &elements))
      throw_invalid(fmt::format("{} has too many elements for memory", argument));
    if (array->strides[d] < 0 || array->strides[d] % kSizes[array->dtype] != 0)
      throw_invalid(fmt::format("{} has a stride of {} bytes in dimension {}; it must be a multiple of {}, 0 or more",
                                argument, array->strides[d], d, kSizes[array->dtype]));
  }
  if (elements > 0 && !array->data) throw_invalid(fmt::format("{} has no data", argument));
  if (reinterpret_cast<std::uintptr_t>(array->data) % static_cast<std::uintptr_t>(kSizes[array->dtype]) != 0)
    throw_invalid(fmt::format("{} is not aligned to its elements of {} bytes", argument, kSizes[array->dtype]));
  return *array;
}

void need_type(const gradloom_array& array, const char* argument, std::int32_t dtype) {
  if (array.dtype != dtype)
    throw_invalid(fmt::format("{} is of {}, but must be of {}", argument, type_text(array.dtype), type_text(dtype)));
}

template <class T>
View<const T, 2> matrix_view(const gradloom_array& a) {
  const auto rows = static_cast<std::size_t>(a.shape[0]);
  const auto columns = a.dimensions == 2 ? static_cast<std::size_t>(a.shape[1]) : std::size_t{1};
  const auto step = [&](int d) { return static_cast<std::size_t>(a.strides[d] / std::int64_t{sizeof(T)}); };
  return {static_cast<const T*>(a.data), {rows, columns}, {step(0), a.dimensions == 2 ? step(1) : 1}};
}

}  // namespace

bool present(const gradloom_array& array) { return array.data != nullptr; }

MatrixView matrix(const gradloom_array* array, const char* argument) {
  const gradloom_array& a = checked(array, argument);
  if (a.dimensions > 2)
    throw_invalid(fmt::format("{} has {} dimensions, but must be a matrix", argument, a.dimensions));
  if (a.dtype == GRADLOOM_FLOAT32) return matrix_view<float>(a);
  if (a.dtype != GRADLOOM_FLOAT64)
    throw_invalid(fmt::format("{} is of {}, but must be of float32 or float64", argument, type_text(a.dtype)));
  return matrix_view<double>(a);
}

template <class T>
Strided<T> strided(const gradloom_array* array, const char* argument, std::int32_t dimensions) {
  const gradloom_array& a = checked(array, argument);
  need_type(a, argument, dtype_code<T>());
  if (a.dimensions != dimensions)
    throw_invalid(fmt::format("{} has {} dimensions, but must have {}", argument, a.dimensions, dimensions));
  Strided<T> view{static_cast<T*>(const_cast<void*>(a.data)), {}, {}};
  for (std::int32_t d = 0; d < dimensions; ++d) {
    view.shape.push_back(a.shape[d]);
    view.strides.push_back(a.strides[d] / std::int64_t{sizeof(T)});
  }
  return view;
}
template Strided<double> strided(const gradloom_array*, const char*, std::int32_t);
template Strided<float> strided(const gradloom_array*, const char*, std::int32_t);
template Strided<std::uint8_t> strided(const gradloom_array*, const char*, std::int32_t);
template Strided<std::int64_t> strided(const gradloom_array*, const char*, std::int32_t);

namespace {

template <class T>
std::vector<T> copied(const gradloom_array& array, const char* argument, std::size_t count) {
  const Strided<T> view = strided<T>(&array, argument, 1);
  if (view.extent(0) != count)
    throw_invalid(fmt::format("{} has {} elements, but must have {}", argument, view.extent(0), count));
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = view.at(i);
  return values;
}

}  // namespace

std::vector<std::int64_t> integers(const gradloom_array& array, const char* argument, std::size_t count) {
  return copied<std::int64_t>(array, argument, count);
}

std::vector<double> numbers(const gradloom_array& array, const char* argument, std::size_t count) {
  return copied<double>(array, argument, count);
}

OutMatrix::OutMatrix(const gradloom_array* array, const char* argument) : argument_(argument) {
  if (checked(array, argument).dtype == GRADLOOM_FLOAT32)
    narrow_ = strided<float>(array, argument, 2);
  else
    wide_ = strided<double>(array, argument, 2);
}

std::size_t OutMatrix::rows() const { return narrow_.shape.empty() ? wide_.extent(0) : narrow_.extent(0); }
std::size_t OutMatrix::columns() const { return narrow_.shape.empty() ? wide_.extent(1) : narrow_.extent(1); }

void OutMatrix::set(std::size_t row, std::size_t column, double value) const {
  if (narrow_.shape.empty())
    wide_.at(row, column) = value;
  else
    narrow_.at(row, column) = static_cast<float>(value);
}

void OutMatrix::check(std::size_t needed_rows, std::size_t needed_columns) const {
  if (rows() != needed_rows || columns() != needed_columns)
    throw_invalid(
        fmt::format("{} is ({}, {}), but must be ({}, {})", argument_, rows(), columns(), needed_rows, needed_columns));
}

TargetView target_view(const gradloom_array* y, const std::vector<std::string>& classes) {
  if (given(y, "y")->dtype != GRADLOOM_INT64) {
    if (!classes.empty()) throw_invalid("settings: 'classes' has names, but y is not of int64");
    return matrix(y, "y");
  }
  if (y->dimensions != 1) throw_invalid(fmt::format("y holds classes, but has {} dimensions", y->dimensions));
  const std::vector<std::int64_t> codes =
      integers(*y, "y", static_cast<std::size_t>(std::max<std::int64_t>(0, y->shape[0])));
  if (classes.empty()) return codes;
  std::vector<std::string> names;
  names.reserve(codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] < 0 || codes[i] >= static_cast<std::int64_t>(classes.size()))
      throw_invalid(fmt::format("y: the class of row {} (from 0) is {}, but 'classes' has {} names", i, codes[i],
                                classes.size()));
    names.push_back(classes[static_cast<std::size_t>(codes[i])]);
  }
  return names;
}

}  // namespace gradloom::capi
