#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "cli/commands.h"
#include "cli/options.h"
#include "gradloom/exec/arithmetic_names.h"
#include "gradloom/exec/vulkan/device.h"
#include "gradloom/kernels/full_vectors.h"
#include "gradloom/kernels/simd_targets.h"

namespace gradloom::cli {
namespace {

nlohmann::json controls_json(const vulkan::FloatControls& c) {
  return {{"round_to_nearest", c.round_to_nearest},
          {"flush_subnormals", c.flush_subnormals},
          {"keep_subnormals", c.keep_subnormals},
          {"keep_inf_nan", c.keep_inf_nan}};
}

nlohmann::json device_json(const vulkan::DeviceInfo& d) {
  return {{"name", d.name},
          {"number", d.number},
          {"kind", vulkan::name_of(d.kind)},
          {"driver", d.driver},
          {"api", d.api},
          {"memory_bytes", d.memory_bytes},
          {"max_allocation_bytes", d.max_allocation},
          {"max_buffer_range_bytes", d.max_buffer_range},
          {"max_groups", d.max_groups},
          {"max_group_size", d.max_group_size},
          {"max_bindings", d.max_bindings},
          {"shared_bytes", d.shared_bytes},
          {"subgroup", d.subgroup},
          {"float64", d.float64},
          {"timestamps", d.timestamps},
          {"float32_controls", controls_json(d.controls32)},
          {"float64_controls", controls_json(d.controls64)}};
}

// The arithmetic of a device shows when it is opened; one that cannot be has none.
std::optional<Arithmetic> arithmetic_of(const vulkan::DeviceInfo& info, std::string& why) {
  const auto device = vulkan::Device::open({.name = std::to_string(info.number)});
  if (device) return (*device)->info().arithmetic;
  why = device.error().message;
  return std::nullopt;
}

std::string controls_text(const vulkan::FloatControls& c) {
  std::vector<std::string_view> words;
  if (c.round_to_nearest) words.push_back("rounds to nearest");
  if (c.flush_subnormals) words.push_back("can flush subnormals");
  if (c.keep_subnormals) words.push_back("can keep subnormals");
  if (c.keep_inf_nan) words.push_back("keeps infinities and NaN");
  return words.empty() ? "no property declared" : fmt::format("{}", fmt::join(words, ", "));
}

void print_device(const Output& out, const vulkan::DeviceInfo& d, const std::string& arithmetic) {
  constexpr double kMiB = 1 << 20;
  out.print(fmt::format("{}\n", out.paint(Paint::bold, fmt::format("{} {}", d.number, d.name))));
  out.print_rows(
      {{"kind", fmt::format("{}, Vulkan {}, {}", vulkan::name_of(d.kind), d.api, d.driver)},
       {"memory", fmt::format("{:.0f} MiB, {:.0f} MiB at once, {:.0f} MiB in a shader's view",
                              static_cast<double>(d.memory_bytes) / kMiB, static_cast<double>(d.max_allocation) / kMiB,
                              static_cast<double>(d.max_buffer_range) / kMiB)},
       {"groups", fmt::format("{} invocations, {} KiB shared, subgroups of {}", d.max_group_size, d.shared_bytes / 1024,
                              d.subgroup)},
       {"float32", controls_text(d.controls32)},
       {"float64", d.float64 ? controls_text(d.controls64) : std::string("none")},
       {"arithmetic", arithmetic}});
}

int devices(const Output& out) {
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  const std::vector<std::string> targets = kernels::simd_targets();
  std::vector<std::string_view> arithmetics;  // the default first
  for (const Arithmetic each : available_arithmetics()) arithmetics.push_back(name_of(kArithmetics, each));
  out.print(fmt::format("{}\n", out.paint(Paint::bold, "cpu")));
  out.print_rows({{"threads", fmt::format("{}", threads)},
                  {"simd", fmt::format("{} (each kernel uses the first that it has)", fmt::join(targets, ", "))},
                  {"vectors", kernels::full_vectors() ? "512 bits at full rate" : "256 bits or fewer at full rate"},
                  {"arithmetic", fmt::format("{} (--arithmetic chooses)", fmt::join(arithmetics, ", "))}});
  nlohmann::json all = {{{"name", "cpu"},
                         {"kind", "cpu"},
                         {"threads", threads},
                         {"simd", targets},
                         {"full_vectors", kernels::full_vectors()},
                         {"arithmetic", arithmetics}}};
  const auto found = vulkan::list_devices();
  if (!found)
    out.print("This build has no GPU backend.\n");
  else if (found->empty())
    out.print("No Vulkan driver offers a device.\n");
  else
    for (const vulkan::DeviceInfo& info : *found) {
      std::string text;
      nlohmann::json device = device_json(info);
      const auto arithmetic = arithmetic_of(info, text);
      if (arithmetic) text = gradloom::name_of(kArithmetics, *arithmetic);
      device["arithmetic"] = arithmetic ? nlohmann::json(text) : nlohmann::json(nullptr);
      print_device(out, info, text);
      all.push_back(std::move(device));
    }
  out.result({{"devices", all}, {"gpu_backend", found ? nlohmann::json("vulkan") : nlohmann::json(nullptr)}});
  return kDone;
}

}  // namespace

void add_devices_command(CLI::App& program, Choice& choice) {
  CLI::App* command = program.add_subcommand("devices", "List the processor and the GPUs that models can run on");
  add_output_options(*command, choice.flags);
  command->footer("Example:\n  gradloom devices --json");
  command->callback([&choice] { choice.run = devices; });
}

}  // namespace gradloom::cli
