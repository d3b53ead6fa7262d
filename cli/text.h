// Figures as people read them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace gradloom::cli {

std::string figure(double value);                         // four significant digits; "-" when it is not a number
std::string figure(const nlohmann::json& value);          // the same; "-" for null
std::string duration(double seconds);                     // "0.42 s", "3 min 05 s", "2 h 10 min"
std::string clock_time(double seconds);                   // "0:42", "1:02:03"
std::string rate(double per_second);                      // "850", "12.3k", "4.5M"
std::string metrics_text(const nlohmann::json& metrics);  // {"rmse": 0.1, ...} as "rmse 0.1   mae ..."

std::string counted(std::uint64_t count, std::string_view noun);  // "1 epoch", "30 epochs"

// A word as a shell takes it: quoted when it needs to be.
std::string shell_word(const std::filesystem::path& path);

// What eval says of a logic automaton beyond its metrics: a line for each finding.
std::vector<std::pair<std::string, std::string>> study_rows(const nlohmann::json& study);

}  // namespace gradloom::cli
