#include "capi/call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "gradloom/exec/arithmetic_names.h"
#include "gradloom/exec/vulkan/device.h"
#include "gradloom/io/json.h"

namespace gradloom::capi {
namespace {

thread_local std::string last_error;

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_input:
      return GRADLOOM_INVALID_INPUT;
    case ErrorCode::not_found:
      return GRADLOOM_NOT_FOUND;
    case ErrorCode::io:
      return GRADLOOM_IO;
    case ErrorCode::busy:
      return GRADLOOM_BUSY;
    case ErrorCode::numeric:
      return GRADLOOM_NUMERIC;
    case ErrorCode::unsupported:
      return GRADLOOM_UNSUPPORTED;
    case ErrorCode::missing_device:
    case ErrorCode::unsuitable_device:
    case ErrorCode::device_lost:
      return GRADLOOM_DEVICE;
    case ErrorCode::device_memory:
    case ErrorCode::out_of_memory:
      return GRADLOOM_OUT_OF_MEMORY;
  }
  return GRADLOOM_INTERNAL;
}

int remember(int status, const char* message) noexcept {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();
  }
  return status;
}

}  // namespace

int failed() noexcept {
  try {
    throw;
  } catch (const Exception& e) {
    return remember(status_of(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    return remember(GRADLOOM_OUT_OF_MEMORY, "not enough memory");
  } catch (const nlohmann::json::exception& e) {
    return remember(GRADLOOM_INVALID_INPUT, e.what());
  } catch (const std::exception& e) {
    return remember(GRADLOOM_INTERNAL, e.what());
  } catch (...) {
    return remember(GRADLOOM_INTERNAL, "internal error: an unknown exception was thrown");
  }
}

void* copy_bytes(const void* bytes, std::size_t size) {
  void* copy = std::malloc(std::max<std::size_t>(size, 1));
  if (!copy) throw std::bad_alloc();
  if (size > 0) std::memcpy(copy, bytes, size);
  return copy;
}

char* copy_text(std::string_view text) {
  const std::string ended(text);
  return static_cast<char*>(copy_bytes(ended.c_str(), ended.size() + 1));
}

nlohmann::json parse_settings(const char* text) {
  if (!text || !*text) return nlohmann::json::object();
  nlohmann::json object = parse_json(text, "settings").or_throw();
  if (!object.is_object()) throw_invalid("settings: this is not a JSON object");
  return object;
}

nlohmann::json value_json(const ConfigValue& value) {
  return std::visit(
      [](const auto& v) -> nlohmann::json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>)
          return nullptr;
        else
          return v;
      },
      value);
}

const nlohmann::json& Settings::json(const char* key) {
  static const nlohmann::json none;
  known_.emplace_back(key);
  const auto found = object_.find(key);
  return found == object_.end() ? none : *found;
}

std::vector<std::string> Settings::names(const char* key) {
  const nlohmann::json& list = json(key);
  if (list.is_null()) return {};
  const bool texts =
      list.is_array() && std::all_of(list.begin(), list.end(), [](const auto& name) { return name.is_string(); });
  if (!texts) throw_invalid(fmt::format("settings: '{}' is not a list of texts", key));
  return list.get<std::vector<std::string>>();
}

void Settings::check_type(const nlohmann::json& value, const char* key, const char* type) {
  const std::string_view asked = type;
  const bool right = asked == "true or false"             ? value.is_boolean()
                     : asked == "a text"                  ? value.is_string()
                     : asked == "a number"                ? value.is_number()
                     : asked == "an integer of 0 or more" ? value.is_number_unsigned()
                                                          : value.is_number_integer();
  if (!right) throw_invalid(fmt::format("settings: '{}' is {}, but must be {}", key, value.dump().substr(0, 80), type));
}

unsigned Settings::threads() {
  constexpr std::uint64_t kMostThreads = 4096;
  const std::uint64_t asked = value("threads", std::uint64_t{0});
  if (asked > kMostThreads)
    throw_invalid(fmt::format("settings: 'threads' is {}, but must be {} or less", asked, kMostThreads));
  return static_cast<unsigned>(asked);
}

SessionOptions Settings::session() {
  SessionOptions options;
  options.exec.threads = threads();
  if (const std::string name = value("arithmetic", std::string("auto")); name != "auto") {
    options.arithmetic = value_of<Arithmetic>(kArithmetics, name, "arithmetic").or_throw();
    options.exec.variant.arithmetic = *options.arithmetic;
  }
  const std::string device = value("device", std::string("cpu"));
  if (device == "cpu") return options;
  // "auto" takes a GPU where there is one; a software device is slower than the cpu itself.
  auto opened = vulkan::Device::open({.name = device == "auto" ? "gpu" : device, .arithmetic = options.arithmetic});
  if (device == "auto") {
    options.device_policy = DevicePolicy::preferred;
    if (opened && (*opened)->info().kind != vulkan::DeviceKind::software) options.device = std::move(*opened);
  } else {
    options.device = std::move(opened).or_throw();
  }
  return options;
}

void Settings::done() const {
  for (const auto& [key, value] : object_.items())
    if (std::find(known_.begin(), known_.end(), key) == known_.end())
      throw_invalid(
          fmt::format("settings: the key '{}' is not known here; the keys are {}", key, fmt::join(known_, ", ")));
}

}  // namespace gradloom::capi

const char* gradloom_version(void) { return GRADLOOM_VERSION; }
int gradloom_abi_version(void) { return GRADLOOM_ABI_VERSION; }
const char* gradloom_last_error(void) { return gradloom::capi::last_error.c_str(); }
void gradloom_free(void* memory) { std::free(memory); }

int gradloom_close(gradloom_handle handle) {
  return gradloom::capi::call([&] { gradloom::capi::close_object(handle); });
}
