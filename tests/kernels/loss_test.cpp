#include "gradloom/kernels/loss/loss.h"

#include <gmock/gmock.h>

#include <cmath>
#include <utility>

#include "gradloom/base/error.h"
#include "gradloom/base/random.h"
#include "gradloom/exec/buffer.h"

namespace gradloom::kernels::loss {
namespace {

struct Rows {
  std::size_t n, out;
  std::vector<double> y, target, mask, weight, dl_dy;
  std::vector<std::uint32_t> label;
  Rows(std::size_t samples, std::size_t outputs) : n(samples), out(outputs), dl_dy(samples * outputs) {
    const RandomStream r(11, RandomUse::user);
    for (std::uint32_t i = 0; i < n * out; ++i) {
      y.push_back(3 * r.normal(i));
      target.push_back(r.normal(100'000 + i));
      mask.push_back(r.uniform(200'000 + i) < 0.7);
    }
    for (std::uint32_t s = 0; s < n; ++s) {
      weight.push_back(r.uniform(300'000 + s));
      label.push_back(r.below(400'000 + s, static_cast<std::uint32_t>(out)));
    }
  }
  Wanted<double> batch(bool labels, bool weights, bool masks) const {
    Wanted<double> b;
    b.size = n;
    if (labels)
      b.label = label;
    else
      b.target = {target.data(), {n, out}};
    if (weights) b.weight = weight;
    if (masks) b.mask = {mask.data(), {n, out}};
    return b;
  }
  double loss(const Options& o, const Wanted<double>& b, unsigned threads = 1) {
    std::vector<double> sums(kernels::loss::partials(n));
    return evaluate<double>(Exec({.threads = threads}), o, b, {y.data(), {n, out}}, {dl_dy.data(), {n, out}}, sums);
  }
};

void expect_right_gradient(Options o, bool labels, bool weights, bool masks, std::size_t out) {
  Rows rows(37, out);
  if (o.kind == Kind::binary_cross_entropy)
    for (double& t : rows.target) t = t > 0 ? 1.0 : 0.0;
  if (o.kind == Kind::binary_cross_entropy && labels)
    for (auto& l : rows.label) l = l % 2;
  const Wanted<double> batch = rows.batch(labels, weights, masks);
  ASSERT_TRUE(std::isfinite(rows.loss(o, batch)));
  const std::vector<double> gradient = rows.dl_dy;
  double largest = 0.0;
  for (double g : gradient) largest = std::max(largest, std::abs(g));
  ASSERT_GT(largest, 0.0);
  const double h = 1e-6;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double at = rows.y[i];
    rows.y[i] = at + h;
    const double up = rows.loss(o, batch);
    rows.y[i] = at - h;
    const double down = rows.loss(o, batch);
    rows.y[i] = at;
    EXPECT_NEAR(gradient[i], (up - down) / (2 * h), 1e-6 * largest + 1e-9) << "element " << i;
  }
}

TEST(Loss, GradientsMatchCentralDifferences) {
  for (Reduction reduction : {Reduction::mean, Reduction::sum})
    for (bool weights : {false, true})
      for (bool masks : {false, true})
        for (Kind kind : {Kind::mse, Kind::mae, Kind::huber, Kind::binary_cross_entropy})
          expect_right_gradient({.kind = kind, .reduction = reduction, .scale = 0.5}, false, weights, masks, 3);
  for (bool weights : {false, true}) {
    expect_right_gradient({.kind = Kind::cross_entropy}, true, weights, false, 5);
    expect_right_gradient({.kind = Kind::binary_cross_entropy}, true, weights, false, 1);
  }
}

TEST(Loss, ValuesAreTheTextbookOnes) {
  Rows rows(1, 2);
  rows.y = {1.0, -2.0};
  rows.target = {0.0, 1.0};
  const auto batch = rows.batch(false, false, false);
  EXPECT_DOUBLE_EQ(rows.loss({.kind = Kind::mse}, batch), (1.0 + 9.0) / 2);
  EXPECT_DOUBLE_EQ(rows.loss({.kind = Kind::mse, .reduction = Reduction::sum}, batch), 10.0);
  EXPECT_DOUBLE_EQ(rows.loss({.kind = Kind::mae}, batch), 2.0);
  EXPECT_DOUBLE_EQ(rows.loss({.kind = Kind::huber}, batch), (0.5 + 2.5) / 2);
  EXPECT_NEAR(rows.loss({.kind = Kind::binary_cross_entropy}, batch),
              (std::log1p(std::exp(1.0)) + std::log1p(std::exp(-2.0)) + 2.0) / 2, 1e-15);
  rows.label = {1};
  EXPECT_NEAR(rows.loss({.kind = Kind::cross_entropy}, rows.batch(true, false, false)),
              std::log(std::exp(1.0) + std::exp(-2.0)) + 2.0, 1e-15);
}

TEST(Loss, StaysFiniteForExtremeLogits) {
  Rows rows(2, 2);
  rows.y = {1e4, -1e4, -1e4, 1e4};
  rows.label = {1, 1};
  EXPECT_NEAR(rows.loss({.kind = Kind::cross_entropy}, rows.batch(true, false, false)), 1e4, 1e-9);
  rows.target = {0, 1, 0, 1};
  EXPECT_NEAR(rows.loss({.kind = Kind::binary_cross_entropy}, rows.batch(false, false, false)), 5e3, 1e-9);
}

TEST(Loss, MaskedAndWeightlessSamplesDoNotCount) {
  Rows rows(5, 2);
  rows.weight = {0, 1, 0, 0, 0};
  const double value = rows.loss({}, rows.batch(false, true, false));
  const double e0 = rows.y[2] - rows.target[2], e1 = rows.y[3] - rows.target[3];
  EXPECT_DOUBLE_EQ(value, (e0 * e0 + e1 * e1) / 2);
  EXPECT_EQ(rows.dl_dy[0], 0.0);
  std::fill(rows.weight.begin(), rows.weight.end(), 0.0);
  EXPECT_EQ(rows.loss({}, rows.batch(false, true, false)), 0.0);
}

TEST(Loss, IsTheSameOnAnyNumberOfThreads) {
  Rows one(1000, 3), many(1000, 3);
  const double a = one.loss({}, one.batch(false, true, true), 1);
  const double b = many.loss({}, many.batch(false, true, true), 3);
  EXPECT_EQ(a, b);
  EXPECT_EQ(one.dl_dy, many.dl_dy);
}

TEST(Loss, AnyContiguousSplitOfItsChunksGivesTheBitsOfTheWhole) {
  Rows rows(6 * kChunk + 13, 3);
  const std::size_t chunks = kernels::loss::partials(rows.n);
  for (const Kind kind : {Kind::mse, Kind::cross_entropy}) {
    const bool labels = kind == Kind::cross_entropy;
    const Wanted<double> whole = rows.batch(labels, true, !labels);
    Options o{.kind = kind};
    const double value = rows.loss(o, whole);
    const std::vector<double> gradient = rows.dl_dy;
    o.factor = normaliser(o, whole, rows.out);
    for (std::size_t cut = 1; cut < chunks; ++cut) {
      std::vector<double> sums(chunks);
      std::fill(rows.dl_dy.begin(), rows.dl_dy.end(), 0.0);
      for (const auto& [first, last] : {std::pair{std::size_t{0}, cut}, std::pair{cut, chunks}}) {
        const std::size_t begin = first * kChunk, n = std::min(rows.n, last * kChunk) - begin, at = begin * rows.out;
        Wanted<double> part = whole;
        part.size = n;
        if (labels) part.label = whole.label.subspan(begin, n);
        if (!labels) part.target = {rows.target.data() + at, {n, rows.out}};
        if (!labels) part.mask = {rows.mask.data() + at, {n, rows.out}};
        part.weight = whole.weight.subspan(begin, n);
        evaluate<double>(Exec({.threads = 1}), o, part, {rows.y.data() + at, {n, rows.out}},
                         {rows.dl_dy.data() + at, {n, rows.out}}, std::span(sums).subspan(first));
      }
      EXPECT_EQ(finish(o, *o.factor, sums), value) << "cut at chunk " << cut;
      EXPECT_EQ(rows.dl_dy, gradient) << "cut at chunk " << cut;
    }
  }
}

TEST(Loss, IsSummedInTheDocumentedOrder) {
  for (const std::size_t out : {1u, 7u, 8u, 13u, 40u}) {
    Rows rows(150, out);
    double total = 0.0;
    for (std::size_t first = 0; first < rows.n; first += 64) {
      double sums[8] = {};
      for (std::size_t i = first * out; i < std::min(rows.n, first + 64) * out; ++i) {
        const double e = rows.y[i] - rows.target[i];
        sums[i % out % 8] += e * e;
      }
      total += ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
    }
    EXPECT_EQ(rows.loss({.reduction = Reduction::sum}, rows.batch(false, false, false)), total) << out;
  }
}

TEST(Loss, CrossEntropyIsOneSumOfEachChunk) {
  Rows rows(150, 5);
  const Options options{.kind = Kind::cross_entropy, .reduction = Reduction::sum};
  const Wanted<double> all = rows.batch(true, true, false);
  double total = 0.0, chunk = 0.0;
  for (std::size_t s = 0; s < rows.n; ++s) {
    Wanted<double> one = all;
    one.size = 1;
    one.label = all.label.subspan(s, 1);
    one.weight = all.weight.subspan(s, 1);
    double partial = 0.0;
    chunk += evaluate<double>(Exec({.threads = 1}), options, one, {rows.y.data() + s * 5, {1, 5}}, {},
                              std::span<double>(&partial, 1));
    if (s % 64 != 63 && s + 1 != rows.n) continue;
    total += std::exchange(chunk, 0.0);
  }
  EXPECT_EQ(rows.loss(options, all), total);
}

TEST(Loss, NamesWhatDoesNotFit) {
  Rows rows(4, 3);
  const auto message = [&](Options o, Wanted<double> b) -> std::string {
    try {
      rows.loss(o, b);
    } catch (const Exception& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(message({.kind = Kind::cross_entropy}, rows.batch(false, false, false)), ::testing::HasSubstr("label"));
  auto wide = rows.batch(false, false, false);
  wide.target = {rows.target.data(), {4, 2}};
  EXPECT_THAT(message({}, wide), ::testing::HasSubstr("3 outputs"));
  rows.label[2] = 3;
  EXPECT_THAT(message({.kind = Kind::cross_entropy}, rows.batch(true, false, false)), ::testing::HasSubstr("sample 2"));
  Rows many(65, 1);
  double one_sum = 0.0;
  EXPECT_THROW(evaluate<double>(Exec({.threads = 1}), {}, many.batch(false, false, false), {many.y.data(), {65, 1}}, {},
                                std::span<double>(&one_sum, 1)),
               Exception);
}

}  // namespace
}  // namespace gradloom::kernels::loss
