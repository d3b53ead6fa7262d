// Functions of one variable with an inner scale b, such as exp(b x): the families that are scanned over b.
#pragma once

#include <string_view>
#include <vector>

#include "gradloom/formula/problem.h"

namespace gradloom::formula {

struct ScaledAtom {
  enum Kind {
    exp,
    trig,
    exp_square,
    exp_inverse,
    log,
    root_square,
    root,
    atan,
    cos_square,
    sin_square,
    cos_cube,
    tanh
  } kind;
  bool both_signs;  // of b
  bool oscillates;  // b is scanned evenly
  int power;        // b stands beside x^power
};
inline constexpr ScaledAtom kScaledAtoms[] = {
    {ScaledAtom::exp, true, false, 1},        {ScaledAtom::trig, false, true, 1},
    {ScaledAtom::exp_square, true, false, 2}, {ScaledAtom::exp_inverse, true, false, 1},
    {ScaledAtom::log, true, false, 1},        {ScaledAtom::root_square, true, false, 2},
    {ScaledAtom::root, true, false, 1},       {ScaledAtom::atan, false, false, 1},
    {ScaledAtom::cos_square, false, true, 2}, {ScaledAtom::sin_square, false, true, 2},
    {ScaledAtom::cos_cube, false, true, 3},   {ScaledAtom::tanh, false, false, 1},
};

bool needs_nonzero(const ScaledAtom& atom, int family);
std::vector<Column> scaled_columns(const Vector& x, const Vector& g, const ScaledAtom& atom, double b, int family);
// The texts of the same columns.
std::vector<Expr> scaled_texts(const Expr& x, const ScaledAtom& atom, const Constant& b, int family);

// Where in b, over the whole scan, relation_gap() has its `most` deepest minima, refined; the gap beside each.
struct ScaledMinimum {
  double b, gap;
};
std::vector<ScaledMinimum> scan_scale(const Vector& x, const Vector& g, const ScaledAtom& atom, double sign, int family,
                                      std::size_t most, double& work);

}  // namespace gradloom::formula
