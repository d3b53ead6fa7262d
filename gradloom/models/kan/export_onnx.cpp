// A spline network as an ONNX model: every layer computes all basis functions of its inputs by Cox and de Boor's
// recursion on whole tensors, then multiplies by a matrix.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "gradloom/io/protobuf.h"
#include "gradloom/models/kan/export.h"

namespace gradloom::kan {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX tensors are little-endian");

// Numbers of the fields and types in onnx.proto.
enum class OnnxType : std::int64_t { float32 = 1, int64 = 7, float64 = 11 };
template <class T>
constexpr OnnxType onnx_type() {
  if constexpr (std::is_same_v<T, float>) return OnnxType::float32;
  if constexpr (std::is_same_v<T, double>) return OnnxType::float64;
  if constexpr (std::is_same_v<T, std::int64_t>) return OnnxType::int64;
}
constexpr std::int64_t kIntAttribute = 2;
constexpr std::int64_t kIrVersion = 8, kOperators = 13;

using Dims = std::vector<std::size_t>;

// Nodes and constants of a graph; every node has one output, whose name is returned.
class OnnxGraph {
 public:
  std::string node(const char* op, const std::vector<std::string>& inputs, std::string output = "") {
    return add(op, inputs, {}, std::move(output));
  }
  std::string node(const char* op, const std::vector<std::string>& inputs, const char* attribute, std::int64_t value,
                   std::string output = "") {
    ProtobufMessage a;
    a.bytes(1, attribute).number(3, value).number(20, kIntAttribute);
    return add(op, inputs, a.text(), std::move(output));
  }
  template <class T>
  std::string constant(const Dims& dims, const std::vector<T>& values) {
    const std::string name = fmt::format("c{}", constants_++);
    ProtobufMessage tensor;
    for (const std::size_t d : dims) tensor.number(1, static_cast<std::int64_t>(d));
    tensor.number(2, static_cast<std::int64_t>(onnx_type<T>())).bytes(8, name);
    tensor.bytes(9, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
    initializers_.push_back(tensor.text());
    return name;
  }
  void value(unsigned field, const char* name, OnnxType type, std::size_t width) {
    ProtobufMessage rows, columns, shape, tensor, kind, info;
    rows.bytes(2, "rows"), columns.number(1, static_cast<std::int64_t>(width));
    shape.message(1, rows).message(1, columns);
    tensor.number(1, static_cast<std::int64_t>(type)).message(2, shape);
    kind.message(1, tensor);
    info.bytes(1, name).message(2, kind);
    values_.emplace_back(field, info.text());
  }
  ProtobufMessage finish(const std::string& name) const {
    ProtobufMessage graph;
    for (const std::string& n : nodes_) graph.bytes(1, n);
    graph.bytes(2, name);
    for (const std::string& i : initializers_) graph.bytes(5, i);
    for (const auto& [field, info] : values_) graph.bytes(field, info);
    return graph;
  }

 private:
  std::string add(const char* op, const std::vector<std::string>& inputs, const std::string& attribute,
                  std::string output) {
    if (output.empty()) output = fmt::format("t{}", nodes_.size());
    ProtobufMessage n;
    for (const std::string& i : inputs) n.bytes(1, i);
    n.bytes(2, output).bytes(3, fmt::format("{}{}", op, nodes_.size())).bytes(4, op);
    if (!attribute.empty()) n.bytes(5, attribute);
    nodes_.push_back(n.text());
    return output;
  }

  std::vector<std::string> nodes_, initializers_;
  std::vector<std::pair<unsigned, std::string>> values_;
  std::size_t constants_ = 0;
};

template <class T>
class OnnxLayers {
 public:
  OnnxLayers(OnnxGraph& graph, const Network<T>& network, const ModelArrays<T>& arrays)
      : g_(graph), network_(network), arrays_(arrays) {}

  std::vector<T> buffer(std::size_t slice) const { return values(network_.buffers()[slice], arrays_.buffers); }

  std::string layer(std::size_t l, const std::string& x) {
    const kernels::spline::Shape& s = network_.shape(l);
    const auto& slices = network_.slices(l);
    const std::vector<T> lo = buffer(slices.lo), hi = buffer(slices.hi);
    const bool uniform = s.knots == Knots::uniform, extend = s.outside == OutOfGrid::extend;
    // z: on a uniform grid, in units of its intervals.
    const std::string at =
        uniform ? g_.node("Mul", {g_.node("Sub", {x, row(lo)}), row(buffer(slices.inverse_step))}) : x;
    const std::string low = uniform ? scalar(0) : row(lo), high = uniform ? scalar(s.grid) : row(hi);
    const std::string inside = extend ? at : g_.node("Min", {g_.node("Max", {at, low}), high});
    const Knot knots = knots_of(l);
    const std::string z = g_.node("Unsqueeze", {inside, g_.constant<std::int64_t>({1}, {2})});
    std::string n = interval(s, knots, z), slope;
    const std::size_t intervals = s.grid + 2 * s.degree;
    for (unsigned d = 1; d <= s.degree; ++d) {
      const std::string first = slice(n, 0, intervals - d), second = slice(n, 1, intervals - d + 1);
      const auto table = [&](auto&& f) { return per_knot(knots, intervals - d, f); };
      const std::string rise = table([&](const auto& t, std::size_t r) { return 1 / (t[r + d] - t[r]); });
      const std::string fall = table([&](const auto& t, std::size_t r) { return 1 / (t[r + d + 1] - t[r + 1]); });
      const std::string a = g_.node("Mul", {first, rise}), b = g_.node("Mul", {second, fall});
      if (d == s.degree && s.outside == OutOfGrid::linear)
        slope = g_.node("Mul", {g_.node("Sub", {a, b}), scalar(s.degree)});
      const std::string from = table([](const auto& t, std::size_t r) { return t[r]; });
      const std::string to = table([&](const auto& t, std::size_t r) { return t[r + d + 1]; });
      n = g_.node("Add",
                  {g_.node("Mul", {g_.node("Sub", {z, from}), a}), g_.node("Mul", {g_.node("Sub", {to, z}), b})});
    }
    if (s.outside == OutOfGrid::linear) {
      const std::string beyond =
          g_.node("Unsqueeze", {g_.node("Sub", {at, inside}), g_.constant<std::int64_t>({1}, {2})});
      n = g_.node("Add", {n, g_.node("Mul", {slope, beyond})});
    } else if (s.outside == OutOfGrid::zero) {
      const std::string within =
          g_.node("And", {g_.node("GreaterOrEqual", {x, row(lo)}), g_.node("LessOrEqual", {x, row(hi)})});
      const std::string mask = g_.node("Cast", {within}, "to", static_cast<std::int64_t>(onnx_type<T>()));
      n = g_.node("Mul", {n, g_.node("Unsqueeze", {mask, g_.constant<std::int64_t>({1}, {2})})});
    }
    return multiplied(
        network_.nodes(l),
        weighted(l, n, s.outside == OutOfGrid::clamp ? g_.node("Min", {g_.node("Max", {x, row(lo)}), row(hi)}) : x));
  }

  std::string row(const std::vector<T>& v) { return g_.constant<T>({v.size()}, v); }

 private:
  using Knot = std::vector<std::vector<double>>;  // (1 or In, G + 2p + 1)

  static std::vector<T> values(const Slice& slice, std::span<const T> flat) {
    std::vector<T> v;
    for_each_logical(slice, [&](std::size_t at) { v.push_back(flat[at]); });
    return v;
  }
  std::string scalar(double v) { return g_.constant<T>({}, {static_cast<T>(v)}); }

  Knot knots_of(std::size_t l) const {
    const kernels::spline::Shape& s = network_.shape(l);
    const std::size_t count = s.grid + 2 * s.degree + 1;
    Knot knots;
    if (s.knots == Knots::uniform) {
      knots.emplace_back();
      for (std::size_t m = 0; m < count; ++m)
        knots[0].push_back(static_cast<double>(m) - static_cast<double>(s.degree));
      return knots;
    }
    const std::vector<T> extended = buffer(network_.slices(l).extended);
    for (std::size_t i = 0; i < s.in; ++i) {
      const T* first = extended.data() + i * s.extended_knots() + s.degree;
      knots.emplace_back(first, first + count);
    }
    return knots;
  }

  // f(knots of an input, r) for r < count, as a constant (1 or In, count).
  template <class F>
  std::string per_knot(const Knot& knots, std::size_t count, F&& f) {
    std::vector<T> v;
    for (const auto& t : knots)
      for (std::size_t r = 0; r < count; ++r) v.push_back(static_cast<T>(f(t, r)));
    return g_.constant<T>({knots.size(), count}, v);
  }

  // Which interval z is in, as zeros and ones. Unless the grid is extended, all before the second knot is in the
  // first of the G and all beyond the last but one in the last.
  std::string interval(const kernels::spline::Shape& s, const Knot& knots, const std::string& z) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const bool extend = s.outside == OutOfGrid::extend;
    const std::size_t p = s.degree, last = p + s.grid - 1;
    const std::string from = per_knot(knots, s.grid + 2 * p, [&](const auto& t, std::size_t m) {
      return extend ? t[m] : m < p || m > last ? kInf : m == p ? -kInf : t[m];
    });
    const std::string to = per_knot(
        knots, s.grid + 2 * p, [&](const auto& t, std::size_t m) { return !extend && m == last ? kInf : t[m + 1]; });
    const std::string both = g_.node("And", {g_.node("GreaterOrEqual", {z, from}), g_.node("Less", {z, to})});
    return g_.node("Cast", {both}, "to", static_cast<std::int64_t>(onnx_type<T>()));
  }

  std::string slice(const std::string& v, std::size_t from, std::size_t to, std::size_t axis = 2) {
    const auto one = [&](std::size_t n) { return g_.constant<std::int64_t>({1}, {static_cast<std::int64_t>(n)}); };
    return g_.node("Slice", {v, one(from), one(to), one(axis)});
  }

  // The nodes of a layer from its sums (rows, sums).
  std::string multiplied(const LayerNodes& nodes, const std::string& sums) {
    if (nodes.products == 0) return sums;
    const std::string products =
        g_.node("Mul", {slice(sums, nodes.plain(), nodes.nodes, 1), slice(sums, nodes.nodes, nodes.sums(), 1)});
    if (nodes.plain() == 0) return products;
    return g_.node("Concat", {slice(sums, 0, nodes.plain(), 1), products}, "axis", 1);
  }

  std::string weighted(std::size_t l, const std::string& basis, const std::string& base_point) {
    const kernels::spline::Shape& s = network_.shape(l);
    const std::vector<T> w = values(network_.parameters()[network_.slices(l).weight], arrays_.parameters);
    std::vector<T> spline, base;
    for (std::size_t i = 0; i < s.in; ++i) {
      const T* of_input = w.data() + i * s.rows() * s.out;
      spline.insert(spline.end(), of_input, of_input + s.spline_rows() * s.out);
      if (s.base) base.insert(base.end(), of_input + s.spline_rows() * s.out, of_input + s.rows() * s.out);
    }
    const std::size_t columns = s.in * s.spline_rows();
    const std::string flat =
        g_.node("Reshape", {basis, g_.constant<std::int64_t>({2}, {-1, static_cast<std::int64_t>(columns)})});
    std::string y = g_.node("MatMul", {flat, g_.constant<T>({columns, s.out}, spline)});
    if (s.base) {
      const std::string silu = g_.node("Mul", {base_point, g_.node("Sigmoid", {base_point})});
      y = g_.node("Add", {y, g_.node("MatMul", {silu, g_.constant<T>({s.in, s.out}, base)})});
    }
    if (s.bias)
      y = g_.node("Add", {y, row(values(network_.parameters()[network_.slices(l).bias], arrays_.parameters))});
    return y;
  }

  OnnxGraph& g_;
  const Network<T>& network_;
  const ModelArrays<T>& arrays_;
};

std::string joined(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, "\n")); }

}  // namespace

template <class T>
Result<std::string> to_onnx(const Network<T>& network, const ModelArrays<T>& arrays, const ExportHead& head) {
  OnnxGraph g;
  OnnxLayers<T> layers(g, network, arrays);
  const bool centred = !head.input_centre.empty() || !head.output_centre.empty();
  const OnnxType inner = onnx_type<T>(), outer = centred ? OnnxType::float64 : inner;
  const auto cast = [&](const std::string& v, OnnxType to) {
    return inner == outer ? v : g.node("Cast", {v}, "to", static_cast<std::int64_t>(to));
  };
  const auto doubles = [&](const std::vector<double>& v) { return g.constant<double>({v.size()}, v); };
  g.value(11, "x", outer, network.input_width());
  std::string v = "x";
  if (!head.input_centre.empty()) v = g.node("Sub", {v, doubles(head.input_centre)});
  v = cast(v, inner);
  const auto& affine = network.affine();
  v = g.node("Mul", {g.node("Sub", {v, layers.row(layers.buffer(affine.input_mean))}),
                     layers.row(layers.buffer(affine.input_scale))});
  for (std::size_t l = 0; l < network.layers(); ++l) v = layers.layer(l, v);
  v = g.node("Mul", {v, layers.row(layers.buffer(affine.output_std))});
  v = cast(g.node("Add", {v, layers.row(layers.buffer(affine.output_mean))}), outer);
  if (head.output_centre.empty())
    g.node("Identity", {v}, "y");
  else
    g.node("Add", {v, doubles(head.output_centre)}, "y");
  g.value(12, "y", outer, network.output_width());
  if (head.classes) {
    if (network.output_width() > 1)
      g.node("Softmax", {"y"}, "axis", 1, "probabilities");
    else
      g.node("Sigmoid", {"y"}, "probabilities");
    g.value(12, "probabilities", outer, network.output_width());
  }
  ProtobufMessage operators, model;
  operators.bytes(1, "").number(2, kOperators);
  model.number(1, kIrVersion).bytes(2, "gradloom").message(7, g.finish(head.name)).message(8, operators);
  for (const auto& [key, names] : {std::pair{"features", &head.features}, std::pair{"outputs", &head.outputs}}) {
    ProtobufMessage entry;
    entry.bytes(1, key).bytes(2, joined(*names));
    if (!names->empty()) model.message(14, entry);
  }
  if (model.text().size() > std::numeric_limits<std::int32_t>::max())
    return Error{ErrorCode::unsupported,
                 fmt::format("the network needs {} bytes; an ONNX file has at most 2 GB", model.text().size())};
  return model.text();
}

template Result<std::string> to_onnx(const Network<float>&, const ModelArrays<float>&, const ExportHead&);
template Result<std::string> to_onnx(const Network<double>&, const ModelArrays<double>&, const ExportHead&);

}  // namespace gradloom::kan
