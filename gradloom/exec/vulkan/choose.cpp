#include <algorithm>
#include <cctype>
#include <charconv>

#include "gradloom/exec/vulkan/info.h"

namespace gradloom::vulkan {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::string names_of(const std::vector<DeviceInfo>& devices) {
  std::string all;
  for (const DeviceInfo& d : devices) all += (all.empty() ? "" : ", ") + std::to_string(d.number) + " (" + d.name + ")";
  return all;
}

}  // namespace

std::string_view name_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::discrete:
      return "discrete gpu";
    case DeviceKind::integrated:
      return "integrated gpu";
    case DeviceKind::virtual_gpu:
      return "virtual gpu";
    case DeviceKind::software:
      return "software";
    case DeviceKind::other:
      break;
  }
  return "other";
}

Result<DeviceInfo> choose_device(const std::vector<DeviceInfo>& devices, std::string_view wish) {
  if (devices.empty())
    return Error{ErrorCode::missing_device,
                 "there is no device '" + std::string(wish) + "': no Vulkan driver offers one"};
  if (wish == "gpu")
    return *std::min_element(devices.begin(), devices.end(), [](const DeviceInfo& a, const DeviceInfo& b) {
      return a.kind != b.kind ? a.kind < b.kind : a.memory_bytes > b.memory_bytes;
    });
  unsigned number = 0;
  const auto [end, problem] = std::from_chars(wish.data(), wish.data() + wish.size(), number);
  const bool is_number = problem == std::errc() && end == wish.data() + wish.size();
  for (const DeviceInfo& d : devices)
    if (is_number ? d.number == number : !wish.empty() && lower(d.name).find(lower(wish)) != std::string::npos)
      return d;
  return Error{ErrorCode::missing_device,
               "there is no device '" + std::string(wish) + "'; there is " + names_of(devices)};
}

}  // namespace gradloom::vulkan
