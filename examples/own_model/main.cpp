// Checks the gradient of the model in radial_network.h, trains it, and shows that threads do not change its bits.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "gradloom/data/rows.h"
#include "gradloom/train/gradient_check.h"
#include "gradloom/train/trainer.h"
#include "radial_network.h"

namespace {

constexpr std::size_t kInputs = 2, kUnits = 24, kOutputs = 1;

// A ring-shaped wave on [-1, 1]^2, with a little noise.
gradloom::RowDataset<double> make_data(std::size_t samples) {
  gradloom::RowParts<double> parts;
  parts.size = samples;
  parts.features = kInputs;
  parts.targets = kOutputs;
  for (std::uint32_t s = 0; s < samples; ++s) {
    const gradloom::RandomStream random(1, gradloom::RandomUse::data, 0, s);
    const double a = 2 * random.uniform(0) - 1, b = 2 * random.uniform(1) - 1;
    parts.x.insert(parts.x.end(), {a, b});
    parts.target.push_back(std::sin(4 * std::sqrt(a * a + b * b)) + 0.01 * random.normal(2));
  }
  return gradloom::RowDataset<double>(std::move(parts));
}

// Central differences in double precision, of every parameter and every input, at the initial parameters plus noise.
bool check(const gradloom::RowDataset<double>& data) {
  const gradloom::Exec ex;
  const example::RadialNetwork<double> network(kInputs, kUnits, kOutputs);
  const auto state = gradloom::initial_state(network, 0);
  auto storage = data.make_storage(16);
  std::vector<std::uint32_t> rows(16);
  for (std::uint32_t s = 0; s < rows.size(); ++s) rows[s] = s;
  const gradloom::GradientCheckReport report =
      gradloom::check_gradient(ex, network, data.gather(rows, storage), state.parameters.span(), state.buffers.span());
  std::printf("gradient check: %s, %zu derivatives checked, %zu zero, largest relative error %.1e\n",
              report.passed ? "passed" : "FAILED", report.checked, report.zero, report.max_relative_error);
  if (!report.passed) std::printf("  %s\n", report.reason.c_str());
  return report.passed;
}

gradloom::TrainState<float> train(const gradloom::RowDataset<float>& data, unsigned threads, double& loss) {
  const gradloom::Exec ex({.threads = threads});
  const example::RadialNetwork<float> network(kInputs, kUnits, kOutputs);
  gradloom::TrainState<float> state = gradloom::initial_state(network, 0);
  gradloom::TrainOptions options;
  options.epochs = 200;
  options.batch = 64;
  options.optimizer.lr = 0.02;
  options.schedule.kind = gradloom::ScheduleKind::cosine;
  gradloom::Trainer trainer(ex, network, data, options, state);
  gradloom::TrainHooks hooks;
  hooks.after_epoch = [&](const gradloom::EpochReport& epoch) {
    loss = epoch.loss;
    if (threads == 1 && epoch.position.epoch % 40 == 0)
      std::printf("epoch %3llu: loss %.6f\n", static_cast<unsigned long long>(epoch.position.epoch), epoch.loss);
    return gradloom::Continue::yes;
  };
  trainer.run(hooks);
  return state;
}

}  // namespace

int main() try {
  const gradloom::RowDataset<double> data = make_data(1024);
  if (!check(data)) return 1;

  const gradloom::RowDataset<float> rows = gradloom::convert<float>(data);
  double loss = 0.0, loss_of_three = 0.0;
  const auto one = train(rows, 1, loss), three = train(rows, 3, loss_of_three);
  const bool same =
      std::memcmp(one.parameters.data(), three.parameters.data(), one.parameters.size() * sizeof(float)) == 0;
  std::printf("1 and 3 threads end with %s weights\n", same && loss == loss_of_three ? "the same" : "DIFFERENT");
  return same && loss == loss_of_three && loss < 1e-3 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "own_model: %s\n", e.what());
  return 2;
}
