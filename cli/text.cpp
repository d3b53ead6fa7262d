#include "cli/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

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

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string metrics_text(const nlohmann::json& metrics) {
  if (!metrics.is_object() || metrics.empty()) return "-";
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics.items()) names.push_back(name);
  // What people ask for first comes first.
  const auto place = [](const std::string& name) {
    static const std::vector<std::string> order = {"hard_accuracy", "hard_loss", "accuracy", "exact_match",
                                                   "rmse",          "mae",       "r2"};
    return name == "loss" ? order.size() + 1
                          : static_cast<std::size_t>(std::find(order.begin(), order.end(), name) - order.begin());
  };
  std::stable_sort(names.begin(), names.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  // Padded, so that the figures of several parts stand below each other.
  std::string text;
  for (const std::string& name : names) {
    const auto& value = metrics[name];
    const bool usual = name == "r2" && value.is_number() && std::abs(value.get<double>()) < 10;
    const std::string shown = usual ? fmt::format("{:.6f}", value.get<double>()) : figure(value);
    text += &name == &names.back() ? fmt::format("{} {}", name, shown) : fmt::format("{} {:<11} ", name, shown);
  }
  return text;
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

std::vector<std::pair<std::string, std::string>> study_rows(const nlohmann::json& study) {
  const auto percent = [](const nlohmann::json& share) {
    const double p = 100 * share.get<double>();
    return p < 100 && p > 99.9 ? fmt::format("{:.3f} %", p) : fmt::format("{:.4g} %", p);
  };
  std::vector<std::pair<std::string, std::string>> rows;
  if (study.contains("neighbourhoods"))
    rows.emplace_back("neighbourhoods", fmt::format("{} of 512 right", study["neighbourhoods"].get<int>()));
  if (study.contains("sizes")) {
    std::string text;
    for (const auto& s : study["sizes"])
      text += fmt::format("{}{}x{} {}", text.empty() ? "" : ", ", s["height"].get<int>(), s["width"].get<int>(),
                          percent(s["accuracy"]));
    rows.emplace_back("grids", text);
    const bool cut = std::any_of(study["sizes"].begin(), study["sizes"].end(), [](const nlohmann::json& s) {
      return s.value("cut", false) && s["accuracy"].get<double>() < 1;
    });
    if (cut)
      rows.emplace_back("", "(less is no surprise where the sides are no multiple of the squares: docs/logic.md)");
  }
  if (study.contains("asynchronous"))
    rows.emplace_back("asynchronous", fmt::format("{} with cells that fire with probability {}",
                                                  percent(study["asynchronous"]["accuracy"]),
                                                  study["asynchronous"]["fire"].get<double>()));
  if (study.contains("damage")) {
    const auto& healed = study["damage"]["repaired"]["healed_after"];
    rows.emplace_back("dead block",
                      fmt::format("{} of the other cells right", percent(study["damage"]["dead"]["accuracy"])));
    rows.emplace_back(
        "after repair",
        fmt::format(
            "{}{}", percent(study["damage"]["repaired"]["accuracy"]),
            healed.is_null() ? "" : fmt::format(", healed after {}", counted(healed.get<std::uint64_t>(), "step"))));
  }
  if (study.contains("endurance")) {
    const auto& e = study["endurance"];
    rows.emplace_back("endurance", fmt::format("healed {} of {} in {}", e["healed"].get<int>(),
                                               counted(e["damages"].get<std::uint64_t>(), "damage"),
                                               counted(e["steps"].get<std::uint64_t>(), "step")));
  }
  if (study.contains("stability"))
    rows.emplace_back("picture",
                      fmt::format("{} after {}, {} after {}", percent(study["stability"]["accuracy"]),
                                  counted(study["stability"]["trained_steps"].get<std::size_t>(), "step"),
                                  percent(study["stability"]["curve"].back()), study["stability"]["curve"].size()));
  if (study.contains("circuit")) {
    const auto& c = study["circuit"];
    rows.emplace_back("circuit", fmt::format("{} of {} gates active, {} after simplification, depth {}",
                                             c["active_gates"].get<std::size_t>(), c["gates"].get<std::size_t>(),
                                             c["simplified_gates"].get<std::size_t>(), c["depth"].get<std::size_t>()));
  }
  return rows;
}

}  // namespace gradloom::cli
