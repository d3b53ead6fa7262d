// The text of --help.
#pragma once

#include <CLI/App.hpp>
#include <memory>

namespace gradloom::cli {

// Options with their values on the left; what they mean, their [default] and what they exclude on the right.
std::shared_ptr<CLI::Formatter> help_formatter();

}  // namespace gradloom::cli
