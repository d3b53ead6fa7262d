// TU data: a folder of files. A line of the input that is "%NAME" begins the file S_NAME.txt.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gradloom/data/graph_source.h"
#include "tests/fuzz/fuzz.h"

namespace fs = std::filesystem;

namespace {

// In memory, if the system has such a folder; one for each process.
const fs::path& folder() {
  static const struct Made {
    Made()
        : path((fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) /
               ("gradloom-fuzz-tu-" + std::to_string(::getpid()))) {
      fs::create_directories(path);
    }
    ~Made() { fs::remove_all(path); }
    fs::path path;
  } made;
  return made.path;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kNames[] = {"A",           "graph_indicator", "graph_labels",    "node_labels",
                                         "edge_labels", "node_attributes", "edge_attributes", "graph_attributes"};
  for (const std::string_view name : kNames) fs::remove(folder() / ("S_" + std::string(name) + ".txt"));
  std::string_view text = gradloom::fuzz::text_of(data, size);
  std::ofstream file;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with('%')) {
      for (const std::string_view name : kNames)
        if (line.substr(1) == name) {
          file.close();
          file.open(folder() / ("S_" + std::string(name) + ".txt"), std::ios::trunc);
        }
    } else if (file.is_open()) {
      file << line << '\n';
    }
  }
  file.close();
  (void)gradloom::load_graphs({.path = folder(), .format = gradloom::GraphFormat::tu, .max_bytes = 1 << 20});
  return 0;
}
