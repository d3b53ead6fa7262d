// Counter-based random numbers: each value is a function of (seed, epoch, sample, position), never of who asked first.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace gradloom {

// Philox 4x32 with 10 rounds (Salmon et al., SC 2011): four random words from a 128-bit counter and a 64-bit key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// What a stream of random numbers is for; streams of different purposes never overlap.
enum class RandomUse : std::uint8_t {
  initialise = 1,
  shuffle = 2,
  split = 3,
  data = 4,
  noise = 5,
  dropout = 6,
  fire = 7,
  wires = 8,
  check = 9,
  restart = 10,
  test = 11,
  damage = 12,
  user = 200,
};

// A stream addresses 2^32 positions. Cheap to make and to copy; it has no state.
// epoch < 2^24; sample < 2^32.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, RandomUse use, std::uint32_t epoch = 0, std::uint32_t sample = 0);

  std::uint64_t bits(std::uint32_t position) const;                    // 64 random bits
  double uniform(std::uint32_t position) const;                        // in [0, 1), 53 bits
  double normal(std::uint32_t position) const;                         // mean 0, variance 1 (Box-Muller)
  std::uint32_t below(std::uint32_t position, std::uint32_t n) const;  // in [0, n), n > 0

  // What philox4x32 is given; the position takes the place of the first word.
  const std::array<std::uint32_t, 4>& counter() const { return counter_; }
  const std::array<std::uint32_t, 2>& key() const { return key_; }

 private:
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 2> key_;
};

// Fills `order` with a random permutation of 0..size-1 that depends on the stream alone.
void random_permutation(const RandomStream& stream, std::span<std::uint32_t> order);

}  // namespace gradloom
