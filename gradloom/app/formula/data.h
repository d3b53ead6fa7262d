// What the search for a formula of a trained model looks at.
#pragma once

#include <string>
#include <vector>

#include "gradloom/formula/edges.h"

namespace gradloom::app {

struct FormulaData {
  std::vector<std::string> features, targets;
  formula::Columns x;                          // rows to search on
  std::vector<std::vector<double>> y;          // (targets)
  formula::Columns test_x;                     // rows to measure on
  std::vector<std::vector<double>> test_y;     // (targets)
  std::vector<std::vector<double>> predicted;  // (targets): by the network, of the rows to measure on
  bool data = true;                            // false: there are none, y are the outputs of the network
  formula::NetworkSamples network;
};

}  // namespace gradloom::app
