#include "gradloom/data/binarise.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "gradloom/base/error.h"

namespace gradloom {
namespace {

// Halfway, and below the larger one even where rounding would reach it.
double between(double low, double high) {
  const double middle = low + (high - low) / 2;
  return middle < high ? middle : low;
}

std::vector<double> cuts(std::vector<double> sorted, std::size_t thresholds) {
  std::vector<double> distinct = sorted, found;
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  if (distinct.size() <= thresholds + 1) {
    for (std::size_t i = 1; i < distinct.size(); ++i) found.push_back(between(distinct[i - 1], distinct[i]));
    return found;
  }
  for (std::size_t k = 1; k <= thresholds; ++k) {
    const double quantile = sorted[k * sorted.size() / (thresholds + 1)];
    const auto above = std::upper_bound(distinct.begin(), distinct.end(), quantile);
    if (above == distinct.end()) continue;
    const double cut = between(quantile, *above);
    if (found.empty() || cut > found.back()) found.push_back(cut);
  }
  return found;
}

// As many as tell ascending numbers apart, and six at least.
int digits_of(const std::vector<double>& numbers) {
  constexpr int kAll = std::numeric_limits<double>::max_digits10;
  int digits = 6;
  for (std::size_t i = 1; i < numbers.size(); ++i)
    while (digits < kAll &&
           fmt::format("{:.{}g}", numbers[i - 1], digits) == fmt::format("{:.{}g}", numbers[i], digits))
      ++digits;
  return digits;
}

}  // namespace

std::vector<BitColumn> choose_bits(const RowDataset<double>& rows, std::size_t thresholds) {
  std::vector<BitColumn> bits;
  const RowBatch<double> all = rows.all();
  for (std::size_t c = 0; c < rows.features(); ++c) {
    std::vector<double> values(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) values[r] = all.x(r, c);
    std::sort(values.begin(), values.end());
    const std::string name = c < rows.feature_names().size() ? rows.feature_names()[c] : fmt::format("x{}", c + 1);
    const auto found = cuts(values, thresholds);
    const bool is_bit = found.size() == 1 && values.front() == 0 && values.back() == 1;
    const int digits = digits_of(found);
    for (double cut : found) bits.push_back({c, cut, is_bit ? name : fmt::format("{} > {:.{}g}", name, cut, digits)});
  }
  if (bits.empty()) throw_invalid("every feature is constant, so there is nothing to learn from");
  return bits;
}

RowDataset<double> binarise(const RowDataset<double>& rows, const std::vector<BitColumn>& bits) {
  RowParts<double> parts = rows.parts();
  const RowBatch<double> all = rows.all();
  parts.features = bits.size();
  parts.feature_names.clear();
  for (const BitColumn& bit : bits) parts.feature_names.push_back(bit.name);
  parts.x.resize(rows.size() * bits.size());
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t b = 0; b < bits.size(); ++b)
      parts.x[r * bits.size() + b] = all.x(r, bits[b].column) > bits[b].threshold ? 1.0 : 0.0;
  return RowDataset<double>(std::move(parts));
}

}  // namespace gradloom
