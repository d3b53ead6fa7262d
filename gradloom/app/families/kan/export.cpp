#include "gradloom/app/families/kan/export.h"

#include "gradloom/app/families/rows.h"
#include "gradloom/io/file.h"
#include "gradloom/models/kan/export.h"
#include "gradloom/session/families/kan/family.h"
#include "gradloom/session/typed_session.h"

namespace gradloom::app {
namespace {

template <class T>
Result<void> write_efficient(const kan::EfficientKan<T>& made, const std::filesystem::path& out) {
  std::vector<TensorView> views;
  for (const auto& t : made.tensors) views.push_back(tensor_view<T>(t.name, t.values, t.shape));
  return write_safetensors(out, views, made.metadata);
}

template <class T>
Result<ExportedNetwork> export_typed(const TypedSession<KanFamily<T>>& session, const ExportNetworkOptions& o) {
  const KanFamily<T>& family = session.family();
  const ModelDescription description = family.describe();
  const kan::Network<T> network = session.model();
  const ModelArrays<T> arrays = session.result_arrays();
  kan::ExportHead head;
  head.name = o.name;
  head.features = description.features;
  head.outputs = description.classes.empty() ? description.targets : description.classes;
  if (head.outputs.size() != network.output_width()) head.outputs = {description.classes.back()};
  head.input_centre = family.centres().x, head.output_centre = family.centres().target;
  head.classes = family.options().task == Task::classification;

  ExportedNetwork result;
  result.format = name_of(kNetworkFormats, o.format);
  result.widths = network.options().widths;
  result.parameters = network.parameters().logical_size();
  result.inputs = head.features, result.outputs = head.outputs;
  Result<void> written;
  switch (o.format) {
    case NetworkFormat::c:
      result.text = kan::to_c(network, arrays, head, session.arithmetic());
      if (!o.out.empty()) written = write_file_atomic(o.out, result.text);
      break;
    case NetworkFormat::onnx: {
      const auto bytes = kan::to_onnx(network, arrays, head);
      if (!bytes) return bytes.error();
      written = write_file_atomic(o.out, *bytes);
      break;
    }
    case NetworkFormat::efficient_kan: {
      const kan::EfficientKan<T> made = kan::to_efficient_kan(network, arrays, head);
      result.differences = made.differences;
      written = write_efficient(made, o.out);
      break;
    }
  }
  if (!written) return written.error();
  result.out = o.out.string();
  return result;
}

}  // namespace

Result<ExportedNetwork> export_kan(Session& session, const ExportNetworkOptions& options) {
  return with_typed<KanFamily>(session, [&](const auto& typed) { return export_typed(typed, options); });
}

}  // namespace gradloom::app
