// What can go wrong, with a code that callers can act on and a message that people can act on.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace gradloom {

enum class ErrorCode {
  invalid_input,      // the caller's value, file or configuration is wrong
  not_found,          // a file, column, recipe or name does not exist
  io,                 // the system refused to read or write (full disk, permissions)
  busy,               // somebody else uses the resource
  numeric,            // the computation left the finite numbers
  unsupported,        // a valid request that this build or device cannot serve
  missing_device,     // no such compute device
  unsuitable_device,  // its limits or features are too small for what was asked
  device_memory,      // it has no room left
  device_lost,        // it stopped answering
  out_of_memory,      // of the host
};

struct Error {
  ErrorCode code = ErrorCode::invalid_input;
  std::string message;
};

// Thrown for a caller's mistake or a broken environment, before any work starts.
class Exception : public std::runtime_error {
 public:
  explicit Exception(Error error) : std::runtime_error(error.message), code_(error.code) {}
  Exception(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }
  Error error() const { return {code_, what()}; }

 private:
  ErrorCode code_;
};

}  // namespace gradloom
