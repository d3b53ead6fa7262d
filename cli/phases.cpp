#include "cli/phases.h"

#include <fmt/format.h>

#include <algorithm>

namespace gradloom::cli {

void print_phases(const Output& out, const std::optional<std::map<std::string, double>>& phases) {
  if (!phases) return;
  const std::string device = "gpu ";
  std::vector<std::pair<std::string, double>> sorted, kernels;
  for (const auto& [name, ms] : *phases)
    if (name.starts_with(device))
      kernels.emplace_back(name.substr(device.size()), ms);
    else
      sorted.emplace_back(name, ms);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  const auto parent = [](const std::string& name) { return name.substr(0, name.find(' ')); };
  double total = 0.0;
  for (const auto& [name, ms] : sorted)
    if (parent(name) == name) total += ms;
  const auto line = [&](const std::string& name, double ms) {
    out.print(fmt::format("  {:<28}{:>10.3f} ms  {:>5.1f} %\n", name, ms, total > 0 ? 100 * ms / total : 0.0));
  };
  if (!sorted.empty())
    out.print(out.paint(Paint::bold, "Time by phase") + " (by the clock; parts are added up over threads)\n");
  for (const auto& [name, ms] : sorted) {
    if (parent(name) != name) continue;
    line(name, ms);
    for (const auto& [part, part_ms] : sorted)
      if (part != name && parent(part) == name) line(fmt::format("  {}", part.substr(name.size() + 1)), part_ms);
  }
  if (kernels.empty()) return;
  total = 0.0;
  for (const auto& [name, ms] : kernels) total += ms;
  out.print(out.paint(Paint::bold, "Device time by kernel") + "\n");
  for (const auto& [name, ms] : kernels) line(name, ms);
}

}  // namespace gradloom::cli
