// A Vulkan device with core and synchronization validation on: a message of the layer fails the test that caused it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gradloom/exec/vulkan/device.h"

namespace gradloom::test {

struct Messages {
  std::mutex mutex;
  std::vector<std::string> all;
  void add(const std::string& message) {
    const std::lock_guard lock(mutex);
    all.push_back(message);
  }
};

// Tests skip only where no Vulkan device exists at all.
class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto devices = vulkan::list_devices();
    if (!devices || devices->empty()) GTEST_SKIP() << (devices ? "there is no Vulkan device" : devices.error().message);
  }
  void TearDown() override {
    for (const std::string& message : messages_.all) ADD_FAILURE() << "validation: " << message;
  }

  // One device for all tests that need nothing special: pipelines are compiled once.
  vulkan::Device& device() {
    struct Shared {
      Messages* to = nullptr;
      std::unique_ptr<vulkan::Device> device;
    };
    static Shared shared;
    shared.to = &messages_;
    if (!shared.device)
      shared.device = vulkan::Device::open({.name = "gpu",
                                            .validation = vulkan::Validation::on,
                                            .on_message = [](const std::string& m) { shared.to->add(m); },
                                            .faults = {}})
                          .or_throw();
    return *shared.device;
  }

  std::unique_ptr<vulkan::Device> own_device(const vulkan::Faults& faults) {
    return vulkan::Device::open({.name = "gpu",
                                 .validation = vulkan::Validation::on,
                                 .on_message = [this](const std::string& m) { messages_.add(m); },
                                 .faults = faults})
        .or_throw();
  }

  Messages messages_;
};

}  // namespace gradloom::test
