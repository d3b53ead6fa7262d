// The printed result of predictions, for the commands that make them.
#pragma once

#include <string>

#include "cli/output.h"
#include "gradloom/app/predict/predict.h"

namespace gradloom::cli {

// `data`: the name of the file that was asked about.
void print_prediction(const Output& out, const app::PredictReport& report, const std::string& data);

}  // namespace gradloom::cli
