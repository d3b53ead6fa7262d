// Expressions as MathML, for pages.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gradloom/formula/expression.h"

namespace gradloom::formula {

// What goes into <math>. Names are escaped; digits at their end become an index.
std::string mathml(const Expr& e, std::span<const std::string> names);
// The terms of a sum with their signs, each for a <math> of its own, so that a page can break lines between them; one
// for what is no sum.
std::vector<std::string> mathml_terms(const Expr& e, std::span<const std::string> names);
// A name alone.
std::string mathml_name(const std::string& name);

}  // namespace gradloom::formula
