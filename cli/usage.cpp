#include "cli/usage.h"

#include <fmt/format.h>

#include <algorithm>

#include "gradloom/app/recipe.h"
#include "gradloom/io/nearest.h"

namespace gradloom::cli {
namespace {

const CLI::App* find_command(const CLI::App& in, const std::string& name) {
  for (const CLI::App* command : in.get_subcommands({}))
    if (command->get_name() == name) return command;
  return nullptr;
}

std::vector<std::string> command_names(const CLI::App& in) {
  std::vector<std::string> names;
  for (const CLI::App* command : in.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& in) {
  std::vector<std::string> names;
  for (const CLI::Option* option : in.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

bool takes_word(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional()) return true;
  return false;
}

std::string command_line(const CLI::App& program, const CLI::App& command) {
  return &command == &program ? program.get_name()
                              : command_line(program, *command.get_parent()) + " " + command.get_name();
}

std::string nearest_key(const std::string& option) {
  std::vector<std::string> keys;
  for (const std::string& family : app::recipe_families())
    for (std::string& path : app::recipe_schema(family).paths()) keys.push_back(std::move(path));
  return nearest_name(option.substr(2), keys);
}

// Whether somebody wrote --epoch for --set epochs=...
bool is_recipe_key(const CLI::App& command, const std::string& option) {
  if (option.size() < 4 || !command.get_option_no_throw("--set")) return false;
  const std::string key = nearest_key(option), last = key.substr(key.rfind('.') + 1), word = option.substr(2);
  const std::size_t distance = std::min(edit_distance(word, key), edit_distance(word, last));
  return distance <= 1 && distance < edit_distance(option, nearest_name(option, option_names(command)));
}

// The commands that have this option.
std::vector<std::string> commands_with(const CLI::App& program, const CLI::App& in, const std::string& option) {
  std::vector<std::string> found;
  for (const CLI::App* command : in.get_subcommands({})) {
    if (command->get_option_no_throw(option)) found.push_back(command_line(program, *command));
    for (std::string& name : commands_with(program, *command, option)) found.push_back(std::move(name));
  }
  return found;
}

std::string advice_on_option(const CLI::App& program, const CLI::App& command, const std::string& option) {
  if (const auto others = commands_with(program, program, option); !others.empty())
    return fmt::format("; it is an option of {}", fmt::join(others, ", "));
  const std::string near = near_name(option, option_names(command));
  return near.empty() ? "" : "; the nearest is " + near;
}

bool is_recipe(const std::string& word) {
  const auto recipes = app::shipped_recipes();
  return word.ends_with(".toml") ||
         std::any_of(recipes.begin(), recipes.end(), [&](const auto& recipe) { return recipe.name == word; });
}

struct Finding {
  const CLI::App* command;  // as far as the words made sense
  std::string unknown;      // a message, or empty
};

Finding find_unknown(const CLI::App& program, const std::vector<std::string>& arguments) {
  const CLI::App* at = &program;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") break;
    if (word == "--json") continue;  // welcome everywhere, also where a command is missing
    if (word.size() > 1 && word[0] == '-') {
      const std::size_t equals = word.find('=');
      const std::string name = word.substr(0, equals);
      const CLI::Option* option = at->get_option_no_throw(name);
      if (!option && name == "--device")  // the key of that name is about the optimizer
        return {at, fmt::format("'{}' has no option --device: it runs on the CPU", command_line(program, *at))};
      if (!option && is_recipe_key(*at, name))
        return {at, fmt::format("'{}' has no option {}; set a key of the recipe with --set {}=VALUE",
                                command_line(program, *at), name, nearest_key(name))};
      if (!option)
        return {at, fmt::format("'{}' has no option {}{}", command_line(program, *at), name,
                                advice_on_option(program, *at, name))};
      if (equals == std::string::npos && option->get_items_expected_min() > 0) ++i;
    } else if (const CLI::App* command = find_command(*at, word)) {
      at = command;
    } else if (!takes_word(*at)) {
      const std::vector<std::string> names = command_names(*at);
      if (command_line(program, *at) == "gradloom recipes" && is_recipe(word))
        return {at,
                fmt::format("there is no command 'gradloom recipes {0}'; `gradloom recipes show {0}` prints the recipe",
                            word)};
      if (names.empty()) return {at, fmt::format("'{}' takes no argument '{}'", command_line(program, *at), word)};
      const std::string near = near_name(word, names);
      return {at, fmt::format("there is no command '{} {}'{}", command_line(program, *at), word,
                              near.empty() ? "" : fmt::format("; the nearest is '{}'", near))};
    }
  }
  return {at, ""};
}

}  // namespace

void refuse_swallowed_options(const CLI::App& program, const std::vector<std::string>& arguments) {
  const CLI::App* at = &program;
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string& word = arguments[i];
    if (const CLI::App* command = find_command(*at, word)) at = command;
    const bool is_option = word.size() > 1 && word[0] == '-' && word.find('=') == std::string::npos;
    const CLI::Option* option = is_option ? at->get_option_no_throw(word) : nullptr;
    if (!option || option->get_items_expected_min() == 0 || i + 1 == arguments.size()) continue;
    const std::string& value = arguments[++i];
    if (value.size() > 1 && value[0] == '-' && at->get_option_no_throw(value.substr(0, value.find('='))))
      throw CLI::ArgumentMismatch(fmt::format(
          "{0} needs a value, but the option {1} follows; write {0}={1} if that is the value", word, value));
  }
}

Failure usage_failure(const CLI::App& program, const std::vector<std::string>& arguments,
                      const CLI::ParseError& error) {
  const Finding found = find_unknown(program, arguments);
  std::string message = found.unknown;
  if (message.empty() && dynamic_cast<const CLI::RequiredError*>(&error) && !found.command->get_subcommands({}).empty())
    message = fmt::format("'{}' needs a command: {}", command_line(program, *found.command),
                          fmt::join(command_names(*found.command), ", "));
  if (message.empty() && dynamic_cast<const CLI::RequiredError*>(&error))
    for (const CLI::Option* option : found.command->get_options())
      if (option->get_positional() && option->get_required() && option->empty())
        message = fmt::format("'{}' needs {}: {}", command_line(program, *found.command), option->get_name(),
                              option->get_description());
  if (message.empty()) message = error.what();
  return Failure({ErrorCode::invalid_input, message},
                 fmt::format("see `{} --help`", command_line(program, *found.command)));
}

}  // namespace gradloom::cli
