// Random damage to a file's bytes, for tests of readers: the same damage for the same (seed, index).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "gradloom/base/random.h"

namespace gradloom::test {

// One to eight edits: bits flipped, bytes replaced (by extreme or structural ones), pieces removed, repeated or moved,
// the end cut off.
inline std::string mutate(std::string bytes, std::uint64_t seed, std::uint32_t index) {
  const RandomStream random(seed, RandomUse::user, 0, index);
  std::uint32_t at = 0;
  const auto below = [&](std::size_t n) -> std::size_t {
    return n == 0 ? 0 : random.below(at++, static_cast<std::uint32_t>(n));
  };
  constexpr std::array<char, 24> kTelling{'\0', '\x01', '\x7f', '\x80', '\xff', '"', '\'', '[', ']',  '{', '}', '(',
                                          ')',  ',',    '.',    ':',    '=',    '-', '9',  '0', '\n', ' ', 'e', '#'};
  const std::size_t edits = 1 + below(8);
  for (std::size_t e = 0; e < edits; ++e) {
    const std::size_t n = bytes.size();
    const std::size_t position = below(n);
    switch (below(8)) {
      case 0:
        if (n > 0) bytes[position] = static_cast<char>(bytes[position] ^ (1 << below(8)));
        break;
      case 1:
      case 2:
        if (n > 0) bytes[position] = kTelling[below(kTelling.size())];
        break;
      case 3:
        bytes.insert(position, 1 + below(3), kTelling[below(kTelling.size())]);
        break;
      case 4:
        bytes.erase(position, 1 + below(16));
        break;
      case 5:
        bytes.insert(below(n), bytes.substr(position, 1 + below(32)));
        break;
      case 6:
        if (n > 0) bytes[position] = static_cast<char>(below(256));
        break;
      default:
        if (below(4) == 0) bytes.resize(position);
    }
  }
  return bytes;
}

}  // namespace gradloom::test
