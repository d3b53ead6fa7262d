#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "gradloom/base/error.h"
#include "gradloom/train/trainer.h"

namespace gradloom {

std::vector<std::uint8_t> frozen_slices(const Slices& slices, const std::vector<std::string>& names, const char* key) {
  std::vector<std::uint8_t> frozen(slices.size(), 0);
  for (const std::string& name : names) {
    const bool prefix = !name.empty() && name.back() == '*';
    const std::string_view stem(name.data(), name.size() - (prefix ? 1 : 0));
    bool matched = false;
    for (std::size_t s = 0; s < slices.size(); ++s) {
      if (prefix ? !slices[s].name.starts_with(stem) : slices[s].name != stem) continue;
      frozen[s] = 1;
      matched = true;
    }
    if (matched) continue;
    std::vector<std::string> all;
    for (const Slice& slice : slices) all.push_back(slice.name);
    throw Exception(ErrorCode::invalid_input,
                    fmt::format("{} names '{}', but the model's parameters are {}", key, name, fmt::join(all, ", ")));
  }
  return frozen;
}

bool is_accumulating(const TrainOptions& o, std::size_t samples, const TrainPosition& position) {
  const std::size_t batch = o.batch == 0 ? samples : o.batch;
  const std::size_t piece = o.parallel_examples == 0 ? batch : std::min(batch, o.parallel_examples);
  return position.batch % (o.accumulate * ((batch + piece - 1) / piece)) != 0;
}

}  // namespace gradloom
