// Writes messages in the binary format of Protocol Buffers, field by field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gradloom {

class ProtobufMessage {
 public:
  ProtobufMessage& number(unsigned field, std::int64_t value) {
    tag(field, 0);
    return varint(static_cast<std::uint64_t>(value));
  }
  ProtobufMessage& bytes(unsigned field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    text_ += value;
    return *this;
  }
  ProtobufMessage& message(unsigned field, const ProtobufMessage& value) { return bytes(field, value.text_); }

  const std::string& text() const { return text_; }

 private:
  void tag(unsigned field, unsigned wire) { varint(field << 3 | wire); }
  ProtobufMessage& varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
    return *this;
  }

  std::string text_;
};

}  // namespace gradloom
