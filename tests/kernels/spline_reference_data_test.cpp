// Basis values and derivatives against data made with another program.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "gradloom/kernels/spline/reference.h"

namespace gradloom::kernels::spline {
namespace {

TEST(SplineReferenceData, BasisAgreesUnderPolicyExtend) {
  const char* root = std::getenv("GRADLOOM_DATA");
  if (!root) GTEST_SKIP() << "GRADLOOM_DATA is not set";
  std::ifstream file(std::string(root) + "/spline_reference/basis.csv");
  if (!file) GTEST_SKIP() << "no spline_reference/basis.csv below " << root;
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    ++lines;
    const std::size_t first = line.find('|'), second = line.find('|', first + 1);
    std::string head = line.substr(0, first);
    std::replace(head.begin(), head.end(), ',', ' ');
    std::istringstream numbers(head), values(line.substr(first + 1, second - first - 1)),
        slopes(line.substr(second + 1));
    Shape shape;
    shape.outside = OutOfGrid::extend;
    double lo, hi, x;
    numbers >> shape.grid >> shape.degree >> lo >> hi >> x;
    ASSERT_TRUE(numbers) << line;
    const double inverse_step = shape.grid / (hi - lo);
    const auto b = reference::split::basis_point(shape, Grid<double>{&lo, &hi, &inverse_step}, 0, x);
    for (unsigned r = 0; r < shape.grid + shape.degree; ++r) {
      double value, slope;
      values >> value;
      slopes >> slope;
      ASSERT_TRUE(values && slopes) << line;
      const bool here = r >= b.span && r <= b.span + shape.degree;
      EXPECT_NEAR(here ? b.value[r - b.span] : 0, value, 1e-12) << line;
      EXPECT_NEAR(here ? b.slope[r - b.span] : 0, slope, 1e-12 * std::max(1.0, inverse_step)) << line;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(lines, 100u);
}

}  // namespace
}  // namespace gradloom::kernels::spline
