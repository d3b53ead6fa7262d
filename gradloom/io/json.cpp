#include "gradloom/io/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gradloom {
namespace {

using Json = nlohmann::json;

// Sees every part of a text as it is parsed.
class JsonWatch {
 public:
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > kDeepest) too_deep = true;
    if (too_deep) return false;
    const auto level = static_cast<std::size_t>(depth);
    if (event == Json::parse_event_t::object_start) {
      if (keys_.size() <= level) keys_.resize(level + 1);
      keys_[level].clear();
    }
    // The keys of an object lie one level below it.
    if (event == Json::parse_event_t::key && !repeated &&
        !keys_[level - 1].insert(parsed.get_ref<const std::string&>()).second)
      repeated = parsed.get_ref<const std::string&>();
    return true;
  }

  bool too_deep = false;
  std::optional<std::string> repeated;

 private:
  static constexpr int kDeepest = 64;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open, by level
};

}  // namespace

Result<nlohmann::json> parse_json(std::string_view text, std::string_view source) {
  const auto refuse = [&](const std::string& message) {
    return Error{ErrorCode::invalid_input, fmt::format("{}{}", source, message)};
  };
  JsonWatch watch;
  Json value;
  try {
    value = Json::parse(text, std::ref(watch));
  } catch (const Json::parse_error& e) {
    if (watch.too_deep) return refuse(": this is nested more than 64 levels deep");
    const auto at = static_cast<std::ptrdiff_t>(std::min(e.byte, text.size()));
    return refuse(fmt::format(":{}: this is not JSON in UTF-8 (at byte {}); check brackets, commas and quotes",
                              1 + std::count(text.begin(), text.begin() + at, '\n'), e.byte));
  } catch (const Json::out_of_range& e) {  // a number; the library quotes it
    const std::string_view said = e.what();
    const std::size_t quote = std::min(said.find('\''), said.size());
    return refuse(fmt::format(": the number {} is too large for a double", said.substr(quote).substr(0, 40)));
  }
  if (watch.too_deep) return refuse(": this is nested more than 64 levels deep");
  if (watch.repeated)
    return refuse(fmt::format(": the key '{}' appears twice in one object; keep one of them", *watch.repeated));
  return value;
}

}  // namespace gradloom
