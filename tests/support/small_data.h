// Small files that several tests learn from.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace gradloom::test {

// Rows of three small numbers without a header; the last is 0 or 1.
inline std::string small_table(int rows) {
  std::string text;
  for (int i = 0; i < rows; ++i)
    text += std::to_string(i % 3) + ',' + std::to_string(i % 5) + ',' + std::to_string(i * i % 7 % 2) + '\n';
  return text;
}

// 40 graphs in JSON, of classes "ring" and "path", which take turns.
inline std::string rings_and_paths() {
  nlohmann::json graphs = nlohmann::json::array();
  for (int i = 0; i < 40; ++i) {
    const int n = 3 + i / 4;
    nlohmann::json edges = nlohmann::json::array();
    for (int v = 0; v + i % 2 < n; ++v) edges.push_back({v, (v + 1) % n});
    graphs.push_back({{"id", std::to_string(i)}, {"class", i % 2 ? "path" : "ring"}, {"nodes", n}, {"edges", edges}});
  }
  return nlohmann::json{{"graphs", graphs}}.dump();
}

}  // namespace gradloom::test
