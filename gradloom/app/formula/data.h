// What the search for a formula of a trained model looks at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/data/rows.h"
#include "gradloom/formula/edges.h"

namespace gradloom::app {

// Which rows a network is looked at on: those in memory, else those of the file, else those of the run; without any,
// rows in the training range that the network answers.
struct FormulaRows {
  const RowDataset<double>* rows = nullptr;
  std::filesystem::path file = {};
  bool of_run = false;  // the recipe names data, which are found in data_root
  std::filesystem::path data_root = {};
};

struct FormulaData {
  std::vector<std::string> features, targets;
  std::vector<std::string> columns;            // of the table that features are made of
  std::vector<std::size_t> column_of;          // (features)
  formula::Columns x;                          // rows to search on
  std::vector<std::vector<double>> y;          // (targets); of classes none, here and below
  formula::Columns test_x;                     // rows to measure on
  std::vector<std::vector<double>> test_y;     // (targets)
  bool unseen = false;                         // rows to measure on are others than those to search on
  formula::Columns check_x;                    // validation rows; empty: there are none
  std::vector<std::vector<double>> check_y;    // (targets)
  std::vector<std::vector<double>> predicted;  // (targets): by the network, of the rows to measure on
  // Of classes: the class of each row, instead of targets.
  std::vector<std::uint32_t> label, test_label, check_label;
  std::vector<std::string> classes;
  bool data = true;  // false: there are none, y are the outputs of the network
  formula::NetworkSamples network;
};

// Fails with unsupported where there is no formula: of classes, and of networks with very many edges.
Result<void> can_have_formula(const FormulaData& data);

}  // namespace gradloom::app
