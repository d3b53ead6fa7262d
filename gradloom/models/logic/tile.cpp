#include "gradloom/models/logic/tile.h"

#include <algorithm>
#include <numeric>

#include "gradloom/kernels/gate/patch.h"

namespace gradloom::logic {
namespace {

namespace gate = kernels::gate;
constexpr std::size_t kTile = gate::kTile;

std::size_t total(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0});
}

std::size_t widest(const std::vector<std::size_t>& widths) { return *std::max_element(widths.begin(), widths.end()); }

// Channels on which perception runs together: their gates have the same coefficients.
constexpr std::size_t kTogether = 2;

// Where signals lie in the scratch, in rows: perception layers of each channel (but the last, whose outputs are inputs
// of the update), inputs of the update, its layers, then gradients.
struct Rows {
  explicit Rows(const CellShape& s)
      : hidden(total(s.perception) - s.perception.back()),
        update(s.channels * hidden),
        update_width(std::max(s.update_inputs(), widest(s.update))),
        gradient(std::max(update + s.update_inputs() + total(s.update), kTogether * hidden + 2 * update_width)),
        perception_width(widest(s.perception)) {}
  std::size_t end() const { return gradient + 2 * update_width + 2 * perception_width; }

  std::size_t hidden, update, update_width, gradient, perception_width;
};

// Runs perception on every channel. Hidden layers of channels that run together lie behind each other; with
// Hidden::shared every group of them begins with the same rows.
enum class Hidden { kept, shared };
template <class T>
void perceive(Variant variant, const CellShape& s, const Rows& rows, const CellCircuit<T>& circuit, const T* patch,
              T* hidden, Hidden how, T* update) {
  const std::size_t together = rows.hidden == 0 ? s.channels : kTogether;  // nothing in between to be kept
  for (std::size_t c = 0; c < s.channels; c += together) {
    gate::Copies copies{std::min(together, s.channels - c), gate::kPatch * kTile, rows.hidden * kTile};
    const T* in = patch + c * gate::kPatch * kTile;
    for (std::size_t k = 0; k < copies.count; ++k)
      std::copy_n(in + (k * gate::kPatch + gate::kCentre) * kTile, kTile, update + (c + k) * kTile);
    T* row = hidden + (how == Hidden::kept ? c : 0) * rows.hidden * kTile;
    std::size_t first = 0;
    for (std::size_t l = 0; l < s.perception.size(); ++l) {
      const std::size_t count = s.perception[l];
      const bool last = l + 1 == s.perception.size();
      T* out = last ? update + (s.channels + c * count) * kTile : row;
      if (last) copies.out_step = count * kTile;
      gate::forward<T>(variant, {circuit.gates.subspan(first, count), &circuit.plans[l]}, in, out, copies);
      in = out, copies.in_step = copies.out_step;
      row += count * kTile;
      first += count;
    }
  }
}

}  // namespace

std::size_t CellShape::gates() const { return total(perception) + total(update); }

std::size_t CellShape::scratch() const { return Rows(*this).end() * kTile; }

template <class T>
void tile_forward(Variant variant, const CellShape& s, const CellCircuit<T>& circuit, const T* patch, T* scratch,
                  T* out) {
  const Rows rows(s);
  // Nobody reads hidden signals later, so channels and every second layer share their rows and stay in the cache.
  T* update = scratch + kTogether * rows.hidden * kTile;
  perceive(variant, s, rows, circuit, patch, scratch, Hidden::shared, update);
  T* const turns[] = {update + rows.update_width * kTile, update};
  const gate::LayerPlan* plans = circuit.plans.data() + s.perception.size();
  const T* in = update;
  std::size_t first = total(s.perception);
  for (std::size_t l = 0; l < s.update.size(); ++l) {
    T* to = l + 1 == s.update.size() ? out : turns[l % 2];
    gate::forward<T>(variant, {circuit.gates.subspan(first, s.update[l]), plans + l}, in, to);
    in = to;
    first += s.update[l];
  }
}

template <class T>
void tile_gradient(Variant variant, const CellShape& s, const CellCircuit<T>& circuit, const TileGradient<T>& arrays,
                   T* scratch) {
  const Rows rows(s);
  T* update = scratch + rows.update * kTile;
  perceive(variant, s, rows, circuit, arrays.patch, scratch, Hidden::kept, update);
  const std::size_t perception_gates = total(s.perception);
  const gate::LayerPlan* plans = circuit.plans.data() + s.perception.size();
  // The last layer's outputs are not needed.
  std::size_t first = perception_gates;
  const T* in = update;
  T* row = update + s.update_inputs() * kTile;
  for (std::size_t l = 0; l + 1 < s.update.size(); ++l) {
    gate::forward<T>(variant, {circuit.gates.subspan(first, s.update[l]), plans + l}, in, row);
    in = row;
    row += s.update[l] * kTile;
    first += s.update[l];
  }

  T* const turns[] = {scratch + rows.gradient * kTile, scratch + (rows.gradient + rows.update_width) * kTile};
  const T* dl_dout = arrays.dl_dout;
  for (std::size_t l = s.update.size(); l-- > 0;) {
    gate::backward<T>(variant, {circuit.gates.subspan(first, s.update[l]), plans + l},
                      {in, dl_dout, turns[l % 2], arrays.sums + first * gate::kPartial});
    dl_dout = turns[l % 2];
    if (l == 0) break;
    first -= s.update[l - 1];
    in = l > 1 ? in - s.update[l - 2] * kTile : update;
  }

  T* const small = scratch + (rows.gradient + 2 * rows.update_width) * kTile;
  for (std::size_t c = s.channels; c-- > 0;) {
    T* patch_rows = arrays.dl_dpatch + c * gate::kPatch * arrays.dl_dpatch_step;
    std::copy_n(dl_dout + c * kTile, kTile, patch_rows + gate::kCentre * arrays.dl_dpatch_step);
    const T* dl_dlayer = dl_dout + (s.channels + c * s.perception.back()) * kTile;
    std::size_t begin = perception_gates, signal = (c + 1) * rows.hidden;
    for (std::size_t l = s.perception.size(); l-- > 0;) {
      begin -= s.perception[l];
      T* dl_din = l > 0 ? small + (l % 2) * rows.perception_width * kTile : patch_rows;
      if (l > 0) signal -= s.perception[l - 1];
      const T* signals = l > 0 ? scratch + signal * kTile : arrays.patch + c * gate::kPatch * kTile;
      gate::backward<T>(
          variant, {circuit.gates.subspan(begin, s.perception[l]), &circuit.plans[l]},
          {signals, dl_dlayer, dl_din, arrays.sums + begin * gate::kPartial, l > 0 ? kTile : arrays.dl_dpatch_step});
      dl_dlayer = dl_din;
    }
  }
}

#define GRADLOOM_INSTANTIATE(T)                                                                      \
  template void tile_forward<T>(Variant, const CellShape&, const CellCircuit<T>&, const T*, T*, T*); \
  template void tile_gradient<T>(Variant, const CellShape&, const CellCircuit<T>&, const TileGradient<T>&, T*);
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom::logic
