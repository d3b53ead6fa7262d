#include "cli/help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

namespace gradloom::cli {
namespace {

constexpr std::size_t kHelpColumn = 24;

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    const std::string type = option->get_type_name();
    return fmt::format("{}{}{}", type.empty() ? "" : " ", type, option->get_required() ? " (required)" : "");
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    for (const CLI::Option* other : option->get_excludes()) text += fmt::format("; not with {}", other->get_name());
    for (const CLI::Option* other : option->get_needs()) text += fmt::format("; with {}", other->get_name());
    std::string usual = option->get_default_str();
    if (usual.starts_with('[') && usual.ends_with(']')) usual = usual.substr(1, usual.size() - 2);  // a list
    return usual.empty() ? text : fmt::format("{} [{}]", text, usual);
  }
};

}  // namespace

std::shared_ptr<CLI::Formatter> help_formatter() {
  auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(kHelpColumn);
  return formatter;
}

}  // namespace gradloom::cli
