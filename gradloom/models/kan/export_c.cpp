// A spline network as a C header. The text follows kernels/spline/reference.h line by line, because it has its bits.
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "gradloom/circuit/netlist.h"
#include "gradloom/kernels/elementary/limits.h"
#include "gradloom/models/kan/export.h"

namespace gradloom::kan {
namespace {

// In these texts @ stands for the name, REAL for the scalar, and SUFFIX for the end of its functions in <math.h>.
constexpr const char* kHead = R"(#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__) || (defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0)
#error "@ needs plain IEEE 754 arithmetic: no -ffast-math, no x87"
#endif

typedef struct {
  int in, out;
  const REAL *lo, *hi, *inverse_step; /* (in) */
  const REAL *knots, *inverse;        /* of free knots */
  const REAL *weight;                 /* (in, rows, out) */
  const REAL *bias;                   /* (out) */
} @_layer;

/* A compiler may not fuse a rounded product into a sum. */
static inline REAL @_rounded(REAL v) {
  volatile REAL r = v;
  return r;
}

)";

constexpr const char* kFused = R"(static inline REAL @_mul_add(REAL a, REAL b, REAL c) { return fmaSUFFIX(a, b, c); }

)";

constexpr const char* kSplit = R"(static inline REAL @_mul_add(REAL a, REAL b, REAL c) {
  volatile REAL product = a * b, rest = c;
  return product + rest;
}

)";

constexpr const char* kSilu = R"(static inline REAL @_silu(REAL x) {
  static const REAL factorials[] = {FACTORIALS};
  const REAL minus = 0 - x, shifted = @_mul_add(minus, INVERSE_LN2, ROUND_MAGIC), n = shifted - ROUND_MAGIC;
  const REAL r = @_mul_add(-n, LN2_LOW, @_mul_add(-n, LN2_HIGH, minus));
  const REAL before = shifted - 1;
  REAL p = factorials[EXP_DEGREE], power, e;
  UINT bits;
  int k;
  for (k = EXP_DEGREE - 1; k >= 0; --k) p = @_mul_add(p, r, factorials[k]);
  memcpy(&bits, &before, sizeof bits);
  bits = (bits << MANTISSA_BITS) + ONE_BITS;
  memcpy(&power, &bits, sizeof bits);
  e = @_rounded((p + p) * power);
  if (minus < EXP_LOW) e = 0;
  if (minus > EXP_HIGH) e = INFINITY;
  return x * (1 / (1 + e));
}

)";

constexpr const char* kUniformBasis =
    R"(/* The functions that are not zero at place t of an interval, and of one degree less. */
static inline void @_uniform(REAL t, REAL inverse_step, REAL *n, REAL *slope) {
  static const REAL inverse_degree[] = {INVERSE_DEGREES};
  int d, r;
  n[0] = 1;
  for (d = 1; d <= @_DEGREE; ++d) {
    REAL saved = 0;
    if (d == @_DEGREE)
      for (r = 0; r < d; ++r) slope[r] = @_rounded(n[r] * inverse_step);
    for (r = 0; r < d; ++r) {
      const REAL share = n[r] * inverse_degree[d], left = (REAL)(r + 1) - t;
      n[r] = r == 0 ? left * share : @_mul_add(left, share, saved);
      saved = (r + 1 == d ? t : t + (REAL)(d - 1 - r)) * share;
    }
    n[d] = saved;
  }
}

)";

constexpr const char* kFreeBasis = R"(/* The same on free knots, at x between knots[left] and knots[left + 1]. */
static inline void @_free(const @_layer *layer, int i, int left, REAL x, REAL *n, REAL *slope) {
  const REAL *knots = layer->knots + (long)i * @_KNOTS, *inverse = layer->inverse + (long)i * @_DEGREE * @_KNOTS;
  int d, r;
  n[0] = 1;
  for (d = 1; d <= @_DEGREE; ++d, inverse += @_KNOTS) {
    REAL share[@_DEGREE], saved = 0;
    for (r = 0; r < d; ++r) share[r] = n[r] * inverse[left + 1 + r - d];
    if (d == @_DEGREE)
      for (r = 0; r < d; ++r) slope[r] = @_rounded(share[r] * @_DEGREE);
    for (r = 0; r < d; ++r) {
      n[r] = @_mul_add(knots[left + 1 + r] - x, share[r], saved);
      saved = (x - knots[left + 1 + r - d]) * share[r];
    }
    n[d] = saved;
  }
}

)";

constexpr const char* kInside =
    R"(/* The DEGREE + 1 functions at x that are not zero, from the row on that is returned. */
static inline int @_basis(const @_layer *layer, int i, REAL x, REAL *value) {
  const REAL lo = layer->lo[i], hi = layer->hi[i];
  const int below = !(x >= lo), above = x > hi;
  const REAL inside = below ? lo : above ? hi : x;
  REAL slope[@_DEGREE];
  int span;
PLACE
  if (!below && !above) return span;
OUTSIDE
  return span;
}

)";

constexpr const char* kUniformPlace = R"(  const REAL u = @_rounded((inside - lo) * layer->inverse_step[i]);
  span = (int)floorSUFFIX(u);
  span = span < 0 ? 0 : span > @_GRID - 1 ? @_GRID - 1 : span;
  @_uniform(u - (REAL)span, layer->inverse_step[i], value, slope);)";

constexpr const char* kFreePlace = R"(  const REAL *first = layer->knots + (long)i * @_KNOTS + 2 * @_DEGREE;
  for (span = 0; span + 1 < @_GRID && first[span + 1] <= inside; ++span) {
  }
  @_free(layer, i, 2 * @_DEGREE + span, inside, value, slope);)";

constexpr const char* kLinear = R"(  {
    const REAL beyond = x - inside;
    int k;
    for (k = 0; k <= @_DEGREE; ++k) {
      const REAL change = (k > 0 ? slope[k - 1] : 0) - (k < @_DEGREE ? slope[k] : 0);
      value[k] = @_mul_add(change, beyond, value[k]);
    }
  })";

constexpr const char* kZero = "  memset(value, 0, (@_DEGREE + 1) * sizeof *value);";

constexpr const char* kExtend =
    R"(/* The DEGREE + 1 functions at x that are not zero, from the row on that is returned. */
static inline int @_basis(const @_layer *layer, int i, REAL x, REAL *value) {
  REAL all[@_DEGREE + 1], slope[@_DEGREE];
  int interval, span, k;
  memset(value, 0, (@_DEGREE + 1) * sizeof *value);
PLACE
  span = interval < 0 ? 0 : interval > @_GRID - 1 ? @_GRID - 1 : interval;
  for (k = 0; k <= @_DEGREE; ++k) {
    const int from = k + span - interval;
    if (from >= 0 && from <= @_DEGREE) value[k] = all[from];
  }
  return span;
}

)";

constexpr const char* kUniformExtended =
    R"(  const REAL u = @_rounded((x - layer->lo[i]) * layer->inverse_step[i]), f = floorSUFFIX(u);
  if (!(f >= -@_DEGREE && f < @_GRID + @_DEGREE)) return 0;
  interval = (int)f;
  @_uniform(u - f, layer->inverse_step[i], all, slope);)";

constexpr const char* kFreeExtended = R"(  const REAL *knots = layer->knots + (long)i * @_KNOTS;
  if (!(x >= knots[@_DEGREE] && x < knots[@_GRID + 3 * @_DEGREE])) return 0;
  for (interval = @_DEGREE; knots[interval + 1] <= x; ++interval) {
  }
  @_free(layer, i, interval, x, all, slope);
  interval -= 2 * @_DEGREE;)";

constexpr const char* kForward = R"(static inline void @_forward(const @_layer *layer, const REAL *x, REAL *y) {
  const REAL *w = layer->weight;
  int i, j, k;
  for (j = 0; j < layer->out; ++j) y[j] = layer->bias ? layer->bias[j] : 0;
  for (i = 0; i < layer->in; ++i, w += (long)@_ROWS * layer->out) {
    REAL value[@_DEGREE + 1];
    const REAL *row = w + (long)@_basis(layer, i, x[i], value) * layer->out;
    for (k = 0; k <= @_DEGREE; ++k, row += layer->out)
      for (j = 0; j < layer->out; ++j) y[j] = @_mul_add(value[k], row[j], y[j]);
BASE  }
}

)";

constexpr const char* kBase = R"(    {
      const REAL at = BASE_POINT, base = @_silu(at);
      row = w + (long)(@_ROWS - 1) * layer->out;
      for (j = 0; j < layer->out; ++j) y[j] = @_mul_add(base, row[j], y[j]);
    }
)";

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

template <class T>
std::string number(T value) {
  return fmt::format("{:a}{}", value, std::is_same_v<T, float> ? "f" : "");
}

template <class T>
std::string silu_text() {
  using L = kernels::ElementaryLimits<T>;
  const auto literal = [](double v) { return number(static_cast<T>(v)); };
  std::string factorials;
  for (int k = 0; k <= L::kExpDegree; ++k) factorials += (k > 0 ? ", " : "") + literal(L::kInverseFactorials[k]);
  const bool single = std::is_same_v<T, float>;
  const std::pair<const char*, std::string> names[] = {
      {"FACTORIALS", factorials},
      {"INVERSE_LN2", literal(L::kInverseLn2)},
      {"ROUND_MAGIC", literal(L::kRoundMagic)},
      {"LN2_LOW", literal(L::kLn2Low)},
      {"LN2_HIGH", literal(L::kLn2High)},
      {"EXP_DEGREE", std::to_string(L::kExpDegree)},
      {"MANTISSA_BITS", std::to_string(L::kMantissaBits)},
      {"ONE_BITS", fmt::format("UINT{}_C({:#x})", single ? 32 : 64, L::kOneBits)},
      {"EXP_LOW", literal(L::kExpLow)},
      {"EXP_HIGH", literal(L::kExpHigh)},
      {"UINT bits", single ? "uint32_t bits" : "uint64_t bits"}};
  std::string text = kSilu;
  for (const auto& [what, by] : names) text = replaced(std::move(text), what, by);
  return text;
}

std::string basis_text(const kernels::spline::Shape& shape) {
  const bool uniform = shape.knots == Knots::uniform;
  if (shape.outside == OutOfGrid::extend) return replaced(kExtend, "PLACE", uniform ? kUniformExtended : kFreeExtended);
  const std::string text = replaced(kInside, "PLACE", uniform ? kUniformPlace : kFreePlace);
  const char* outside = "";
  switch (shape.outside) {
    case OutOfGrid::linear:
      outside = kLinear;
      break;
    case OutOfGrid::zero:
      outside = kZero;
      break;
    case OutOfGrid::clamp:
    case OutOfGrid::extend:
      return replaced(text, "  if (!below && !above) return span;\nOUTSIDE\n", "");
  }
  return replaced(text, "OUTSIDE", outside);
}

template <class T>
std::string functions_text(const kernels::spline::Shape& shape, Arithmetic arithmetic) {
  std::string text = arithmetic == Arithmetic::fused ? kFused : kSplit;
  if (shape.base) text += silu_text<T>();
  if (shape.knots == Knots::uniform) {
    std::string inverses = "0";
    for (unsigned d = 1; d <= shape.degree; ++d) inverses += ", " + number(T(1) / static_cast<T>(d));
    text += replaced(kUniformBasis, "INVERSE_DEGREES", inverses);
  } else {
    text += kFreeBasis;
  }
  text += basis_text(shape);
  const std::string point = shape.outside == OutOfGrid::clamp
                                ? "x[i] < layer->lo[i] ? layer->lo[i] : x[i] > layer->hi[i] ? layer->hi[i] : x[i]"
                                : "x[i]";
  return text + replaced(kForward, "BASE", shape.base ? replaced(kBase, "BASE_POINT", point) : "");
}

// static const TYPE NAME_KEY[] = {...};
template <class T>
std::string array_text(const std::string& key, std::span<const T> values) {
  std::string text = fmt::format("static const {} @_{}[] = {{", std::is_same_v<T, float> ? "float" : "double", key);
  std::size_t column = 1000;
  for (const T v : values) {
    const std::string n = number(v);
    if (column + n.size() + 2 > 120)
      text += "\n  ", column = 2;
    else
      text += " ", column += 1;
    text += n + ",";
    column += n.size() + 1;
  }
  return text + "};\n";
}

template <class T>
std::vector<T> values_of(const Slice& slice, std::span<const T> flat) {
  std::vector<T> values;
  for_each_logical(slice, [&](std::size_t at) { values.push_back(flat[at]); });
  return values;
}

std::string comment_safe(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\\' || c == 127) c = '_';
  return replaced(replaced(std::move(text), "*/", "* /"), "/*", "/ *");
}

std::string about(const ExportHead& head, std::size_t in, std::size_t out) {
  std::string text = fmt::format("/* A spline network of {} inputs and {} outputs{}. Written by gradloom.\n", in, out,
                                 head.classes ? ", which are logits" : "");
  for (std::size_t i = 0; i < head.features.size(); ++i)
    text += fmt::format("   x[{}]: {}\n", i, comment_safe(head.features[i]));
  for (std::size_t j = 0; j < head.outputs.size(); ++j)
    text += fmt::format("   y[{}]: {}\n", j, comment_safe(head.outputs[j]));
  return text + "*/\n";
}

}  // namespace

template <class T>
std::string to_c(const Network<T>& network, const ModelArrays<T>& arrays, const ExportHead& head,
                 Arithmetic arithmetic) {
  circuit::netlist::check_name(head.name);
  const kernels::spline::Shape& shape = network.shape(0);
  const bool free = shape.knots == Knots::free;
  const bool centred = !head.input_centre.empty() || !head.output_centre.empty();
  std::string text = fmt::format("#ifndef @_H\n#define @_H\n{}", kHead);
  text += fmt::format("enum {{ @_GRID = {}, @_DEGREE = {}, @_ROWS = {}", shape.grid, shape.degree, shape.rows());
  text += free ? fmt::format(", @_KNOTS = {} }};\n\n", shape.extended_knots()) : " };\n\n";
  text += functions_text<T>(shape, arithmetic);

  const auto buffer = [&](const std::string& key, std::size_t slice) {
    text += array_text<T>(key, values_of<T>(network.buffers()[slice], arrays.buffers));
  };
  std::string layers, calls;
  const auto& affine = network.affine();
  buffer("mean", affine.input_mean), buffer("scale", affine.input_scale);
  buffer("output_mean", affine.output_mean), buffer("output_std", affine.output_std);
  for (std::size_t l = 0; l < network.layers(); ++l) {
    const auto& s = network.slices(l);
    const std::string n = std::to_string(l);
    buffer("lo" + n, s.lo), buffer("hi" + n, s.hi), buffer("inverse_step" + n, s.inverse_step);
    if (free) buffer("knots" + n, s.extended), buffer("inverse" + n, s.inverse);
    text += array_text<T>("weight" + n, values_of<T>(network.parameters()[s.weight], arrays.parameters));
    const bool bias = network.shape(l).bias;
    if (bias) text += array_text<T>("bias" + n, values_of<T>(network.parameters()[s.bias], arrays.parameters));
    layers += fmt::format(
        "  static const @_layer layer{0} = {{{1}, {2}, @_lo{0}, @_hi{0}, @_inverse_step{0}, {3}, "
        "@_weight{0}, {4}}};\n",
        l, network.shape(l).in, network.shape(l).out, free ? fmt::format("@_knots{0}, @_inverse{0}", l) : "0, 0",
        bias ? fmt::format("@_bias{}", l) : "0");
    const char* to = l % 2 == 0 ? "b" : "a";
    calls += fmt::format("  @_forward(&layer{}, {}, {});\n", l, l % 2 == 0 ? "a" : "b", to);
    if (const LayerNodes nodes = network.nodes(l); nodes.products > 0)
      calls += fmt::format("  for (i = {}; i < {}; ++i) {}[i] = @_rounded({}[i] * {}[i + {}]);\n", nodes.plain(),
                           nodes.nodes, to, to, to, nodes.products);
  }
  if (!head.input_centre.empty()) text += array_text<double>("input_centre", head.input_centre);
  if (!head.output_centre.empty()) text += array_text<double>("output_centre", head.output_centre);

  std::size_t widest = network.input_width();
  for (std::size_t l = 0; l < network.layers(); ++l) widest = std::max(widest, network.shape(l).out);
  const std::string in = head.input_centre.empty() ? "(REAL)x[i]" : "(REAL)(x[i] - @_input_centre[i])";
  const char* outer = centred || std::is_same_v<T, double> ? "double" : "float";
  text += fmt::format("\nABOUT\nstatic inline void @(const {} *x, {} *y) {{\n{}  REAL a[{}], b[{}];\n  int i;\n", outer,
                      outer, layers, widest, widest);
  text += fmt::format("  for (i = 0; i < {}; ++i) a[i] = @_rounded(({} - @_mean[i]) * @_scale[i]);\n{}",
                      network.input_width(), in, calls);
  text += fmt::format(
      "  for (i = 0; i < {}; ++i) {{\n    const REAL v = @_output_mean[i] + @_rounded(@_output_std[i] * "
      "{}[i]);\n    y[i] = v{};\n  }}\n}}\n\n#endif\n",
      network.output_width(), network.layers() % 2 == 0 ? "a" : "b",
      head.output_centre.empty() ? "" : " + @_output_centre[i]");
  text = replaced(std::move(text), "SUFFIX", std::is_same_v<T, float> ? "f" : "");
  text = replaced(std::move(text), "REAL", std::is_same_v<T, float> ? "float" : "double");
  text = replaced(std::move(text), "@", head.name);
  return replaced(std::move(text), "ABOUT\n", about(head, network.input_width(), network.output_width()));
}

template std::string to_c(const Network<float>&, const ModelArrays<float>&, const ExportHead&, Arithmetic);
template std::string to_c(const Network<double>&, const ModelArrays<double>&, const ExportHead&, Arithmetic);

}  // namespace gradloom::kan
