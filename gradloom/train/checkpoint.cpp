#include "gradloom/train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "gradloom/io/json.h"
#include "gradloom/io/slice_tensors.h"
#include "gradloom/kernels/reduce/tree_sum.h"

namespace gradloom {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "gradloom-checkpoint";
constexpr int kVersion = 2;        // with a checksum
constexpr int kOldestVersion = 1;  // without one

template <class T>
const char* scalar_name() {
  return sizeof(T) == 4 ? "float32" : "float64";
}

// The upper levels of the stack of a half-accumulated gradient that hold something.
unsigned upper_levels(std::size_t leaves) { return std::max(1u, kernels::reduce::tree_height(leaves)) - 1; }
std::string level_prefix(unsigned level) { return fmt::format("levels/{}/", level); }

struct DamagedState : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct UnknownContract {
  std::uint64_t number;
  explicit UnknownContract(std::uint64_t n) : number(n) {}
};

json position_json(const TrainPosition& p) {
  return {{"stage", p.stage},
          {"epoch", p.epoch},
          {"run_epoch", p.run_epoch},
          {"batch", p.batch},
          {"step", p.step},
          {"optimizer_age", p.optimizer_age},
          {"epoch_loss", p.epoch_loss},
          {"epoch_samples", p.epoch_samples},
          {"epochs_without_progress", p.epochs_without_progress},
          {"stage_done", p.stage_done},
          {"stage_closed", p.stage_closed}};
}

// A number that counts something; the library would convert -1 and 1.5 without a word.
std::uint64_t count_at(const json& j, const char* key) {
  const json& value = j.at(key);
  if (!value.is_number_unsigned()) throw DamagedState(fmt::format("'{}' is not a count: {}", key, value.dump()));
  return value.get<std::uint64_t>();
}

std::uint64_t fingerprint_from(const json& j) {
  const auto& text = j.get_ref<const std::string&>();
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size())
    throw DamagedState(fmt::format("'data' is not a fingerprint: {}", j.dump()));
  return value;
}

TrainPosition position_from(const json& j) {
  TrainPosition p;
  p.stage = count_at(j, "stage");
  p.epoch = count_at(j, "epoch");
  p.run_epoch = count_at(j, "run_epoch");
  p.batch = count_at(j, "batch");
  p.step = count_at(j, "step");
  p.optimizer_age = count_at(j, "optimizer_age");
  j.at("epoch_loss").get_to(p.epoch_loss);
  p.epoch_samples = count_at(j, "epoch_samples");
  p.epochs_without_progress = count_at(j, "epochs_without_progress");
  j.at("stage_done").get_to(p.stage_done);
  j.at("stage_closed").get_to(p.stage_closed);
  return p;
}

// Of the state of a checkpoint; none for contract 1, which wrote nothing about it.
std::optional<Arithmetic> arithmetic_from(const json& state) {
  if (!state.contains("arithmetic")) return std::nullopt;
  if (const std::uint64_t contract = count_at(state, "arithmetic"); contract != kNumericalContract)
    throw UnknownContract(contract);
  const auto& name = state.at("multiply_add").get_ref<const std::string&>();
  if (const auto found = find_choice<Arithmetic>(kArithmetics, name)) return found;
  throw DamagedState(fmt::format("'multiply_add' is \"{}\"", name));
}

// The JSON text of a metadata entry, or an error that names the file.
Result<json> metadata_json(const TensorFile& file, const std::filesystem::path& path, const char* key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end())
    return Error{ErrorCode::invalid_input,
                 fmt::format("{} is not a gradloom checkpoint: its metadata has no '{}'", path.string(), key)};
  return parse_json(found->second, fmt::format("{}: the metadata entry '{}'", path.string(), key));
}

Error broken_state(const std::filesystem::path& path, const std::string& what) {
  return {ErrorCode::invalid_input,
          fmt::format("{}: the state of the run is incomplete or damaged ({})", path.string(), what)};
}

template <class T>
Result<Buffer<T>> load_slices(const TensorFile& file, const std::filesystem::path& path, const std::string& prefix,
                              const Slices& slices) {
  Buffer<T> values(slices.flat_size());
  for (const Slice& s : slices) {
    if (!s.saved) continue;
    const Tensor* tensor = file.find(prefix + s.name);
    if (tensor && tensor->shape != s.shape)
      return Error{ErrorCode::invalid_input,
                   fmt::format("{}: tensor '{}' has another shape than in the model of the recipe", path.string(),
                               prefix + s.name)};
    auto loaded = file.values<T>(prefix + s.name);
    if (!loaded) return loaded.error();
    fill_slice<T>(s, *loaded, values.span());
  }
  return values;
}

// The first of a slice's numbers that is NaN or infinite.
constexpr std::size_t kAllFinite = ~std::size_t{0};
template <class T>
std::size_t first_not_finite(const Slice& s, std::span<const T> values) {
  std::size_t found = kAllFinite, number = 0;
  for_each_logical(s, [&](std::size_t at) {
    if (found == kAllFinite && !std::isfinite(values[at])) found = number;
    ++number;
  });
  return found;
}

}  // namespace

template <class T>
Result<void> save_checkpoint(const FilePlace& path, const Slices& parameters, const Slices& buffers,
                             const TrainState<T>& state, GradientIn gradient, const CheckpointNotes& notes) {
  std::vector<TensorView> tensors;
  add_slice_tensors<T>(tensors, "parameters/", parameters, state.parameters.span());
  add_slice_tensors<T>(tensors, "buffers/", buffers, state.buffers.span());
  json optimizer = json::array();
  for (const OptimizerState<T>& s : state.optimizer) {
    optimizer.push_back(s.name);
    add_slice_tensors<T>(tensors, "optimizer/" + s.name + "/", parameters, s.values.span());
  }
  for (std::size_t pair = 0; pair < state.lbfgs.count; ++pair) {
    const std::size_t at = (state.lbfgs.first + pair) % state.lbfgs.steps.size();
    add_slice_tensors<T>(tensors, fmt::format("lbfgs/step/{}/", pair), parameters, state.lbfgs.steps[at].span());
    add_slice_tensors<T>(tensors, fmt::format("lbfgs/difference/{}/", pair), parameters,
                         state.lbfgs.differences[at].span());
  }
  if (state.residual.size() > 0) add_slice_tensors<T>(tensors, "residual/", parameters, state.residual.span());
  if (gradient == GradientIn::checkpoint) add_slice_tensors<T>(tensors, "gradient/", parameters, state.gradient.span());
  const unsigned levels = gradient == GradientIn::checkpoint ? upper_levels(state.leaves) : 0;
  for (unsigned n = 1; n <= levels; ++n)
    add_slice_tensors<T>(tensors, level_prefix(n), parameters,
                         state.levels.span().subspan((n - 1) * parameters.flat_size(), parameters.flat_size()));
  json j = {{"position", position_json(state.position)},
            {"scalar", scalar_name<T>()},
            {"optimizer", optimizer},
            {"lbfgs_pairs", state.lbfgs.count},
            {"gradient", gradient == GradientIn::checkpoint},
            {"log_lines", notes.log_lines}};
  if (notes.arithmetic) {
    j["arithmetic"] = kNumericalContract;
    j["multiply_add"] = name_of(kArithmetics, *notes.arithmetic);
  }
  if (gradient == GradientIn::checkpoint) j["leaves"] = state.leaves;
  if (notes.data) j["data"] = fmt::format("{:016x}", *notes.data);
  if (state.residual.size() > 0) j["residual"] = true;
  if (state.best) {
    json best = {{"run_epoch", state.best->run_epoch}};
    if (state.best->parameters.size() > 0) {
      best["loss"] = state.best->loss;
      add_slice_tensors<T>(tensors, "best/", parameters, state.best->parameters.span());
    }
    j["best"] = best;
  }
  return write_safetensors(path, tensors,
                           {{"format", json(kFormat).dump()}, {"version", json(kVersion).dump()}, {"state", j.dump()}});
}

Result<CheckpointHead> checkpoint_head(const TensorFile& file, const std::filesystem::path& path) {
  auto format = metadata_json(file, path, "format");
  if (!format) return format.error();
  if (*format != kFormat) return Error{ErrorCode::invalid_input, path.string() + " is not a gradloom checkpoint"};
  auto version = metadata_json(file, path, "version");
  if (!version) return version.error();
  if (*version != kVersion && *version != kOldestVersion)
    return Error{ErrorCode::unsupported, fmt::format("{} has format version {}; this program reads versions {} to {}",
                                                     path.string(), version->dump(), kOldestVersion, kVersion)};
  if (*version == kVersion && !file.has_checksum()) return broken_state(path, "its checksum is missing or unreadable");
  auto state = metadata_json(file, path, "state");
  if (!state) return state.error();
  try {
    CheckpointHead head;
    head.position = position_from(state->at("position"));
    state->at("scalar").get_to(head.scalar);
    head.notes.log_lines = count_at(*state, "log_lines");
    if (state->contains("data")) head.notes.data = fingerprint_from(state->at("data"));
    head.notes.arithmetic = arithmetic_from(*state);
    return head;
  } catch (const UnknownContract& unknown) {
    return Error{ErrorCode::unsupported,
                 fmt::format("{} follows numerical contract {}; this program follows contract {}", path.string(),
                             unknown.number, kNumericalContract)};
  } catch (const json::exception& e) {
    return broken_state(path, e.what());
  } catch (const DamagedState& e) {
    return broken_state(path, e.what());
  }
}

template <class T>
Result<TrainState<T>> load_checkpoint(const TensorFile& file, const std::filesystem::path& path,
                                      const Slices& parameters, const Slices& buffers) {
  auto head = checkpoint_head(file, path);
  if (!head) return head.error();
  if (head->scalar != scalar_name<T>())
    return Error{ErrorCode::invalid_input, fmt::format("{} has the precision {}, but the recipe has {}", path.string(),
                                                       head->scalar, scalar_name<T>())};
  auto parsed = metadata_json(file, path, "state");
  if (!parsed) return parsed.error();
  const json& j = *parsed;
  TrainState<T> state;
  state.position = head->position;
  std::size_t expected = 0;
  const auto load = [&](const std::string& prefix, const Slices& slices, Buffer<T>& into) -> Result<void> {
    auto values = load_slices<T>(file, path, prefix, slices);
    if (!values) return values.error();
    into = std::move(*values);
    for (const Slice& s : slices) {
      expected += s.saved;
      if (&slices == &buffers) continue;  // a family knows better what may stand there
      if (const std::size_t bad = first_not_finite<T>(s, into.span()); bad != kAllFinite)
        return broken_state(path, fmt::format("'{}{}' has a number that is not finite, at {}", prefix, s.name, bad));
    }
    return {};
  };
  try {
    if (auto r = load("parameters/", parameters, state.parameters); !r) return r.error();
    if (auto r = load("buffers/", buffers, state.buffers); !r) return r.error();
    for (const json& name : j.at("optimizer")) {
      state.optimizer.push_back({name.get<std::string>(), {}});
      if (auto r = load("optimizer/" + state.optimizer.back().name + "/", parameters, state.optimizer.back().values);
          !r)
        return r.error();
    }
    const std::uint64_t pairs = count_at(j, "lbfgs_pairs");
    if (pairs > 1000) return broken_state(path, fmt::format("{} L-BFGS pairs", pairs));
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      if (auto r = load(fmt::format("lbfgs/step/{}/", pair), parameters, state.lbfgs.steps.emplace_back()); !r)
        return r.error();
      if (auto r = load(fmt::format("lbfgs/difference/{}/", pair), parameters, state.lbfgs.differences.emplace_back());
          !r)
        return r.error();
    }
    state.lbfgs.count = pairs;
    if (j.at("gradient").get<bool>())
      if (auto r = load("gradient/", parameters, state.gradient); !r) return r.error();
    if (head->notes.arithmetic && j.at("gradient").get<bool>()) {
      state.leaves = count_at(j, "leaves");
      const std::size_t size = parameters.flat_size();
      state.levels = Buffer<T>(upper_levels(state.leaves) * size);
      for (unsigned n = 1; n <= upper_levels(state.leaves); ++n) {
        Buffer<T> level;
        if (auto r = load(level_prefix(n), parameters, level); !r) return r.error();
        std::copy_n(level.data(), size, state.levels.data() + (n - 1) * size);
      }
    }
    if (j.value("residual", false))
      if (auto r = load("residual/", parameters, state.residual); !r) return r.error();
    if (j.contains("best")) {
      state.best.emplace();
      state.best->run_epoch = count_at(j.at("best"), "run_epoch");
      if (j.at("best").contains("loss")) {
        j.at("best").at("loss").get_to(state.best->loss);
        if (auto r = load("best/", parameters, state.best->parameters); !r) return r.error();
      }
    }
  } catch (const json::exception& e) {
    return broken_state(path, e.what());
  } catch (const DamagedState& e) {
    return broken_state(path, e.what());
  }
  if (file.tensors().size() != expected)
    return broken_state(path,
                        fmt::format("it has {} tensors, but its state needs {}", file.tensors().size(), expected));
  return state;
}

template Result<void> save_checkpoint(const FilePlace&, const Slices&, const Slices&, const TrainState<float>&,
                                      GradientIn, const CheckpointNotes&);
template Result<void> save_checkpoint(const FilePlace&, const Slices&, const Slices&, const TrainState<double>&,
                                      GradientIn, const CheckpointNotes&);
template Result<TrainState<float>> load_checkpoint(const TensorFile&, const std::filesystem::path&, const Slices&,
                                                   const Slices&);
template Result<TrainState<double>> load_checkpoint(const TensorFile&, const std::filesystem::path&, const Slices&,
                                                    const Slices&);

}  // namespace gradloom
