// The functions that one edge of a network is compared with: a f(b x + c) + d.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradloom/formula/domain.h"

namespace gradloom::formula {

struct LibraryFunction {
  std::string name;
  Expr text;  // in variable 0
  int complexity = 0;
  bool scale = true, shift = true;  // whether b and c matter beside a and d
  bool sign = true;                 // whether that of b does
  double widest = 10;               // largest |b| that is looked for, where x is in [-1, 1]
};
// Thirty of them, simplest first.
std::span<const LibraryFunction> library();

// "hill = x^3/(1 + x^3)": a function of the user's own, whose name is an identifier and not one of the library's.
// Throws invalid_input, naming what is wrong and where.
LibraryFunction define_function(std::string_view definition);

// A function of the library, fitted.
struct EdgeCandidate {
  std::string function;
  Expr text;      // in variable 0
  double r2 = 0;  // share of the variance that it explains
  double rmse = 0;
  int complexity = 0;
};

struct EdgeFitOptions {
  std::size_t most = 5;   // candidates
  double penalty = 0.15;  // what a unit of complexity costs in log10 of the error
  // Candidates are defined everywhere in it; none: the wider range of x (domain.h).
  std::optional<Range> range = {};
};

// Candidates for y = f(x), best first: by log10 of the error, plus the penalty for complexity. Only functions that are
// defined on all x, and a little outside.
std::vector<EdgeCandidate> fit_edge(const std::vector<double>& x, const std::vector<double>& y,
                                    std::span<const LibraryFunction> functions, const EdgeFitOptions& options = {});

}  // namespace gradloom::formula
