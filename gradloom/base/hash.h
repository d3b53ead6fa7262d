// FNV-1a over 64-bit words: tells sequences apart, protects from nobody.
#pragma once

#include <cstdint>

namespace gradloom {

inline constexpr std::uint64_t kHashStart = 0xcbf29ce484222325u;

class Hash {
 public:
  explicit Hash(std::uint64_t start = kHashStart) : value_(start) {}

  void mix(std::uint64_t word) { value_ = (value_ ^ word) * 0x100000001b3u; }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_;
};

}  // namespace gradloom
