// Model files: the metadata, and what families make of them. The checksum is left to others.
#include "gradloom/base/error.h"
#include "gradloom/session/families/graph/layout.h"
#include "gradloom/session/rows.h"
#include "tests/fuzz/fuzz.h"

using namespace gradloom;

namespace {

template <class Restore>
void restored(Restore restore) try {
  (void)restore();
} catch (const Exception&) {
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = parse_safetensors(std::as_bytes(std::span(data, size)), "input");
  if (!file) return 0;
  const auto head = model_head(*file, "input");
  if (!head) return 0;
  RowFamilyOptions rows;
  for (const Task task : {Task::regression, Task::classification}) {
    rows.task = task;
    restored([&] { return restore_rows(head->description, rows); });
  }
  for (const GraphTask task : {GraphTask::node, GraphTask::graph})
    restored([&] { return describe_graphs(restore_layout(head->description, task)); });
  Slices parameters(sizeof(float)), buffers(sizeof(float));
  parameters.add("w", {2, 3}, 4);
  buffers.add("g", {2});
  (void)read_model_arrays<float>(*file, "input", parameters, buffers);
  return 0;
}
