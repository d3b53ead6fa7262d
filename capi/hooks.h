// Callbacks of a call to its caller: progress, log and stop.
#pragma once

#include "capi/call.h"

namespace gradloom::capi {

class Hooks {
 public:
  // `given` may be null: no callbacks. Throws invalid_input when its stop flag is not open.
  explicit Hooks(const gradloom_hooks* given);
  // Whoever still has log() is no longer heard: the caller's functions are his for the time of the call.
  ~Hooks() { *listening_ = false; }
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

  bool wants_progress() const { return given_.progress != nullptr; }
  void tell(const nlohmann::json& line) const;
  LogCallback log() const;  // empty without a callback
  const std::shared_ptr<StopFlag>& stop() const { return stop_; }

 private:
  gradloom_hooks given_{};
  std::shared_ptr<StopFlag> stop_;
  std::shared_ptr<bool> listening_ = std::make_shared<bool>(true);
};

}  // namespace gradloom::capi
