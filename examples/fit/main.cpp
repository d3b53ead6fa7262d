// A network that is trained on data in memory, saved, loaded and used.
#include <cmath>
#include <cstdio>

#include "gradloom/gradloom.h"

int main() {
  std::vector<double> x, y;
  for (std::size_t i = 0; i < 2000; ++i) {
    x.insert(x.end(), {std::sin(1.0 * i), std::cos(1.7 * i)});
    y.push_back(std::sin(3 * x[2 * i]) * x[2 * i + 1]);
  }
  gradloom::KanOptions options;
  options.model.hidden = {5};
  const auto model = gradloom::fit({x, 2}, y, options);
  std::printf("rmse of unseen rows: %.4f\n", model.metrics().test->values.at("rmse"));
  model.save("fit.safetensors");
  const auto learned = gradloom::load("fit.safetensors").predict({std::vector{0.5, 0.8}, 2});
  std::printf("f(0.5, 0.8) = %.4f, learned %.4f\n", std::sin(3 * 0.5) * 0.8, learned(0, 0));
}
