// A checksum of bytes that come piece by piece: XXH3 with 64 bits. It finds damage; it does not keep an attacker away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace gradloom {

class Checksum {
 public:
  Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;
  ~Checksum();

  void add(std::span<const std::byte> bytes);
  // Of all bytes so far, however they were cut into pieces.
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gradloom
