#include "gradloom/exec/profile.h"

#include <algorithm>

#include "gradloom/base/error.h"

namespace gradloom {

std::size_t Profile::phase(const std::string& name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
  if (names_.size() == kMaxPhases) throw_invalid("a profile holds at most " + std::to_string(kMaxPhases) + " phases");
  names_.push_back(name);
  return names_.size() - 1;
}

void Profile::clear() {
  for (auto& worker : cells_) worker.fill(Cell{});
}

std::vector<Profile::Entry> Profile::entries() const {
  std::vector<Entry> result;
  for (std::size_t p = 0; p < names_.size(); ++p) {
    std::uint64_t total = 0;
    for (const auto& worker : cells_) total += worker[p].nanoseconds;
    result.push_back({names_[p], static_cast<double>(total) * 1e-6});
  }
  return result;
}

}  // namespace gradloom
