// Windows: a few gates around one gate that read few signals, to be improved by themselves.
#pragma once

#include <cstdint>
#include <optional>

#include "gradloom/circuit/network.h"

namespace gradloom::circuit {

struct WindowLimits {
  std::uint32_t leaves = 9;
  std::uint32_t gates = 60;
};

struct Window {
  Network inside{0};                   // its inputs are the leaves
  std::vector<std::uint32_t> leaves;   // nodes of the whole network
  std::vector<std::uint32_t> drivers;  // nodes of the whole network that are outputs of `inside`
};

// The gates below `root`, as far as the limits allow, with all gates that read nothing else. None when there are fewer
// than two, or when a path leaves the window and comes back.
std::optional<Window> window_around(const Network& net, std::uint32_t root, const WindowLimits& limits);

// The network with the window's inside replaced by `inside` (the same inputs and outputs, the same function).
Network with_window(const Network& net, const Window& window, const Network& inside);

}  // namespace gradloom::circuit
