#include "gradloom/data/align.h"

#include <fmt/format.h>

#include <algorithm>

namespace gradloom {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

std::size_t find(const std::vector<std::string>& names, const std::string& name) {
  const auto it = std::find(names.begin(), names.end(), name);
  return it == names.end() ? kNone : static_cast<std::size_t>(it - names.begin());
}

Error misfit(const std::string& message) { return Error{ErrorCode::invalid_input, "the file " + message}; }

}  // namespace

Result<RowDataset<double>> align_rows(const RowDataset<double>& like, const RowDataset<double>& rows) {
  if (like.is_classification() != rows.is_classification() ||
      (!like.is_classification() && like.outputs() != rows.outputs()))
    return misfit("has targets that differ from those of the training file");
  const auto& old_names = rows.feature_names();
  const bool named = !like.feature_names().empty() && !old_names.empty();
  if (!named && like.features() != rows.features())
    return misfit(fmt::format("has {} features, the training file {}", rows.features(), like.features()));
  std::vector<std::size_t> source(like.features());  // of each feature in `rows`
  for (std::size_t i = 0; i < like.features(); ++i) {
    source[i] = named ? find(old_names, like.feature_names()[i]) : i;
    if (source[i] == kNone) return misfit(fmt::format("has no feature '{}'", like.feature_names()[i]));
  }
  if (named)
    for (const std::string& name : old_names)
      if (find(like.feature_names(), name) == kNone)
        return misfit(fmt::format("has the feature '{}', which the training file does not have", name));
  RowParts<double> parts = rows.parts();
  parts.features = like.features();
  parts.feature_names = like.feature_names();
  parts.x.resize(parts.size * parts.features);
  for (std::size_t r = 0; r < parts.size; ++r)
    for (std::size_t i = 0; i < parts.features; ++i) parts.x[r * parts.features + i] = rows.all().x(r, source[i]);
  if (like.is_classification()) {
    for (std::uint32_t& label : parts.label) {
      const std::size_t known = find(like.class_names(), rows.class_names()[label]);
      if (known == kNone)
        return misfit(
            fmt::format("has the class '{}', which the training file does not have", rows.class_names()[label]));
      label = static_cast<std::uint32_t>(known);
    }
    parts.class_names = like.class_names();
  }
  return RowDataset<double>(std::move(parts));
}

}  // namespace gradloom
