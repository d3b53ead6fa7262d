// A trained network for other programs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gradloom/app/run/run.h"
#include "gradloom/base/choice.h"
#include "gradloom/io/fields.h"

namespace gradloom::app {

enum class NetworkFormat { c, onnx, efficient_kan };
inline constexpr Choice<NetworkFormat> kNetworkFormats[] = {
    {NetworkFormat::c, "c", "a C header"},
    {NetworkFormat::onnx, "onnx", "ONNX"},
    {NetworkFormat::efficient_kan, "efficient-kan", "safetensors with the names of efficient-kan"},
};

struct ExportNetworkOptions {
  NetworkFormat format = NetworkFormat::c;
  std::filesystem::path out;     // empty: the text is in the result only, which C alone has
  std::string name = "network";  // of the function or graph
};

struct ExportedNetwork {
  std::string model, format, out;
  std::vector<std::size_t> widths;
  std::size_t parameters = 0;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> differences;  // what the format cannot say of this network
  std::vector<std::string> warnings;     // of opening a run
  GRADLOOM_FIELDS(model, format, out, widths, parameters, inputs, outputs, differences, warnings)

  std::string text;  // C
};

// Whether `model` is a run or model file of a family whose networks are exported. False where it is none or cannot be
// read.
bool has_exported_network(const std::filesystem::path& model);

// Of the folder of a run, or of a model file. Fails as predict() does, with unsupported for other families, io.
Result<ExportedNetwork> export_network(const std::filesystem::path& model, const RunOptions& run,
                                       const ExportNetworkOptions& options);

}  // namespace gradloom::app
