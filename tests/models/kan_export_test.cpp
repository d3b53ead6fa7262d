// Exports of spline networks compute what the network computes.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <set>

#include "gradloom/circuit/subprocess.h"
#include "gradloom/models/kan/export.h"
#include "tests/models/kan_support.h"
#include "tests/support/scratch.h"

namespace gradloom {
namespace {

using kan::ExportHead;
using kan::Knots;
using kan::NetworkOptions;
using kan::OutOfGrid;
using test::KanFixture;
using test::same_bits;
using test::Scratch;
using testing::HasSubstr;

// Random weights, biases, normalisation and knots.
template <class T>
KanFixture<T> filled_network(NetworkOptions o, std::uint64_t seed) {
  KanFixture<T> f(std::move(o), 400, seed, 3.0);
  const RandomStream random(seed, RandomUse::user, 1);
  std::uint32_t next = 0;
  const auto each = [&](const Slice& slice, std::span<T> flat, auto&& value) {
    for_each_logical(slice, [&](std::size_t at) { flat[at] = static_cast<T>(value(random.uniform(next++))); });
  };
  for (const Slice& slice : f.network.parameters())
    each(slice, f.parameters.span(), [](double u) { return 2 * u - 1; });
  const auto& a = f.network.affine();
  for (const std::size_t mean : {a.input_mean, a.output_mean})
    each(f.network.buffers()[mean], f.buffers.span(), [](double u) { return u - 0.5; });
  for (const std::size_t std : {a.input_std, a.output_std})
    each(f.network.buffers()[std], f.buffers.span(), [](double u) { return 0.5 + u; });
  for (std::size_t l = 0; l < f.network.layers(); ++l) {
    const auto& s = f.network.slices(l);
    each(f.network.buffers()[s.lo], f.buffers.span(), [](double u) { return -1 - u; });
    each(f.network.buffers()[s.hi], f.buffers.span(), [](double u) { return 1 + u; });
    if (f.network.options().knots != Knots::free) continue;
    const Slice& knots = f.network.buffers()[s.knots];
    const std::size_t per_input = knots.shape.back();
    std::size_t n = 0;
    for_each_logical(knots, [&](std::size_t at) {
      const double k = static_cast<double>(n % per_input) / static_cast<double>(per_input - 1);
      f.buffers[at] = static_cast<T>(-1.5 + 3 * k * k * (0.9 + 0.1 * k));
      ++n;
    });
    n = 0;
    for_each_logical(knots, [&](std::size_t at) {
      const std::size_t i = n / per_input;
      if (n % per_input == 0) f.buffers[f.network.buffers()[s.lo].offset + i] = f.buffers[at];
      if (n % per_input == per_input - 1) f.buffers[f.network.buffers()[s.hi].offset + i] = f.buffers[at];
      ++n;
    });
  }
  f.network.derive(f.buffers.span()).or_throw();
  // Knots, ends of grids, zeros and huge values are among the inputs.
  const std::size_t in = f.network.input_width();
  for (std::size_t i = 0; i < in; ++i) {
    const double mean = f.buffers[f.network.buffers()[a.input_mean].offset + i];
    const double special[] = {0, mean, -1, 1, 1e6, -1e6, 40, -40, 300, -300};
    for (std::size_t n = 0; n < std::size(special); ++n) f.x[n * in + i] = static_cast<T>(special[n]);
  }
  return f;
}

std::vector<NetworkOptions> all_kinds() {
  std::vector<NetworkOptions> kinds;
  for (const OutOfGrid outside : {OutOfGrid::linear, OutOfGrid::clamp, OutOfGrid::extend, OutOfGrid::zero})
    for (const Knots knots : {Knots::uniform, Knots::free})
      for (const unsigned degree : {1u, 3u, 4u}) {
        NetworkOptions o = test::kan_options({3, 5, 2}, degree == 1 ? 1 : 6, degree);
        o.outside = outside, o.knots = knots;
        o.base = degree != 4, o.bias = degree != 1;
        kinds.push_back(o);
      }
  kinds.push_back(test::kan_options({17, 20, 3, 1}, 9, 2));
  kinds.push_back(test::kan_options({3, 5, 2}, 6, 3));
  kinds.back().multiply = {2};
  kinds.push_back(test::kan_options({2, 4, 3, 1}, 4, 2));
  kinds.back().multiply = {4, 1};
  kinds.push_back(test::kan_options({1, 1}, 3, 7));
  return kinds;
}

// Headers of networks, compiled as one library.
template <class Outer>
class Compiled {
 public:
  using Function = void (*)(const Outer*, Outer*);

  Compiled(const std::vector<std::string>& headers, const std::vector<const char*>& flags) {
    std::ofstream source(scratch_ / "f.c");
    const std::string outer = sizeof(Outer) == 4 ? "float" : "double";
    for (std::size_t n = 0; n < headers.size(); ++n) {
      std::ofstream(scratch_ / ("h" + std::to_string(n) + ".h")) << headers[n];
      const std::string head = "void f" + std::to_string(n) + "(const " + outer + " *x, " + outer + " *y)";
      source << "#include \"h" << n << ".h\"\n" << head << ";\n" << head << " { network" << n << "(x, y); }\n";
    }
    source.close();
    std::vector<std::string> words(flags.begin(), flags.end());
    for (const char* word :
         {"-std=gnu99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC", "f.c", "-lm", "-o", "f.so"})
      words.emplace_back(word);
    const auto end = circuit::run_program(circuit::find_program("cc"), words, scratch_.path(), 120).or_throw();
    EXPECT_EQ(end.code, 0) << end.output;
    handle_ = ::dlopen((scratch_ / "f.so").c_str(), RTLD_NOW);
    EXPECT_NE(handle_, nullptr) << ::dlerror();
  }
  ~Compiled() {
    if (handle_) ::dlclose(handle_);
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  Function function(std::size_t n) const {
    return handle_ ? reinterpret_cast<Function>(::dlsym(handle_, ("f" + std::to_string(n)).c_str())) : nullptr;
  }

 private:
  Scratch scratch_;
  void* handle_ = nullptr;
};

template <class T, class Outer>
void expect_bits(const KanFixture<T>& f, const ExportHead& head, Arithmetic arithmetic,
                 typename Compiled<Outer>::Function function) {
  ASSERT_NE(function, nullptr);
  const std::size_t in = f.network.input_width(), out = f.network.output_width();
  auto workspace = f.network.make_single_workspace();
  std::vector<T> expected(out), given(in);
  std::vector<Outer> x(in), y(out), centred(out);
  for (std::size_t s = 0; s < f.batch; ++s) {
    for (std::size_t i = 0; i < in; ++i) {
      const double centre = head.input_centre.empty() ? 0 : head.input_centre[i];
      x[i] = static_cast<Outer>(f.x[s * in + i]) + static_cast<Outer>(centre);
      given[i] = static_cast<T>(static_cast<double>(x[i]) - centre);
    }
    function(x.data(), y.data());
    for (const Variant::Code code : {Variant::reference, Variant::fast}) {
      f.network.forward_single(Variant(code, arithmetic), f.arrays(), given, workspace, expected);
      for (std::size_t j = 0; j < out; ++j)
        centred[j] = static_cast<Outer>(expected[j]) +
                     static_cast<Outer>(head.output_centre.empty() ? 0 : head.output_centre[j]);
      ASSERT_TRUE(same_bits<Outer>(y, centred)) << "row " << s;
    }
  }
}

// Networks with these weights, each in every arithmetic.
template <class T, class Outer = T>
void expect_c_bits(const std::vector<KanFixture<T>>& networks, ExportHead head, const std::vector<const char*>& flags) {
  std::vector<std::string> headers;
  for (const auto& f : networks)
    for (const Arithmetic arithmetic : available_arithmetics()) {
      head.name = "network" + std::to_string(headers.size());
      headers.push_back(kan::to_c(f.network, f.arrays(), head, arithmetic));
    }
  const Compiled<Outer> compiled(headers, flags);
  std::size_t n = 0;
  for (const auto& f : networks)
    for (const Arithmetic arithmetic : available_arithmetics()) {
      SCOPED_TRACE(testing::Message() << "network " << n);
      expect_bits<T, Outer>(f, head, arithmetic, compiled.function(n++));
    }
}

TEST(KanExport, CHasTheBitsOfForwardSingleForEveryKindOfSpline) {
  if (circuit::find_program("cc").empty()) GTEST_SKIP() << "there is no C compiler in /usr/bin";
  std::vector<KanFixture<float>> networks;
  for (const NetworkOptions& o : all_kinds()) networks.push_back(filled_network<float>(o, 2 + networks.size()));
  expect_c_bits(networks, {}, {"-O1"});
}

// A compiler that fuses whatever it can, as many do on other processors, and one that rewrites little.
TEST(KanExport, CHasItsBitsWhateverTheCompilerFuses) {
  if (circuit::find_program("cc").empty()) GTEST_SKIP() << "there is no C compiler in /usr/bin";
  if (!available(Arithmetic::fused)) GTEST_SKIP() << "this processor has no FMA";
  std::vector<KanFixture<float>> single;
  std::vector<KanFixture<double>> twice;
  for (const OutOfGrid outside : {OutOfGrid::linear, OutOfGrid::extend}) {
    NetworkOptions o = test::kan_options({3, 5, 2}, 6, 3);
    o.outside = outside;
    single.push_back(filled_network<float>(o, 70));
    twice.push_back(filled_network<double>(o, 71));
    o.multiply = {3};
    single.push_back(filled_network<float>(o, 72));
    twice.push_back(filled_network<double>(o, 73));
  }
  expect_c_bits(single, {}, {"-O3", "-mfma", "-ffp-contract=fast"});
  expect_c_bits(twice, {}, {"-O3", "-mfma", "-ffp-contract=fast"});
  expect_c_bits(twice, {}, {"-O0"});
}

TEST(KanExport, CTakesColumnsInTheirOwnUnits) {
  if (circuit::find_program("cc").empty()) GTEST_SKIP() << "there is no C compiler in /usr/bin";
  std::vector<KanFixture<float>> networks;
  networks.push_back(filled_network<float>(test::kan_options({2, 3, 1}), 9));
  const KanFixture<float>& f = networks.front();
  ExportHead head;
  head.input_centre = {1.7e9, 0}, head.output_centre = {1e6};
  head.features = {"time @REAL */ SUFFIX", "b"};
  head.outputs = {"y"};
  expect_c_bits<float, double>(networks, head, {"-O1"});
  const std::string text = kan::to_c(f.network, f.arrays(), head, default_arithmetic());
  EXPECT_THAT(text, HasSubstr("x[0]: time @REAL * / SUFFIX\n"));
  head.name = "1st";
  EXPECT_THROW(kan::to_c(f.network, f.arrays(), head, default_arithmetic()), Exception);
}

// Fields of a message in the format of Protocol Buffers.
struct Field {
  unsigned number;
  std::uint64_t value;
  std::string_view bytes;
};
std::vector<Field> fields_of(std::string_view text) {
  std::vector<Field> fields;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t v = 0;
    for (unsigned shift = 0; at < text.size(); shift += 7) {
      const auto c = static_cast<unsigned char>(text[at++]);
      v |= std::uint64_t{c & 0x7fu} << shift;
      if (c < 0x80) return v;
    }
    ADD_FAILURE() << "a number does not end";
    return v;
  };
  while (at < text.size()) {
    const std::uint64_t tag = varint();
    Field f{static_cast<unsigned>(tag >> 3), 0, {}};
    EXPECT_TRUE((tag & 7) == 0 || (tag & 7) == 2) << "wire type " << (tag & 7);
    f.value = varint();
    if ((tag & 7) == 2) {
      EXPECT_LE(at + f.value, text.size());
      f.bytes = text.substr(at, f.value);
      at += f.value;
    }
    fields.push_back(f);
  }
  return fields;
}

// onnxruntime computes with these files in the tests of the Python package.
TEST(KanExport, OnnxHasStandardOperatorsWhoseInputsComeBeforeThem) {
  const std::set<std::string_view> standard = {
      "Add", "And", "Cast", "Concat",  "GreaterOrEqual", "Identity", "Less",    "LessOrEqual", "MatMul",
      "Max", "Min", "Mul",  "Reshape", "Sigmoid",        "Slice",    "Softmax", "Sub",         "Unsqueeze"};
  for (const NetworkOptions& o : all_kinds()) {
    const auto f = filled_network<float>(o, 5);
    ExportHead head;
    head.classes = o.degree == 3;
    const std::string text = kan::to_onnx(f.network, f.arrays(), head).or_throw();
    std::string_view graph;
    for (const Field& field : fields_of(text))
      if (field.number == 7) graph = field.bytes;
    ASSERT_FALSE(graph.empty());
    std::set<std::string_view> known;
    std::size_t outputs = 0, weights = 0;
    for (const Field& field : fields_of(graph)) {
      if (field.number == 11) known.insert(fields_of(field.bytes)[0].bytes);
      if (field.number != 5) continue;
      std::uint64_t elements = 1, type = 0, bytes = 0;
      for (const Field& part : fields_of(field.bytes)) {
        if (part.number == 1) elements *= part.value;
        if (part.number == 2) type = part.value;
        if (part.number == 8) {
          EXPECT_TRUE(known.insert(part.bytes).second);
        }
        if (part.number == 9) bytes = part.bytes.size();
      }
      EXPECT_EQ(bytes, elements * (type == 1 ? 4 : 8));
      weights += type == 1 ? elements : 0;
    }
    EXPECT_GE(weights, f.network.parameters().logical_size());
    for (const Field& field : fields_of(graph)) {
      if (field.number == 12) {
        EXPECT_EQ(known.count(fields_of(field.bytes)[0].bytes), 1u);
        ++outputs;
      }
      if (field.number != 1) continue;
      for (const Field& part : fields_of(field.bytes)) {
        if (part.number == 1) {
          EXPECT_EQ(known.count(part.bytes), 1u) << part.bytes;
        }
        if (part.number == 2) {
          EXPECT_TRUE(known.insert(part.bytes).second) << part.bytes;
        }
        if (part.number == 4) {
          EXPECT_EQ(standard.count(part.bytes), 1u) << part.bytes;
        }
      }
    }
    EXPECT_EQ(outputs, head.classes ? 2u : 1u);
  }
}

TEST(KanExport, TensorsOfEfficientKanHaveNoMultiplicationNodes) {
  NetworkOptions o = test::kan_options({3, 4, 2});
  o.multiply = {0};
  const KanFixture<double> none(o, 1);
  EXPECT_NO_THROW(kan::to_efficient_kan(none.network, none.arrays(), {}));
  o.multiply = {1};
  const KanFixture<double> one(o, 1);
  try {
    kan::to_efficient_kan(one.network, one.arrays(), {});
    FAIL();
  } catch (const Exception& e) {
    EXPECT_EQ(e.code(), ErrorCode::unsupported);
    EXPECT_THAT(e.what(), HasSubstr("model.multiply"));
  }
}

// As efficient-kan evaluates its tensors: all functions of all knots by recursion, no bias, silu beside them.
std::vector<double> efficient_forward(const kan::EfficientKan<double>& e, std::vector<double> x, unsigned degree) {
  for (std::size_t t = 0; t < e.tensors.size(); ++t) {
    if (!e.tensors[t].name.ends_with(".grid")) continue;
    const auto &grid = e.tensors[t], &base = e.tensors[t + 1], &spline = e.tensors[t + 2], &scaler = e.tensors[t + 3];
    const std::size_t in = grid.shape[0], knots = grid.shape[1], out = base.shape[0], rows = spline.shape[2];
    std::vector<double> y(out, 0.0);
    for (std::size_t i = 0; i < in; ++i) {
      const double* k = grid.values.data() + i * knots;
      std::vector<double> b;
      for (std::size_t m = 0; m + 1 < knots; ++m) b.push_back(x[i] >= k[m] && x[i] < k[m + 1] ? 1.0 : 0.0);
      for (unsigned d = 1; d <= degree; ++d) {
        for (std::size_t m = 0; m + 1 < b.size(); ++m)
          b[m] =
              (x[i] - k[m]) / (k[m + d] - k[m]) * b[m] + (k[m + d + 1] - x[i]) / (k[m + d + 1] - k[m + 1]) * b[m + 1];
        b.pop_back();
      }
      EXPECT_EQ(b.size(), rows);
      for (std::size_t j = 0; j < out; ++j) {
        y[j] += base.values[j * in + i] * x[i] / (1 + std::exp(-x[i]));
        for (std::size_t r = 0; r < rows; ++r)
          y[j] += scaler.values[j * in + i] * spline.values[(j * in + i) * rows + r] * b[r];
      }
    }
    x = y;
  }
  return x;
}

TEST(KanExport, TensorsOfEfficientKanGiveTheSameFunctionInsideTheGrids) {
  for (const Knots knots : {Knots::uniform, Knots::free}) {
    NetworkOptions o = test::kan_options({3, 4, 2}, 6, 3);
    o.outside = OutOfGrid::extend, o.knots = knots;
    auto f = filled_network<double>(o, 31);
    // Small weights keep the hidden nodes inside of their grids.
    for (double& p : f.parameters.span()) p *= 0.1;
    const auto& a = f.network.affine();
    const auto e = kan::to_efficient_kan(f.network, f.arrays(), {});
    EXPECT_EQ(e.tensors.size(), 2u + 4 * 2);
    EXPECT_THAT(e.differences, testing::Contains(HasSubstr("input.mean")));
    EXPECT_THAT(e.differences, testing::Not(testing::Contains(HasSubstr("model.outside"))));
    auto workspace = f.network.make_single_workspace();
    for (std::size_t s = 0; s < 50; ++s) {
      std::vector<double> x(3), given(3), y(2);
      for (std::size_t i = 0; i < 3; ++i) {
        const double mean = f.buffers[f.network.buffers()[a.input_mean].offset + i];
        const double std = f.buffers[f.network.buffers()[a.input_std].offset + i];
        given[i] = 0.3 * f.x[(s + 20) * 3 + i];  // in [-0.9, 0.9]
        x[i] = mean + std * given[i];
      }
      f.network.forward_single(Variant::reference, f.arrays(), x, workspace, y);
      const std::vector<double> other = efficient_forward(e, given, o.degree);
      for (std::size_t j = 0; j < 2; ++j) EXPECT_NEAR(other[j], y[j], 1e-12);
    }
  }
}

}  // namespace
}  // namespace gradloom
