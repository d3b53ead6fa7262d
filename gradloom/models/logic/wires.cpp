#include "gradloom/models/logic/wires.h"

#include <fmt/format.h>

#include <algorithm>

namespace gradloom::logic {
namespace {

// The permutation takes positions 0..size of the stream.
std::vector<Wire> shuffled(const std::vector<Wire>& wires, const RandomStream& random) {
  std::vector<std::uint32_t> order(wires.size());
  random_permutation(random, order);
  std::vector<Wire> result;
  for (const std::uint32_t n : order) result.push_back(wires[n]);
  return result;
}

std::uint32_t narrow(std::size_t n) { return static_cast<std::uint32_t>(n); }

}  // namespace

std::vector<Wire> first_kernel_wires(const RandomStream& random) {
  std::vector<Wire> wires;
  for (std::uint32_t n = 0; n < 9; ++n)
    if (n != 4) wires.push_back({n, 4});
  return shuffled(wires, random);
}

void check_unique(std::size_t in, std::size_t out, std::string_view layer) {
  if (2 * out < in)
    throw_invalid(
        fmt::format("{}: {} gates with unique wires read at most {} of {} inputs; at least {} gates are "
                    "needed",
                    layer, out, 2 * out, in, (in + 1) / 2));
  if (in < 2 || out > in * (in - 1) / 2)
    throw_invalid(fmt::format("{}: {} inputs have {} different pairs, too few for {} gates with unique wires", layer,
                              in, in < 2 ? 0 : in * (in - 1) / 2, out));
}

std::vector<Wire> unique_wires(std::size_t in, std::size_t out, const RandomStream& random) {
  check_unique(in, out, "layer");
  std::vector<Wire> wires;
  for (std::size_t first = 0; first < 2; ++first)
    for (std::size_t i = first; i + 1 < in && wires.size() < out; i += 2) wires.push_back({narrow(i), narrow(i + 1)});
  for (std::size_t offset = 2; wires.size() < out; ++offset)
    for (std::size_t i = 0; i + offset < in && wires.size() < out; ++i)
      wires.push_back({narrow(i), narrow(i + offset)});
  return shuffled(wires, random);
}

std::vector<Wire> random_wires(std::size_t in, std::size_t out, const RandomStream& random) {
  if (in == 0) throw_invalid("a layer of gates needs at least one input");
  std::vector<std::uint32_t> sequence;
  std::vector<std::uint32_t> order(in);
  for (std::uint32_t round = 0; sequence.size() < 2 * out; ++round) {
    // A stream of its own for every round, keyed by bits of the layer's.
    random_permutation(RandomStream(random.bits(round), RandomUse::wires), order);
    sequence.insert(sequence.end(), order.begin(), order.end());
  }
  std::vector<Wire> wires(out);
  for (std::size_t g = 0; g < out; ++g) {
    wires[g] = {sequence[g], sequence[out + g]};
    if (wires[g].a == wires[g].b) wires[g].b = narrow((wires[g].b + 1) % in);
  }
  return wires;
}

std::vector<Wire> make_wires(WireKind kind, std::size_t in, std::size_t out, const RandomStream& random) {
  return kind == WireKind::unique ? unique_wires(in, out, random) : random_wires(in, out, random);
}

std::vector<std::uint32_t> unread_inputs(const std::vector<Wire>& wires, std::size_t in) {
  std::vector<bool> read(in, false);
  for (const Wire& w : wires) read[w.a] = read[w.b] = true;
  std::vector<std::uint32_t> unread;
  for (std::size_t i = 0; i < in; ++i)
    if (!read[i]) unread.push_back(narrow(i));
  return unread;
}

template <class T>
Result<std::vector<Wire>> restore_wires(const T* saved, std::size_t count, std::size_t in, std::string_view layer) {
  std::vector<Wire> wires(count);
  for (std::size_t n = 0; n < 2 * count; ++n) {
    const T value = saved[n];
    if (!(value >= T(0) && value < static_cast<T>(in)) || value != static_cast<T>(static_cast<std::uint32_t>(value)))
      return Error{
          ErrorCode::invalid_input,
          fmt::format("{}: gate {} reads input {}; it must be a whole number below {}", layer, n / 2, value, in)};
    (n % 2 == 0 ? wires[n / 2].a : wires[n / 2].b) = static_cast<std::uint32_t>(value);
  }
  return wires;
}

template Result<std::vector<Wire>> restore_wires<float>(const float*, std::size_t, std::size_t, std::string_view);
template Result<std::vector<Wire>> restore_wires<double>(const double*, std::size_t, std::size_t, std::string_view);

}  // namespace gradloom::logic
