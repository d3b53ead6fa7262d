// Errors: a code for programs, and a message for people.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace gradloom {

enum class ErrorCode {
  invalid_input,      // the caller's value, file or configuration is wrong
  not_found,          // a file, column, recipe or name does not exist
  io,                 // a file cannot be read or written (full disk, permissions)
  busy,               // another process uses the resource
  numeric,            // a value is not finite: training diverged
  unsupported,        // a valid request that this build or device does not support
  missing_device,     // no such compute device
  unsuitable_device,  // its limits or features are not sufficient
  device_memory,      // its memory is full
  device_lost,        // it does not respond any more
  out_of_memory,      // of the host
};

struct Error {
  ErrorCode code = ErrorCode::invalid_input;
  std::string message;
};

// Thrown for a caller's mistake or a broken environment, before any work starts.
class Exception : public std::runtime_error {
 public:
  explicit Exception(Error error) : std::runtime_error(visible(std::move(error.message))), code_(error.code) {}
  Exception(ErrorCode code, std::string message) : Exception(Error{code, std::move(message)}) {}
  ErrorCode code() const { return code_; }
  Error error() const { return {code_, what()}; }

 private:
  // A message may quote a file. what() ends at a zero byte, and a terminal obeys other control characters.
  static std::string visible(std::string text) {
    for (char& c : text)
      if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') c = '?';
    return text;
  }

  ErrorCode code_;
};

[[noreturn]] inline void throw_invalid(std::string message) {
  throw Exception(ErrorCode::invalid_input, std::move(message));
}

}  // namespace gradloom
