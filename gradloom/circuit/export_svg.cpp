#include <fmt/format.h>

#include <cmath>

#include "gradloom/circuit/export.h"
#include "gradloom/circuit/layers.h"
#include "gradloom/circuit/netlist.h"
#include "gradloom/circuit/validate.h"

namespace gradloom::circuit {
namespace {

constexpr double kLayer = 104, kLeft = 70, kTop = 84, kGateWidth = 40, kGateHeight = 28;

struct Symbol {
  enum class Shape { conjunction, disjunction, parity, buffer, constant } shape;
  bool invert_a, invert_b, invert;
};

Symbol symbol_of(Op op) {
  using S = Symbol::Shape;
  switch (op) {
    case Op::always_false:
    case Op::always_true:
      return {S::constant, false, false, false};
    case Op::a_and_b:
      return {S::conjunction, false, false, false};
    case Op::a_and_not_b:
      return {S::conjunction, false, true, false};
    case Op::not_a_and_b:
      return {S::conjunction, true, false, false};
    case Op::nand:
      return {S::conjunction, false, false, true};
    case Op::a_or_b:
      return {S::disjunction, false, false, false};
    case Op::a_or_not_b:
      return {S::disjunction, false, true, false};
    case Op::not_a_or_b:
      return {S::disjunction, true, false, false};
    case Op::nor:
      return {S::disjunction, false, false, true};
    case Op::a_xor_b:
      return {S::parity, false, false, false};
    case Op::xnor:
      return {S::parity, false, false, true};
    case Op::not_a:
    case Op::not_b:
      return {S::buffer, false, false, true};
    case Op::a:
    case Op::b:
      break;
  }
  return {S::buffer, false, false, false};
}

class Svg {
 public:
  Svg(const AnyCircuit& any, std::string_view name)
      : c_(circuit_of(any)),
        channels_(std::holds_alternative<CellRule>(any) ? std::get<CellRule>(any).channels : 0),
        drawing_(lay_out(c_)) {
    const CircuitSize size = size_of(c_);
    const double width = std::max(2 * kLeft + kLayer * (drawing_.layers - 1.0), 420.0),
                 height = drawing_.height + kTop + 30;
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" "
        "font-family=\"Helvetica, Arial, sans-serif\">\n<style>.wire{{fill:none;stroke-width:1.5;stroke-opacity:.8}}"
        ".gate path,.gate rect,.gate "
        "circle{{stroke:#1f2933;stroke-width:1.3}}.and{{fill:#cfe8e4}}.or{{fill:#fbe3b5}}.xor{{fill:#dcd3f2}}"
        ".not{{fill:#e4e7eb}}.dot{{fill:#fff}}.cell{{fill:#fff;stroke:#9aa5b1;stroke-width:.8}}.on{{fill:#1f2933}}"
        "text{{fill:#1f2933;font-size:12px}}.small{{font-size:11px;fill:#52606d}}</style>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        width, height);
    text_ += fmt::format("<text x=\"24\" y=\"34\" style=\"font-size:19px;font-weight:600\">{}</text>\n", name);
    text_ += fmt::format(
        "<text class=\"small\" x=\"24\" y=\"54\">{} gates, depth {}, {} of {} inputs used, {} {}</text>\n", size.gates,
        size.depth, size.used_inputs, c_.inputs, c_.outputs.size(), c_.outputs.size() == 1 ? "output" : "outputs");
    draw_wires();
    for (const DrawnPoint& p : drawing_.points) draw(p);
    text_ += "</svg>\n";
  }
  std::string take() { return std::move(text_); }

 private:
  double x_of(const DrawnPoint& p) const { return kLeft + kLayer * p.layer; }
  double y_of(const DrawnPoint& p) const { return kTop + p.y; }

  // Whether operand B enters gate g above A: where its wire comes from above, so that the two do not cross.
  bool upside_down(std::uint32_t g) const {
    const Gate& gate = c_.gates[g];
    const std::uint32_t layer = drawing_.points[drawing_.gate_point[g]].layer;
    const auto from = [&](std::uint32_t s) {
      const auto& wire = drawing_.wire[s];
      return drawing_.points[wire[layer - 1 - drawing_.points[wire[0]].layer]].y;
    };
    return reads_a(gate.op) && reads_b(gate.op) && from(gate.b) < from(gate.a);
  }

  // Where a wire enters gate g.
  double port_y(std::uint32_t g, bool second) const {
    const Op op = c_.gates[g].op;
    const double y = y_of(drawing_.points[drawing_.gate_point[g]]);
    return reads_a(op) && reads_b(op) ? y + (second != upside_down(g) ? 8 : -8) : y;
  }

  void curve(double x0, double y0, double x1, double y1) {
    const double bend = (x1 - x0) * 0.5;
    text_ += fmt::format("M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", x0, y0, x0 + bend, y0, x1 - bend,
                         y1, x1, y1);
  }

  // One path per signal: along its bends, with a branch to each reader.
  void draw_wires() {
    struct End {
      std::uint32_t layer;
      double x, y;
    };
    std::vector<std::vector<End>> ends(c_.signals());
    for (std::uint32_t g = 0; g < c_.gates.size(); ++g) {
      const DrawnPoint& p = drawing_.points[drawing_.gate_point[g]];
      const Symbol symbol = symbol_of(c_.gates[g].op);
      // The back of a gate for OR and XOR is hollow; bubbles stand before it.
      const auto left = [&](bool bubble) {
        return x_of(p) - kGateWidth / 2 - (bubble ? 6 : 0) +
               (symbol.shape == Symbol::Shape::disjunction || symbol.shape == Symbol::Shape::parity ? 4 : 0);
      };
      if (reads_a(c_.gates[g].op)) ends[c_.gates[g].a].push_back({p.layer, left(symbol.invert_a), port_y(g, false)});
      if (reads_b(c_.gates[g].op)) ends[c_.gates[g].b].push_back({p.layer, left(symbol.invert_b), port_y(g, true)});
    }
    for (std::uint32_t o = 0; o < c_.outputs.size(); ++o) {
      const DrawnPoint& p = drawing_.points[drawing_.output_point[o]];
      ends[c_.outputs[o]].push_back({p.layer, x_of(p) - 18, y_of(p)});
    }
    for (std::uint32_t s = 0; s < c_.signals(); ++s) {
      if (drawing_.wire[s].empty() || ends[s].empty()) continue;
      const double hue = std::fmod(s * 137.508, 360.0);
      text_ += fmt::format("<path class=\"wire\" stroke=\"hsl({:.0f},45%,45%)\" d=\"", hue);
      const auto start = [&](std::size_t k) {
        const DrawnPoint& p = drawing_.points[drawing_.wire[s][k]];
        const bool bubble = p.kind == DrawnPoint::Kind::gate && symbol_of(c_.gates[p.index].op).invert;
        const double out = p.kind == DrawnPoint::Kind::bend   ? 18
                           : p.kind == DrawnPoint::Kind::gate ? kGateWidth / 2 + (bubble ? 6 : 0)
                                                              : 14;
        return std::pair{x_of(p) + out, y_of(p)};
      };
      for (std::size_t k = 1; k < drawing_.wire[s].size(); ++k) {
        const auto [x0, y0] = start(k - 1);
        const DrawnPoint& p = drawing_.points[drawing_.wire[s][k]];
        curve(x0, y0, x_of(p) - 18, y_of(p));
        text_ += fmt::format("L{:.1f} {:.1f}", x_of(p) + 18, y_of(p));
      }
      const std::uint32_t own = drawing_.points[drawing_.wire[s][0]].layer;
      for (const End& end : ends[s]) {
        const auto [x0, y0] = start(end.layer - 1 - own);
        curve(x0, y0, end.x, end.y);
      }
      text_ += "\"/>\n";
    }
  }

  void draw(const DrawnPoint& p) {
    if (p.kind == DrawnPoint::Kind::input) draw_input(p);
    if (p.kind == DrawnPoint::Kind::gate) draw_gate(p);
    if (p.kind != DrawnPoint::Kind::output) return;
    const std::string label =
        channels_ > 0 ? (channels_ == 1 ? "next" : fmt::format("next {}", p.index)) : fmt::format("out {}", p.index);
    text_ += fmt::format(
        "<g>{5}<circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"5\" fill=\"#1f2933\"/><text x=\"{2:.1f}\" "
        "y=\"{3:.1f}\">{4}</text></g>\n",
        x_of(p) - 13, y_of(p), x_of(p) - 2, y_of(p) + 4, label,
        p.index < c_.meaning.outputs.size() ? titled(netlist::safe_text(c_.meaning.outputs[p.index])) : "");
  }

  // A cell of the patch is a picture of it.
  void draw_input(const DrawnPoint& p) {
    const double x = x_of(p), y = y_of(p);
    if (channels_ == 0) {
      text_ += fmt::format(
          "<g>{}<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">in {}</text><circle cx=\"{:.1f}\" cy=\"{:.1f}\" "
          "r=\"3\" class=\"on\"/></g>\n",
          p.index < c_.meaning.inputs.size() ? titled(netlist::input_text(c_.meaning.inputs[p.index])) : "", x + 4,
          y + 4, p.index, x + 12, y);
      return;
    }
    text_ += "<g>";
    for (std::uint32_t k = 0; k < 9; ++k)
      text_ += fmt::format("<rect class=\"cell{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"8\" height=\"8\"/>",
                           k == p.index % 9 ? " on" : "", x - 12 + 8 * (k % 3), y - 12 + 8 * (k / 3));
    if (channels_ > 1)
      text_ += fmt::format("<text class=\"small\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", x - 18,
                           y + 4, p.index / 9);
    text_ += "</g>\n";
  }

  void draw_gate(const DrawnPoint& p) {
    const Op op = c_.gates[p.index].op;
    const Symbol symbol = symbol_of(op);
    const double x = x_of(p) - kGateWidth / 2, y = y_of(p) - kGateHeight / 2, right = x + kGateWidth,
                 bottom = y + kGateHeight, middle = y_of(p);
    text_ += fmt::format("<g class=\"gate\"><title>signal {}: {}</title>", c_.inputs + p.index,
                         escaped(netlist::op_name(op)));
    switch (symbol.shape) {
      case Symbol::Shape::conjunction:
        text_ +=
            fmt::format("<path class=\"and\" d=\"M{0:.1f} {1:.1f}H{2:.1f}A14 14 0 0 1 {2:.1f} {3:.1f}H{0:.1f}Z\"/>", x,
                        y, right - 14, bottom);
        break;
      case Symbol::Shape::disjunction:
      case Symbol::Shape::parity: {
        const bool parity = symbol.shape == Symbol::Shape::parity;
        text_ += fmt::format(
            "<path class=\"{0}\" d=\"M{1:.1f} {2:.1f}Q{3:.1f} {2:.1f} {4:.1f} {5:.1f}Q{3:.1f} {6:.1f} {1:.1f} "
            "{6:.1f}Q{7:.1f} {5:.1f} {1:.1f} {2:.1f}Z\"/>",
            parity ? "xor" : "or", x, y, right - 12, right, middle, bottom, x + 11);
        if (parity)
          text_ += fmt::format("<path fill=\"none\" d=\"M{0:.1f} {1:.1f}Q{2:.1f} {3:.1f} {0:.1f} {4:.1f}\"/>", x - 5, y,
                               x + 6, middle, bottom);
        break;
      }
      case Symbol::Shape::buffer:
        text_ += fmt::format("<path class=\"not\" d=\"M{0:.1f} {1:.1f}L{2:.1f} {3:.1f}L{0:.1f} {4:.1f}Z\"/>", x + 4,
                             y + 2, right, middle, bottom - 2);
        break;
      case Symbol::Shape::constant:
        text_ += fmt::format(
            "<rect class=\"not\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"26\" height=\"24\" rx=\"4\"/><text x=\"{:.1f}\" "
            "y=\"{:.1f}\">{}</text>",
            x + 14, y + 2, x + 24, middle + 4, op == Op::always_true ? 1 : 0);
        break;
    }
    const auto bubble = [&](double cx, double cy) {
      text_ += fmt::format("<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>", cx, cy);
    };
    const double hollow = symbol.shape == Symbol::Shape::disjunction ? 4 : 0;
    if (symbol.invert_a) bubble(x - 3 + hollow, port_y(p.index, false));
    if (symbol.invert_b) bubble(x - 3 + hollow, port_y(p.index, true));
    if (symbol.invert) bubble(right + 3, middle);
    text_ += "</g>\n";
  }

  static std::string titled(std::string_view text) { return fmt::format("<title>{}</title>", escaped(text)); }

  static std::string escaped(std::string_view text) {
    std::string safe;
    for (const char c : text) safe += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
    return safe;
  }

  const Circuit& c_;
  std::uint32_t channels_;
  Drawing drawing_;
  std::string text_;
};

}  // namespace

std::string to_svg(const AnyCircuit& any, std::string_view name) {
  netlist::check_name(name);
  validate(circuit_of(any)).or_throw();
  return Svg(any, name).take();
}

}  // namespace gradloom::circuit
