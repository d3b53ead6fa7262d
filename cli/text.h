// Figures as people read them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "gradloom/app/text.h"
#include "gradloom/session/session.h"

namespace gradloom::cli {

std::string figure(double value);                                // four significant digits; "-" when it is not a number
std::string figure(const nlohmann::json& value);                 // the same; "-" for null
std::string duration(double seconds);                            // "0.42 s", "3 min 05 s", "2 h 10 min"
std::string clock_time(double seconds);                          // "0:42", "1:02:03"
std::string rate(double per_second);                             // "850", "12.3k", "4.5M"
std::string metrics_text(const nlohmann::json& metrics);         // {"rmse": 0.1, ...} as "rmse 0.1   mae ..."
std::vector<app::TextRow> metrics_rows(const Metrics& metrics);  // a row for each part that there is

// A row that counts samples outside of the training range, by part; none where there are none.
std::vector<app::TextRow> outside_rows(const std::map<std::string, std::size_t>& counts);

using app::counted;

// A word as a shell takes it: quoted when it needs to be.
std::string shell_word(const std::filesystem::path& path);

}  // namespace gradloom::cli
