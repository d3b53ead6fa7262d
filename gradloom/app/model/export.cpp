#include "gradloom/app/model/export.h"

#include <fmt/format.h>

#include "gradloom/app/families/families.h"
#include "gradloom/app/predict/predict.h"
#include "gradloom/app/recipe.h"
#include "gradloom/app/run/open.h"
#include "gradloom/io/file.h"

namespace gradloom::app {
namespace {

std::string family_of_model(const std::filesystem::path& model) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(model, ignored)) {
    if (model.extension() != ".safetensors") return "";
    const auto file = read_safetensors(model);
    if (!file) return "";
    const auto head = model_head(*file, model);
    return head ? head->family : "";
  }
  const auto text = read_file(model / "recipe.toml", kMaxRecipeBytes);
  return text ? peek_string(*text, {}, "family", recipe_families().front()) : "";
}

}  // namespace

bool has_exported_network(const std::filesystem::path& model) {
  const std::string name = family_of_model(model);
  for (const AppFamily& family : families())
    if (family.name == name) return family.export_network != nullptr;
  return false;
}

Result<ExportedNetwork> export_network(const std::filesystem::path& model, const RunOptions& run,
                                       const ExportNetworkOptions& options) {
  if (auto r = refuse_overwriting_inputs(options.out, model, run.data_root); !r) return r.error();
  if (options.out.empty() && options.format != NetworkFormat::c)
    return Error{ErrorCode::invalid_input, fmt::format("the format {} is binary; name a file to write",
                                                       name_of(kNetworkFormats, options.format))};
  return guarded([&]() -> Result<ExportedNetwork> {
    auto opened = open_model_or_run(model, run, PartOfRun::model_file);
    if (!opened) return opened.error();
    const AppFamily& family = find_family(opened->session->options().family);
    if (!family.export_network)
      return Error{ErrorCode::unsupported,
                   fmt::format("only spline networks can be exported in this format; {} is of family \"{}\"",
                               model.string(), family.name)};
    auto made = family.export_network(*opened->session, options);
    if (!made) return made;
    made->model = model.string();
    made->warnings = std::move(opened->warnings);
    return made;
  });
}

}  // namespace gradloom::app
