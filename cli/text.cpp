#include "cli/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "gradloom/train/metrics.h"

namespace gradloom::cli {

std::string figure(double value) { return std::isfinite(value) ? fmt::format("{:.4g}", value) : "-"; }

std::string figure(const nlohmann::json& value) { return value.is_number() ? figure(value.get<double>()) : "-"; }

std::string duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  if (seconds < 9.995) return fmt::format("{:.2f} s", seconds);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const double whole = std::round(seconds);
  if (whole < 3600) return fmt::format("{:.0f} min {:02.0f} s", std::floor(whole / 60), std::fmod(whole, 60));
  return fmt::format("{:.0f} h {:02.0f} min", std::floor(whole / 3600), std::floor(std::fmod(whole, 3600) / 60));
}

std::string clock_time(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e8) return "-:--";
  const auto whole = static_cast<long>(std::ceil(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string rate(double per_second) {
  if (!std::isfinite(per_second)) return "-";
  if (per_second < 999.5) return fmt::format("{:.0f}", per_second);
  if (per_second < 999.5e3) return fmt::format("{:.3g}k", per_second / 1e3);
  return fmt::format("{:.3g}M", per_second / 1e6);
}

std::string metrics_text(const nlohmann::json& metrics) {
  if (!metrics.is_object() || metrics.empty()) return "-";
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics.items()) names.push_back(name);
  const auto place = [](const std::string& name) {
    const MetricKind* kind = find_metric(name);
    return kind ? kind - std::begin(kMetricKinds) : std::ssize(kMetricKinds);
  };
  std::stable_sort(names.begin(), names.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  // Of a soft circuit and the hard one that it becomes.
  const bool soft = metrics.contains("hard_accuracy");
  const auto title = [&](const std::string& name) {
    if (name.starts_with("hard_")) return "hard " + name.substr(5);
    return soft && (name == "accuracy" || name == "loss") ? "soft " + name : name;
  };
  // Padded, so that the figures of several parts stand below each other.
  std::string text;
  for (const std::string& name : names) {
    const auto& value = metrics[name];
    const bool usual = name == "r2" && value.is_number() && std::abs(value.get<double>()) < 10;
    const std::string shown = usual ? fmt::format("{:.6f}", value.get<double>()) : figure(value);
    text += &name == &names.back() ? fmt::format("{} {}", title(name), shown)
                                   : fmt::format("{} {:<11} ", title(name), shown);
  }
  return text;
}

std::vector<app::TextRow> metrics_rows(const Metrics& metrics) {
  std::vector<app::TextRow> rows;
  if (metrics.test) rows.emplace_back("test", metrics_text(to_json(*metrics.test)));
  if (metrics.validation) rows.emplace_back("validation", metrics_text(to_json(*metrics.validation)));
  rows.emplace_back("train", metrics_text(to_json(metrics.train)));
  return rows;
}

std::vector<app::TextRow> outside_rows(const std::map<std::string, std::size_t>& counts) {
  std::string text;
  for (const auto& [part, count] : counts)
    if (count > 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", counted(count, part + " row"));
  if (text.empty()) return {};
  return {{"outside", text + " with a feature outside of its training range"}};
}

std::string shell_word(const std::filesystem::path& path) {
  const std::string& word = path.native();
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+=:,@%").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace gradloom::cli
