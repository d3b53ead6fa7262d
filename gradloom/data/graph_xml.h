// A parsed XML document that knows the lines of its elements. External entities and document types are not followed.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "gradloom/base/error.h"

namespace gradloom {

class Xml {
 public:
  // `text` must outlive it.
  Xml(std::string_view text, std::string source) : text_(text), source_(std::move(source)) {
    const pugi::xml_parse_result parsed = document_.load_buffer(text.data(), text.size());
    if (!parsed)
      throw_invalid(fmt::format("{}:{}: this is not XML: {}; check tags and quotes", source_, line_of(parsed.offset),
                                parsed.description()));
  }
  const pugi::xml_document& document() const { return document_; }
  std::string place(const pugi::xml_node& at) const {
    return fmt::format("{}:{}", source_, line_of(at.offset_debug()));
  }
  [[noreturn]] void fail(const pugi::xml_node& at, const std::string& message) const {
    throw_invalid(fmt::format("{}: {}", place(at), message));
  }
  const std::string& source() const { return source_; }

 private:
  std::ptrdiff_t line_of(std::ptrdiff_t offset) const {
    const auto end = std::clamp<std::ptrdiff_t>(offset, 0, static_cast<std::ptrdiff_t>(text_.size()));
    return 1 + std::count(text_.begin(), text_.begin() + end, '\n');
  }
  std::string_view text_;
  std::string source_;
  pugi::xml_document document_;
};

inline std::string_view trimmed_xml(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

}  // namespace gradloom
