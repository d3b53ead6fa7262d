// Memory of the host: Buffer<T> owns one array, Workspace one allocation for many; claim_lines prepares a range for
// writing.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "gradloom/base/rounding.h"

namespace gradloom {

// Aligned for every SIMD width and for binding alone on a GPU.
inline constexpr std::size_t kMemoryAlignment = 256;

// Whether large buffers begin at scattered distances from a page. Not under AddressSanitizer, which watches what lies
// right before and behind an allocation.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kScatterBuffers = false;
#else
inline constexpr bool kScatterBuffers = true;
#endif

// Zeroed, aligned memory; movable, not copyable; a contiguous range, so it converts to a std::span. Large ones begin at
// mostly different distances from a page: kernels walk through several arrays at once, and where all begin alike, Adam
// took up to twice as long in some placements (docs/decisions/0003-spline-kernels.md).
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : size_(size) {
    if (size == 0) return;
    if (size > (std::size_t{1} << 48) / sizeof(T)) throw std::bad_array_new_length();
    const bool large = kScatterBuffers && size * sizeof(T) >= 8 * kPage;
    memory_ = ::operator new (size * sizeof(T) + (large ? kPage : 0), std::align_val_t{kMemoryAlignment});
    data_ = reinterpret_cast<T*>(static_cast<std::byte*>(memory_) + (large ? shift(memory_) : 0));
    std::fill_n(data_, size, T{});
  }
  ~Buffer() { ::operator delete (memory_, std::align_val_t{kMemoryAlignment}); }
  Buffer(Buffer&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  std::size_t size() const { return size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  static constexpr std::size_t kPage = 4096;

  // A multiple of the alignment below a page, scattered by the number of the page.
  static std::size_t shift(const void* memory) {
    std::uint64_t page = reinterpret_cast<std::uintptr_t>(memory) / kPage;
    for (int round = 0; round < 2; ++round) page = (page ^ page >> 17) * 0x9e3779b97f4a7c15;
    return static_cast<std::size_t>(page >> 32) % (kPage / kMemoryAlignment) * kMemoryAlignment;
  }

  void* memory_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// For the thread that is about to write these numbers, while no other one reads or writes them; they keep their values.
// Writes one number of each cache line as it is, which asks for all lines at once. Where other threads have read the
// memory, a line has to be asked for before it can be written; one at a time, the writes behind it wait, too.
template <class T>
void claim_lines(std::span<T> numbers) {
  static_assert(sizeof(T) <= 64);
  const auto touch = [](volatile T& number) { number = number; };
  for (std::size_t n = 0; n < numbers.size(); n += 64 / sizeof(T)) touch(numbers[n]);
  if (!numbers.empty()) touch(numbers.back());
}

// Hands out aligned pieces of one allocation: first every piece is reserved, then the memory is made, then pieces are
// taken. turn() goes over to the next copy of the memory, if there are several; it holds what was written there when it
// was last in turn, zeros at first.
class Workspace {
 public:
  // Reserves room for `count` elements; returns the byte offset to pass to at().
  template <class T>
  std::size_t reserve(std::size_t count) {
    assert(memory_.size() == 0);
    const std::size_t offset = bytes_;
    bytes_ += round_up(count * sizeof(T), kMemoryAlignment);
    return offset;
  }
  void allocate(std::size_t copies = 1) {
    memory_ = Buffer<std::byte>(bytes_ * copies);
    now_ = 0;
  }
  void turn() { now_ = now_ + 2 * bytes_ <= memory_.size() ? now_ + bytes_ : 0; }
  std::size_t reserved() const { return bytes_; }       // of one copy
  std::size_t bytes() const { return memory_.size(); }  // of all
  template <class T>
  T* at(std::size_t offset) {
    return reinterpret_cast<T*>(memory_.data() + now_ + offset);
  }
  template <class T>
  const T* at(std::size_t offset) const {
    return reinterpret_cast<const T*>(memory_.data() + now_ + offset);
  }

 private:
  std::size_t bytes_ = 0, now_ = 0;
  Buffer<std::byte> memory_;
};

}  // namespace gradloom
