#include "gradloom/circuit/layers.h"

#include <algorithm>
#include <numeric>

#include "gradloom/circuit/validate.h"

namespace gradloom::circuit {
namespace {

constexpr double kGateRoom = 44, kInputRoom = 38, kBendRoom = 9;
constexpr int kOrderSweeps = 24, kPlaceSweeps = 40;

double room(const DrawnPoint& p) {
  return p.kind == DrawnPoint::Kind::bend ? kBendRoom : p.kind == DrawnPoint::Kind::gate ? kGateRoom : kInputRoom;
}

class Layout {
 public:
  explicit Layout(const Circuit& c) : c_(c) {
    make_points();
    order();
    place();
  }
  Drawing take() { return std::move(d_); }

 private:
  std::uint32_t add(DrawnPoint::Kind kind, std::uint32_t index, std::uint32_t layer) {
    d_.points.push_back({kind, index, layer, 0, {}, {}});
    return static_cast<std::uint32_t>(d_.points.size() - 1);
  }

  void connect(std::uint32_t from, std::uint32_t to) {
    d_.points[from].after.push_back(to);
    d_.points[to].before.push_back(from);
  }

  void make_points() {
    std::vector<std::uint32_t> layer(c_.signals(), 0), last(c_.signals(), 0);
    std::vector<bool> read(c_.signals(), false);
    const auto reads = [&](std::uint32_t s, std::uint32_t at) {
      read[s] = true;
      last[s] = std::max(last[s], at);
    };
    for (std::uint32_t g = 0; g < c_.gates.size(); ++g) {
      const Gate& gate = c_.gates[g];
      std::uint32_t& own = layer[c_.inputs + g];
      own = 1;
      if (reads_a(gate.op)) own = std::max(own, layer[gate.a] + 1);
      if (reads_b(gate.op)) own = std::max(own, layer[gate.b] + 1);
      if (reads_a(gate.op)) reads(gate.a, own);
      if (reads_b(gate.op)) reads(gate.b, own);
    }
    const std::uint32_t end = layer.empty() ? 1 : *std::max_element(layer.begin(), layer.end()) + 1;
    for (const std::uint32_t o : c_.outputs) reads(o, end);
    d_.layers = end + 1;

    d_.wire.resize(c_.signals());
    for (std::uint32_t s = 0; s < c_.signals(); ++s) {
      const bool input = s < c_.inputs;
      if (input && !read[s]) continue;
      d_.wire[s].push_back(
          add(input ? DrawnPoint::Kind::input : DrawnPoint::Kind::gate, input ? s : s - c_.inputs, layer[s]));
      if (!input) d_.gate_point.push_back(d_.wire[s][0]);
      for (std::uint32_t at = layer[s] + 1; at < last[s]; ++at) {
        d_.wire[s].push_back(add(DrawnPoint::Kind::bend, s, at));
        connect(d_.wire[s][d_.wire[s].size() - 2], d_.wire[s].back());
      }
    }
    const auto join = [&](std::uint32_t s, std::uint32_t to) {
      connect(d_.wire[s][d_.points[to].layer - 1 - layer[s]], to);
    };
    for (std::uint32_t g = 0; g < c_.gates.size(); ++g) {
      if (reads_a(c_.gates[g].op)) join(c_.gates[g].a, d_.gate_point[g]);
      if (reads_b(c_.gates[g].op)) join(c_.gates[g].b, d_.gate_point[g]);
    }
    for (std::uint32_t o = 0; o < c_.outputs.size(); ++o) {
      d_.output_point.push_back(add(DrawnPoint::Kind::output, o, end));
      join(c_.outputs[o], d_.output_point.back());
    }
    rows_.resize(d_.layers);
    for (std::uint32_t p = 0; p < d_.points.size(); ++p) rows_[d_.points[p].layer].push_back(p);
  }

  double mean_of(const std::vector<std::uint32_t>& points, double otherwise) const {
    if (points.empty()) return otherwise;
    double sum = 0;
    for (const std::uint32_t p : points) sum += d_.points[p].y;
    return sum / static_cast<double>(points.size());
  }

  void number(std::vector<std::uint32_t>& row) {
    double y = 0;
    for (const std::uint32_t p : row) {
      d_.points[p].y = y + room(d_.points[p]) / 2;
      y += room(d_.points[p]);
    }
    for (const std::uint32_t p : row) d_.points[p].y -= y / 2;
  }

  // Each layer by the mean of its neighbours, from the left and from the right in turn: few wires cross.
  void order() {
    for (auto& row : rows_) number(row);
    for (int sweep = 0; sweep < kOrderSweeps; ++sweep)
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        auto& row = rows_[sweep % 2 == 0 ? i : rows_.size() - 1 - i];
        std::vector<std::pair<double, std::uint32_t>> keys;
        for (const std::uint32_t p : row) {
          const DrawnPoint& point = d_.points[p];
          keys.emplace_back(mean_of(sweep % 2 == 0 ? point.before : point.after, point.y), p);
        }
        std::stable_sort(keys.begin(), keys.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
        for (std::size_t k = 0; k < row.size(); ++k) row[k] = keys[k].second;
        number(row);
      }
  }

  // Towards the neighbours as far as the order and the room allow.
  void place() {
    for (int sweep = 0; sweep < kPlaceSweeps; ++sweep)
      for (auto& row : rows_) {
        std::vector<double> wanted;
        for (const std::uint32_t p : row) {
          const DrawnPoint& point = d_.points[p];
          const double before = mean_of(point.before, point.y), after = mean_of(point.after, point.y);
          wanted.push_back(point.before.empty() ? after : point.after.empty() ? before : (before + after) / 2);
        }
        std::vector<double> low = wanted, high = wanted;
        const auto apart = [&](std::size_t i) { return (room(d_.points[row[i]]) + room(d_.points[row[i - 1]])) / 2; };
        for (std::size_t i = 1; i < row.size(); ++i) low[i] = std::max(low[i], low[i - 1] + apart(i));
        for (std::size_t i = row.size(); i-- > 1;) high[i - 1] = std::min(high[i - 1], high[i] - apart(i));
        for (std::size_t i = 0; i < row.size(); ++i) d_.points[row[i]].y = (low[i] + high[i]) / 2;
      }
    if (d_.points.empty()) return;
    double top = d_.points[0].y, bottom = top;
    for (const DrawnPoint& p : d_.points) {
      top = std::min(top, p.y - room(p) / 2);
      bottom = std::max(bottom, p.y + room(p) / 2);
    }
    for (DrawnPoint& p : d_.points) p.y -= top;
    d_.height = bottom - top;
  }

  const Circuit& c_;
  Drawing d_;
  std::vector<std::vector<std::uint32_t>> rows_;
};

}  // namespace

Drawing lay_out(const Circuit& circuit) { return Layout(circuit).take(); }

}  // namespace gradloom::circuit
