#include "gradloom/session/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gradloom/io/json.h"
#include "gradloom/io/slice_tensors.h"

namespace gradloom {
namespace {

using nlohmann::json;

constexpr const char* kModelFormat = "gradloom-model";
constexpr int kModelVersion = 2, kOldestVersion = 1;
constexpr const char* kModelKeys[] = {"format",   "version",  "family",  "precision",     "options",
                                      "features", "targets",  "classes", "normalisation", "input",
                                      "ranges",   "training", "circuit"};

Error damaged_model(const std::filesystem::path& name, const std::string& what) {
  return {ErrorCode::invalid_input, fmt::format("{}: {}", name.string(), what)};
}

Result<json> model_entry(const TensorFile& file, const std::filesystem::path& name, const char* key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end())
    return damaged_model(name, fmt::format("is not a gradloom model: its metadata has no '{}'", key));
  return parse_json(found->second, fmt::format("{}: the metadata entry '{}'", name.string(), key));
}

Result<std::vector<std::string>> names_of_entry(const json& entry, const std::filesystem::path& name, const char* key) {
  std::vector<std::string> names;
  if (!entry.is_array()) return damaged_model(name, fmt::format("the metadata entry '{}' is not a list", key));
  for (const json& element : entry) {
    if (!element.is_string()) return damaged_model(name, fmt::format("'{}' has a name that is not a string", key));
    names.push_back(element.get<std::string>());
  }
  return names;
}

// What files have since version 2.
Result<void> read_newer_entries(const TensorFile& file, const std::filesystem::path& name, ModelHead& head) try {
  for (const auto& [key, value] : file.metadata())
    if (std::find(std::begin(kModelKeys), std::end(kModelKeys), key) == std::end(kModelKeys))
      return damaged_model(name, fmt::format("its metadata has the entry '{}', which model files do not have", key));
  auto input = model_entry(file, name, "input");
  if (!input) return input.error();
  if (!input->is_object()) return damaged_model(name, "the metadata entry 'input' is not an object");
  head.description.input = std::move(*input);
  const auto ranges = model_entry(file, name, "ranges");
  if (!ranges) return ranges.error();
  const std::size_t features = head.description.features.size();
  if (!ranges->is_array() || (ranges->size() != features && !ranges->empty()))
    return damaged_model(name, fmt::format("the metadata entry 'ranges' is not a list of {} pairs", features));
  for (const json& range : *ranges) {
    if (!range.is_array() || range.size() != 2 || !range[0].is_number() || !range[1].is_number() ||
        range[0].get<double>() > range[1].get<double>())
      return damaged_model(name, fmt::format("'ranges' has {}, which must be [low, high]", range.dump()));
    head.description.ranges.push_back({range[0].get<double>(), range[1].get<double>()});
  }
  const auto training = model_entry(file, name, "training");
  if (!training) return training.error();
  EntryReader reader(*training, "training");
  head.epochs = reader.count("epochs", SIZE_MAX);
  head.finished = reader.flag("finished");
  if (reader.has("arithmetic")) {
    if (const std::size_t contract = reader.count("arithmetic", SIZE_MAX); contract != kNumericalContract)
      return Error{ErrorCode::unsupported, fmt::format("{} follows numerical contract {}; this program follows {}",
                                                       name.string(), contract, kNumericalContract)};
    head.arithmetic = value_of<Arithmetic>(kArithmetics, reader.text("multiply_add"), "arithmetic").or_throw();
  }
  reader.done();
  if (!file.metadata().contains("circuit")) return {};
  auto circuit = model_entry(file, name, "circuit");
  if (!circuit) return circuit.error();
  head.circuit = std::move(*circuit);
  return {};
} catch (const Exception& e) {
  return damaged_model(name, e.what());
}

Result<void> check_shapes(const TensorFile& file, const std::filesystem::path& name, const std::string& group,
                          const Slices& slices) {
  for (const Slice& slice : slices) {
    if (!slice.saved) continue;
    const Tensor* tensor = file.find(group + slice.name);
    if (!tensor) return damaged_model(name, fmt::format("has no tensor '{}{}'", group, slice.name));
    if (tensor->shape != slice.shape)
      return damaged_model(
          name, fmt::format("the tensor '{}{}' has another shape than that of the options", group, slice.name));
  }
  return {};
}

template <class T>
Result<Buffer<T>> read_group(const TensorFile& file, const std::filesystem::path& name, const std::string& group,
                             const Slices& slices) {
  Buffer<T> array(slices.flat_size());
  for (const Slice& slice : slices) {
    if (!slice.saved) continue;
    const auto values = file.values<T>(group + slice.name);
    if (!values) return values.error();
    for (std::size_t i = 0; i < values->size(); ++i)
      if (!std::isfinite((*values)[i]))
        return damaged_model(
            name, fmt::format("the tensor '{}{}' has a number that is not finite, at {}", group, slice.name, i));
    fill_slice<T>(slice, *values, array.span());
  }
  return array;
}

}  // namespace

EntryReader::EntryReader(const json& object, std::string entry) : object_(object), entry_(std::move(entry)) {
  if (!object.is_object()) fail("is not an object");
}

void EntryReader::fail(const std::string& what) const {
  throw_invalid(fmt::format("the metadata entry '{}' is damaged: {}", entry_, what));
}

const json& EntryReader::at(const char* key) {
  const auto found = object_.find(key);
  if (found == object_.end()) fail(fmt::format("there is no '{}'", key));
  known_.emplace_back(key);
  return *found;
}

std::size_t EntryReader::count(const char* key, std::size_t most) {
  const json& value = at(key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
    fail(fmt::format("'{}' is {}, not a whole number from 0 to {}", key, value.dump(), most));
  return value.get<std::size_t>();
}

bool EntryReader::flag(const char* key) {
  const json& value = at(key);
  if (!value.is_boolean()) fail(fmt::format("'{}' is neither true nor false", key));
  return value.get<bool>();
}

std::string EntryReader::text(const char* key) {
  const json& value = at(key);
  if (!value.is_string()) fail(fmt::format("'{}' is not a string", key));
  return value.get<std::string>();
}

std::vector<std::string> EntryReader::names(const char* key) {
  const json& list = at(key);
  std::vector<std::string> found;
  if (!list.is_array()) fail(fmt::format("'{}' is not a list", key));
  for (const json& element : list) {
    if (!element.is_string()) fail(fmt::format("'{}' has a name that is not a string", key));
    found.push_back(element.get<std::string>());
  }
  return found;
}

std::vector<double> EntryReader::numbers(const char* key) {
  const json& list = at(key);
  std::vector<double> found;
  if (!list.is_array()) fail(fmt::format("'{}' is not a list", key));
  for (const json& element : list) {
    if (!element.is_number() || !std::isfinite(element.get<double>()))
      fail(fmt::format("'{}' has {}, which is not a finite number", key, element.dump()));
    found.push_back(element.get<double>());
  }
  return found;
}

void EntryReader::done() const {
  for (const auto& [key, value] : object_.items())
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) fail(fmt::format("there is no key '{}'", key));
}

template <class T>
Result<void> give_model(const ModelHead& head, const Slices& parameters, const Slices& buffers,
                        const ModelArrays<T>& arrays, TensorWriter write) {
  std::vector<TensorView> tensors;
  add_slice_tensors<T>(tensors, "parameters/", parameters, arrays.parameters);
  add_slice_tensors<T>(tensors, "buffers/", buffers, arrays.buffers);
  const ModelDescription& d = head.description;
  Metadata metadata;
  const auto entry = [&](const char* key, const json& value) {
    try {
      metadata[key] = value.dump();
    } catch (const json::exception&) {  // the only thing that dump() refuses
      throw_invalid(fmt::format("'{}' cannot be written to a model file: a text in it is not UTF-8", key));
    }
  };
  entry("format", kModelFormat);
  entry("version", kModelVersion);
  entry("family", head.family);
  entry("precision", name_of(kPrecisions, head.precision));
  entry("options", head.options);
  entry("features", d.features);
  entry("targets", d.targets);
  entry("classes", d.classes);
  entry("normalisation", d.normalisation);
  entry("input", d.input);
  json ranges = json::array();
  for (const FeatureRange& range : d.ranges) ranges.push_back({range.low, range.high});
  entry("ranges", ranges);
  json training = {{"epochs", head.epochs}, {"finished", head.finished}};
  if (head.arithmetic) {
    training["arithmetic"] = kNumericalContract;
    training["multiply_add"] = name_of(kArithmetics, *head.arithmetic);
  }
  entry("training", training);
  if (!head.circuit.is_null()) entry("circuit", head.circuit);
  return write(tensors, metadata);
}

template <class T>
Result<void> write_model(const FilePlace& path, const ModelHead& head, const Slices& parameters, const Slices& buffers,
                         const ModelArrays<T>& arrays) {
  return give_model<T>(head, parameters, buffers, arrays,
                       [&](std::span<const TensorView> t, const Metadata& m) { return write_safetensors(path, t, m); });
}

Result<ModelHead> model_head(const TensorFile& file, const std::filesystem::path& name) {
  const auto format = model_entry(file, name, "format");
  if (!format) return format.error();
  if (*format != kModelFormat)
    return damaged_model(name, fmt::format("is not a gradloom model: its format is {}", format->dump()));
  const auto version = model_entry(file, name, "version");
  if (!version) return version.error();
  if (*version != kModelVersion && *version != kOldestVersion)
    return Error{ErrorCode::unsupported, fmt::format("{} has format version {}; this program reads versions {} to {}",
                                                     name.string(), version->dump(), kOldestVersion, kModelVersion)};
  ModelHead head;
  const auto text = [&](const char* key) -> Result<std::string> {
    auto entry = model_entry(file, name, key);
    if (!entry) return entry.error();
    if (!entry->is_string()) return damaged_model(name, fmt::format("the metadata entry '{}' is not a string", key));
    return entry->template get<std::string>();
  };
  auto family = text("family");
  if (!family) return family.error();
  head.family = *family;
  const auto precision = text("precision");
  if (!precision) return precision.error();
  const auto known = value_of<Precision>(kPrecisions, *precision, "precision");
  if (!known) return damaged_model(name, known.error().message);
  head.precision = *known;
  for (const auto& [key, into] :
       {std::pair{"options", &head.options}, std::pair{"normalisation", &head.description.normalisation}}) {
    auto entry = model_entry(file, name, key);
    if (!entry) return entry.error();
    *into = std::move(*entry);
  }
  for (const auto& [key, into] :
       {std::pair{"features", &head.description.features}, std::pair{"targets", &head.description.targets},
        std::pair{"classes", &head.description.classes}}) {
    const auto entry = model_entry(file, name, key);
    if (!entry) return entry.error();
    auto names = names_of_entry(*entry, name, key);
    if (!names) return names.error();
    *into = std::move(*names);
  }
  if (*version != kOldestVersion)
    if (auto r = read_newer_entries(file, name, head); !r) return r.error();
  return head;
}

template <class T>
Result<LoadedArrays<T>> read_model_arrays(const TensorFile& file, const std::filesystem::path& name,
                                          const Slices& parameters, const Slices& buffers) {
  if (auto r = check_shapes(file, name, "parameters/", parameters); !r) return r.error();
  if (auto r = check_shapes(file, name, "buffers/", buffers); !r) return r.error();
  std::size_t expected = 0;
  for (const Slices* slices : {&parameters, &buffers})
    for (const Slice& slice : *slices) expected += slice.saved;
  if (file.tensors().size() != expected)
    return damaged_model(name, fmt::format("has {} tensors, the model {}", file.tensors().size(), expected));
  auto p = read_group<T>(file, name, "parameters/", parameters);
  if (!p) return p.error();
  auto b = read_group<T>(file, name, "buffers/", buffers);
  if (!b) return b.error();
  return LoadedArrays<T>{std::move(*p), std::move(*b)};
}

#define GRADLOOM_INSTANTIATE(T)                                                                                      \
  template Result<void> give_model(const ModelHead&, const Slices&, const Slices&, const ModelArrays<T>&,            \
                                   TensorWriter);                                                                    \
  template Result<void> write_model(const FilePlace&, const ModelHead&, const Slices&, const Slices&,                \
                                    const ModelArrays<T>&);                                                          \
  template Result<LoadedArrays<T>> read_model_arrays(const TensorFile&, const std::filesystem::path&, const Slices&, \
                                                     const Slices&);
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom
