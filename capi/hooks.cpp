#include "capi/hooks.h"

namespace gradloom::capi {

Hooks::Hooks(const gradloom_hooks* given) {
  if (given) given_ = *given;
  if (given_.stop == 0) {
    stop_ = std::make_shared<StopFlag>();
    return;
  }
  // Not Used: whoever stops must not wait for the call that is to be stopped.
  stop_ = std::dynamic_pointer_cast<StopFlag>(find_object(given_.stop, "hooks.stop", StopFlag::kName));
  if (!stop_) refuse_kind(given_.stop, "hooks.stop", StopFlag::kName);
}

void Hooks::tell(const nlohmann::json& line) const {
  if (given_.progress && given_.progress(given_.user, line.dump().c_str()) != 0) stop_->set = true;
}

LogCallback Hooks::log() const {
  if (!given_.log) return {};
  return [listener = given_, listening = listening_](LogLevel level, const std::string& text) {
    if (*listening) listener.log(listener.user, level == LogLevel::warning ? 1 : 0, text.c_str());
  };
}

}  // namespace gradloom::capi

int gradloom_stop_new(gradloom_handle* stop) {
  return gradloom::capi::call([&] {
    *gradloom::capi::given(stop, "stop") = gradloom::capi::open_object(std::make_shared<gradloom::capi::StopFlag>());
  });
}

int gradloom_stop(gradloom_handle stop) {
  using namespace gradloom::capi;
  return call([&] {
    const auto flag = std::dynamic_pointer_cast<StopFlag>(find_object(stop, "stop", StopFlag::kName));
    if (!flag) refuse_kind(stop, "stop", StopFlag::kName);
    flag->set = true;
  });
}
