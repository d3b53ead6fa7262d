// Random arrays and patterns of arcs for the tests of the graph kernels.
#pragma once

#include <cstring>
#include <vector>

#include "gradloom/base/random.h"
#include "gradloom/exec/buffer.h"
#include "gradloom/kernels/message/message.h"

namespace gradloom::test {

template <class T>
Buffer<T> random_numbers(std::size_t size, std::uint32_t sample) {
  Buffer<T> b(size);
  const RandomStream random(3, RandomUse::test, 0, sample);
  for (std::size_t i = 0; i < size; ++i) b[i] = static_cast<T>(random.normal(static_cast<std::uint32_t>(i)));
  return b;
}

template <class T>
bool same_bits(const Buffer<T>& a, const Buffer<T>& b) {
  return a.size() == b.size() && (a.size() == 0 || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Rows 0: none, 1: one arc, ..., a hub of more than two segments, a row of exactly one segment.
struct Pattern {
  std::vector<std::uint32_t> ptr{0}, source, slot;
  explicit Pattern(std::uint32_t columns) {
    std::uint32_t at = 0;
    const RandomStream random(5, RandomUse::test);
    for (const std::size_t arcs : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{9},
                                   2 * kernels::message::kSegment + 3, kernels::message::kSegment, std::size_t{0}}) {
      for (std::size_t e = 0; e < arcs; ++e) source.push_back(random.below(at++, columns));
      ptr.push_back(static_cast<std::uint32_t>(source.size()));
    }
    slot.resize(source.size());
    random_permutation(RandomStream(6, RandomUse::test), slot);
  }
  std::size_t rows() const { return ptr.size() - 1; }
};

// A square pattern with its transposed one: out_ptr, out_target and the arc behind each, slot.
struct SquarePattern {
  std::vector<std::uint32_t> ptr, source, out_ptr, out_target, slot;
  SquarePattern() {
    const Pattern p(7);
    ptr = p.ptr, source = p.source;
    out_ptr = {0};
    for (std::uint32_t j = 0; j < p.rows(); ++j) {
      for (std::uint32_t i = 0; i < p.rows(); ++i)
        for (std::uint32_t e = ptr[i]; e < ptr[i + 1]; ++e)
          if (source[e] == j) out_target.push_back(i), slot.push_back(e);
      out_ptr.push_back(static_cast<std::uint32_t>(slot.size()));
    }
  }
  std::size_t rows() const { return ptr.size() - 1; }
  std::size_t arcs() const { return source.size(); }
};

}  // namespace gradloom::test
