// Model files: a trained network alone, with all that prediction needs, in one safetensors file (docs/format.md).
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gradloom/base/result.h"
#include "gradloom/base/slices.h"
#include "gradloom/exec/arithmetic_names.h"
#include "gradloom/io/safetensors.h"
#include "gradloom/models/model.h"
#include "gradloom/session/options/family.h"

namespace gradloom {

// The least and the largest value of a feature in the training data.
struct FeatureRange {
  double low = 0.0, high = 0.0;
};

// The description of a model by its family, beside options and tensors.
struct ModelDescription {
  std::vector<std::string> features;      // names, in order
  std::vector<std::string> targets;       // names; empty for classification
  std::vector<std::string> classes;       // names; empty for regression
  nlohmann::json normalisation;           // how features become the network's inputs, in the family's own terms
  nlohmann::json input = nullptr;         // how new data become features, likewise; null: a file of version 1
  std::vector<FeatureRange> ranges = {};  // of each feature; empty: not known
};

// The metadata of a model file.
struct ModelHead {
  std::string family;
  Precision precision = Precision::float32;
  nlohmann::json options;  // of the stage that the model was in, by their keys
  ModelDescription description;
  std::uint64_t epochs = 0;  // that it was trained
  bool finished = true;      // false: training was stopped before its end
  // That it was trained in; none: an earlier numerical contract.
  std::optional<Arithmetic> arithmetic;
  nlohmann::json circuit = nullptr;  // the hard circuit of logic families, as docs/circuit.md has it; else null
};

// Reads an object of an untrusted file. Every function throws Exception{invalid_input} that names the entry
// and the key; done() when there is a key that was not read.
class EntryReader {
 public:
  EntryReader(const nlohmann::json& object, std::string entry);

  const nlohmann::json& at(const char* key);
  bool has(const char* key) const { return object_.contains(key); }
  std::size_t count(const char* key, std::size_t most);
  bool flag(const char* key);
  std::string text(const char* key);
  std::vector<std::string> names(const char* key);
  std::vector<double> numbers(const char* key);
  void done() const;
  [[noreturn]] void fail(const std::string& what) const;

 private:
  const nlohmann::json& object_;
  std::string entry_;
  std::vector<std::string> known_;
};

// Gives the tensors and the metadata of a model file to `write`, and returns what that returns. Throws invalid_input on
// a name that is not UTF-8.
template <class T>
Result<void> give_model(const ModelHead& head, const Slices& parameters, const Slices& buffers,
                        const ModelArrays<T>& arrays, TensorWriter write);

// The same, written atomically to a file; fails with io.
template <class T>
Result<void> write_model(const FilePlace& path, const ModelHead& head, const Slices& parameters, const Slices& buffers,
                         const ModelArrays<T>& arrays);

// Fails with invalid_input, naming the file `name` and the entry, when this is not a model file or a damaged one, with
// unsupported when it is of another version.
Result<ModelHead> model_head(const TensorFile& file, const std::filesystem::path& name);

template <class T>
struct LoadedArrays {
  Buffer<T> parameters, buffers;  // padding and derived slices are zero
};

// Shapes are compared before memory is allocated. Fails with invalid_input, naming file and tensor, when one is
// missing, left over, of another shape or type, or has a number that is not finite.
template <class T>
Result<LoadedArrays<T>> read_model_arrays(const TensorFile& file, const std::filesystem::path& name,
                                          const Slices& parameters, const Slices& buffers);

}  // namespace gradloom
