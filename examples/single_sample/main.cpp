// A spline network in an inner loop: one sample per call, no allocation, no lock, no thread.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "gradloom/app/families/families.h"
#include "gradloom/app/recipe.h"
#include "gradloom/base/random.h"
#include "gradloom/base/rounding.h"
#include "gradloom/io/safetensors.h"
#include "gradloom/session/families/kan/options.h"
#include "gradloom/train/checkpoint.h"
#include "gradloom/train/trainer.h"

// Counts what the loop allocates, so that the claim is shown and not only made.
static std::atomic<std::size_t> allocations{0};

static void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  void* memory =
      std::aligned_alloc(alignment, (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t a) { return counted(bytes, static_cast<std::size_t>(a)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace {

using gradloom::kan::Network;

// A network and the arrays it reads.
template <class T>
struct Model {
  Network<T> network;
  gradloom::TrainState<T> state;
  gradloom::ModelArrays<T> arrays() const { return {state.parameters, state.buffers}; }
};

// From a run folder: the recipe says what the network looks like, the checkpoint has its arrays.
template <class T>
Model<T> load(const std::filesystem::path& checkpoint, const gradloom::Config& recipe, const gradloom::TensorFile& file,
              std::size_t stage) {
  const gradloom::Tensor* input = file.find("buffers/input.mean");
  const gradloom::Tensor* output = file.find("buffers/output.mean");
  if (!input || !output) throw std::runtime_error(checkpoint.string() + " does not hold a spline network");
  const auto options = gradloom::app::option_schema<gradloom::KanOptions>().read(recipe);
  if (stage >= gradloom::stage_count(options))
    throw std::runtime_error(checkpoint.string() + " is in a stage that the recipe does not have");
  Network<T> network(gradloom::network_options(gradloom::stage_of(options, stage), input->size(), output->size()));
  auto state = gradloom::load_checkpoint<T>(file, checkpoint, network.parameters(), network.buffers()).or_throw();
  // Tables that follow from the saved grids are not in the file.
  network.derive(state.buffers.span()).or_throw();
  return {std::move(network), std::move(state)};
}

// Without a run: f(a, b, c) = sin(3a) b + c^2, learned here in a moment.
Model<float> train_small() {
  gradloom::RowParts<float> parts;
  parts.size = 1000;
  parts.features = 3;
  parts.targets = 1;
  const gradloom::RandomStream random(0, gradloom::RandomUse::data);
  for (std::uint32_t at = 0; at < 3 * parts.size; ++at)
    parts.x.push_back(static_cast<float>(2 * random.uniform(at) - 1));
  for (std::size_t s = 0; s < parts.size; ++s)
    parts.target.push_back(std::sin(3 * parts.x[3 * s]) * parts.x[3 * s + 1] + parts.x[3 * s + 2] * parts.x[3 * s + 2]);
  const gradloom::RowDataset<float> data(std::move(parts));

  Network<float> network({.widths = {3, 8, 1}});
  gradloom::TrainState<float> state = gradloom::initial_state(network, 0);
  const gradloom::Exec ex({.threads = 1});
  gradloom::TrainOptions options;
  options.epochs = 60;
  gradloom::Trainer trainer(ex, network, data, options, state);
  double loss = 0.0;
  trainer.run({.after_step = {}, .validate = {}, .after_epoch = [&](const gradloom::EpochReport& epoch) {
                 loss = epoch.loss;
                 return gradloom::Continue::yes;
               }});
  std::printf("trained a small network to a loss of %.2e\n", loss);
  return {std::move(network), std::move(state)};
}

template <class T>
int measure(const Model<T>& model) {
  const std::size_t in = model.network.input_width(), out = model.network.output_width();
  constexpr std::size_t kSamples = 512, kRounds = 41;
  std::vector<T> x(kSamples * in), y(kSamples * out);
  const gradloom::RandomStream random(1, gradloom::RandomUse::user);
  for (std::uint32_t at = 0; at < x.size(); ++at) x[at] = static_cast<T>(2 * random.uniform(at) - 1);

  // Once, outside the loop; one per thread in a program that has several.
  auto workspace = model.network.make_single_workspace();
  std::vector<double> nanoseconds;
  nanoseconds.reserve(kRounds);

  const std::size_t before = allocations;
  for (std::size_t round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t s = 0; s < kSamples; ++s)
      model.network.forward_single(gradloom::Variant::fast, model.arrays(), std::span(x).subspan(s * in, in), workspace,
                                   std::span(y).subspan(s * out, out));
    const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
    nanoseconds.push_back(elapsed.count() / kSamples);
  }
  const std::size_t made = allocations - before;

  // The same bits as a batch gives.
  const gradloom::Exec ex;
  gradloom::RowBatch<T> batch;
  batch.size = kSamples;
  batch.x = {x.data(), {kSamples, in}};
  auto tape = model.network.make_tape(ex, {.batch = kSamples, .backward = false});
  const std::size_t stride = gradloom::padded(out);
  gradloom::Buffer<T> together(kSamples * stride);
  model.network.forward(ex, {}, model.arrays(), batch, tape, {together.data(), {kSamples, out}, {stride, 1}});
  bool same = true;
  for (std::size_t s = 0; s < kSamples; ++s)
    same = same && std::memcmp(together.data() + s * stride, y.data() + s * out, out * sizeof(T)) == 0;

  std::sort(nanoseconds.begin(), nanoseconds.end());
  std::printf("%zu inputs, %zu layers, %zu outputs, %zu parameters\n", in, model.network.layers(), out,
              model.network.parameters().logical_size());
  std::printf("%.0f ns per call (median of %zu rounds of %zu; fastest %.0f)\n", nanoseconds[kRounds / 2], kRounds,
              kSamples, nanoseconds.front());
  std::printf("%zu allocations in %zu calls; output %s that of a batch\n", made, kRounds * kSamples,
              same ? "equals" : "DIFFERS from");
  return made == 0 && same ? 0 : 1;
}

int measure_run(const std::filesystem::path& folder) {
  const auto recipe = gradloom::app::load_recipe((folder / "recipe.toml").string(), {}).or_throw();
  const std::filesystem::path checkpoint = folder / "checkpoint" / "last.safetensors";
  const auto file = gradloom::read_safetensors(checkpoint).or_throw();
  const auto head = gradloom::checkpoint_head(file, checkpoint).or_throw();
  if (head.scalar == "float32") return measure(load<float>(checkpoint, recipe, file, head.position.stage));
  return measure(load<double>(checkpoint, recipe, file, head.position.stage));
}

}  // namespace

int main(int count, char** arguments) try {
  return count > 1 ? measure_run(arguments[1]) : measure(train_small());
} catch (const std::exception& e) {
  std::fprintf(stderr, "single_sample: %s\n", e.what());
  return 2;
}
