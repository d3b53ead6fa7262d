// The name of a file or folder that options ask to read.
#pragma once

#include <string>

namespace gradloom {

// A type of its own, so that what reads files can tell names of files from other text, and nothing that is read is
// missed where files are to be protected.
struct FileName {
  std::string text;
  bool empty() const { return text.empty(); }
  friend bool operator==(const FileName&, const FileName&) = default;
};

}  // namespace gradloom
