#include "gradloom/session/model_file.h"

#include <fmt/format.h>

#include <cmath>

#include "gradloom/io/json.h"

namespace gradloom {
namespace {

using nlohmann::json;

constexpr const char* kModelFormat = "gradloom-model";
constexpr int kModelVersion = 1;

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
    if (!element.is_string()) return damaged_model(name, fmt::format("'{}' has a name that is no string", key));
    names.push_back(element.get<std::string>());
  }
  return names;
}

Result<void> check_shapes(const TensorFile& file, const std::filesystem::path& name, const std::string& group,
                          const Slices& slices) {
  for (const Slice& slice : slices) {
    if (!slice.saved) continue;
    const Tensor* tensor = file.find(group + slice.name);
    if (!tensor) return damaged_model(name, fmt::format("has no tensor '{}{}'", group, slice.name));
    if (tensor->shape != slice.shape)
      return damaged_model(name,
                           fmt::format("the tensor '{}{}' has another shape than its options say", group, slice.name));
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
    std::size_t next = 0;
    for_each_logical(slice, [&](std::size_t at) { array[at] = (*values)[next++]; });
  }
  return array;
}

}  // namespace

template <class T>
Result<void> write_model(const std::filesystem::path& path, const ModelHead& head, const Slices& parameters,
                         const Slices& buffers, const ModelArrays<T>& arrays) {
  std::vector<TensorView> tensors;
  const auto add = [&](const std::string& group, const Slices& slices, std::span<const T> values) {
    for (const Slice& s : slices)
      if (s.saved)
        tensors.push_back(
            tensor_view<T>(group + s.name, values.subspan(s.offset, s.stored_size()), s.shape, s.stored_last));
  };
  add("parameters/", parameters, arrays.parameters);
  add("buffers/", buffers, arrays.buffers);
  const ModelDescription& d = head.description;
  Metadata metadata;
  const auto entry = [&](const char* key, const json& value) {
    try {
      metadata[key] = value.dump();
    } catch (const json::exception&) {  // the only thing that dump() refuses
      throw_invalid(fmt::format("a model file cannot hold '{}': a text there is not UTF-8", key));
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
  return write_safetensors(path, tensors, metadata);
}

Result<ModelHead> model_head(const TensorFile& file, const std::filesystem::path& name) {
  const auto format = model_entry(file, name, "format");
  if (!format) return format.error();
  if (*format != kModelFormat)
    return damaged_model(name, fmt::format("is not a gradloom model: its format is {}", format->dump()));
  const auto version = model_entry(file, name, "version");
  if (!version) return version.error();
  if (*version != kModelVersion)
    return Error{ErrorCode::unsupported, fmt::format("{} has format version {}; this program reads version {}",
                                                     name.string(), version->dump(), kModelVersion)};
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
  template Result<void> write_model(const std::filesystem::path&, const ModelHead&, const Slices&, const Slices&,    \
                                    const ModelArrays<T>&);                                                          \
  template Result<LoadedArrays<T>> read_model_arrays(const TensorFile&, const std::filesystem::path&, const Slices&, \
                                                     const Slices&);
GRADLOOM_INSTANTIATE(float)
GRADLOOM_INSTANTIATE(double)
#undef GRADLOOM_INSTANTIATE

}  // namespace gradloom
