// Expressions from text: what print() writes in Notation::text, and what people write.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "gradloom/base/result.h"
#include "gradloom/formula/expression.h"

namespace gradloom::formula {

// Whether 0.25 is a fraction, as a person means it (up to nine digits), or a measured number, as print() writes it.
enum class Decimals { exact, approximate };

// Has + - * / ^ (and **) with exponents that are numbers, brackets, numbers, pi, e, sqrt, the functions of kFunctions,
// and the names, of which the first is variable 0. The text may come from anywhere: at most 64 KB, the expression at
// most 100 nodes deep, brackets and signs at most 400, exponents and their denominators up to 4096, numbers finite.
// Fails with invalid_input, naming the place.
Result<Expr> parse_expression(std::string_view text, std::span<const std::string> names,
                              Decimals decimals = Decimals::exact);

}  // namespace gradloom::formula
