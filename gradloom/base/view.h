// View<T, Rank>: a non-owning, strided window on memory, passed by value.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <type_traits>

namespace gradloom {

// Row-major unless built with explicit strides. Strides count elements. An empty view has a null pointer and zero
// extents.
template <class T, std::size_t Rank>
class View {
 public:
  using Extents = std::array<std::size_t, Rank>;

  View() = default;
  View(T* data, Extents extents) : data_(data), extents_(extents) {
    std::size_t stride = 1;
    for (std::size_t d = Rank; d-- > 0;) {
      strides_[d] = stride;
      stride *= extents_[d];
    }
  }
  View(T* data, Extents extents, Extents strides) : data_(data), extents_(extents), strides_(strides) {}

  // View<T> converts to View<const T>.
  template <class U>
  requires(std::is_same_v<const U, T> && !std::is_same_v<U, T>) View(const View<U, Rank>& other)
      : data_(other.data()), extents_(other.extents()), strides_(other.strides()) {}

  T* data() const { return data_; }
  bool empty() const { return data_ == nullptr || size() == 0; }
  std::size_t extent(std::size_t d) const { return extents_[d]; }
  std::size_t stride(std::size_t d) const { return strides_[d]; }
  const Extents& extents() const { return extents_; }
  const Extents& strides() const { return strides_; }
  std::size_t size() const {
    std::size_t n = 1;
    for (std::size_t e : extents_) n *= e;
    return n;
  }

  template <class... I>
  requires(sizeof...(I) == Rank) T& operator()(I... index) const {
    const Extents i{static_cast<std::size_t>(index)...};
    std::size_t offset = 0;
    for (std::size_t d = 0; d < Rank; ++d) {
      assert(i[d] < extents_[d]);
      offset += i[d] * strides_[d];
    }
    return data_[offset];
  }

  // Row r of a matrix as a pointer; the row is contiguous when stride(1) == 1.
  T* row(std::size_t r) const requires(Rank == 2) { return data_ + r * strides_[0]; }

  // The first n rows.
  View first(std::size_t n) const {
    assert(n <= extents_[0]);
    View v = *this;
    v.extents_[0] = n;
    return v;
  }

 private:
  T* data_ = nullptr;
  Extents extents_{};
  Extents strides_{};
};

}  // namespace gradloom
