// Which two signals every gate of a layer reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/base/choice.h"
#include "gradloom/base/random.h"
#include "gradloom/base/result.h"

namespace gradloom::logic {

enum class WireKind {
  unique,  // no two gates read the same pair
  random,  // inputs in random order, over and over, until every gate has two
};
inline constexpr Choice<WireKind> kWires[] = {
    {WireKind::unique, "unique", "no two gates read the same pair"},
    {WireKind::random, "random", "all inputs in random order, as often as needed"},
};

// Both inputs of one gate, numbers of the layer's inputs.
struct Wire {
  std::uint32_t a = 0, b = 0;
  friend bool operator==(const Wire&, const Wire&) = default;
};

// The first layer of a perception kernel: 9 inputs, the patch row-major; 8 gates, a is a neighbour (0, 1, 2, 3, 5, 6,
// 7, 8), b the centre (4); in random order.
std::vector<Wire> first_kernel_wires(const RandomStream& random);

// Pairs (0,1), (2,3), ..., then (1,2), (3,4), ..., then (i, i + 2) for every i, (i, i + 3), ..., cut to `out` and put
// in random order. Throws Exception{invalid_input} unless 2 out >= in and out <= in (in - 1) / 2.
std::vector<Wire> unique_wires(std::size_t in, std::size_t out, const RandomStream& random);

// Gate g reads the numbers g and out + g of a sequence that repeats all inputs in ever new random order; where both are
// the same input, b is the next one. With one input both are input 0. Throws for in = 0.
std::vector<Wire> random_wires(std::size_t in, std::size_t out, const RandomStream& random);

std::vector<Wire> make_wires(WireKind kind, std::size_t in, std::size_t out, const RandomStream& random);

// The inputs that no gate reads, in order.
std::vector<std::uint32_t> unread_inputs(const std::vector<Wire>& wires, std::size_t in);

// Reads saved wires, count x 2 numbers; fails, naming `layer` and gate, when one is not a whole number below `in`.
template <class T>
Result<std::vector<Wire>> restore_wires(const T* saved, std::size_t count, std::size_t in, std::string_view layer);

// Throws Exception{invalid_input} when unique wires cannot be laid; `layer` names the culprit.
void check_unique(std::size_t in, std::size_t out, std::string_view layer);

}  // namespace gradloom::logic
