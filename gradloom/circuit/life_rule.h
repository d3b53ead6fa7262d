// Names of rules that count neighbours, as headers of patterns have them: B3/S23 is the game of life.
#pragma once

#include <string>
#include <string_view>

#include "gradloom/circuit/circuit.h"

namespace gradloom::circuit {

// What the rule is called, when it has one channel and depends on the cell and on how many of its eight neighbours are
// alive; else "". Tries all 512 neighbourhoods. Precondition: validate(rule) succeeds.
std::string life_rule(const CellRule& rule);

// The same name in the same form: births first, digits in order, without what may follow a colon (the size of a grid).
// Understands B3/S23 in any order and case, and 23/3; "" for anything else.
std::string standard_rule(std::string_view name);

}  // namespace gradloom::circuit
