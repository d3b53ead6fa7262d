// Device: a Vulkan device that is open for compute: memory, kernels, recorded commands. No Vulkan header is needed.
//
// Failures: a missing device or feature is a Result from open(); afterwards, calls throw Exception with
// device_memory, device_lost or unsuitable_device. Everything here is used by one thread at a time. Buffers and
// commands must not outlive their device.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "gradloom/exec/vulkan/info.h"

namespace gradloom::vulkan {

enum class Validation { off, on };  // on: core and synchronization checks of the validation layer

// A compute shader as it was built: storage buffers at bindings 0, 1, ..., push constants, entry point main.
struct KernelSource {
  std::string name;
  std::span<const std::uint32_t> spirv;
};

// What tests can make go wrong. Zero means: as it is.
struct Faults {
  std::uint64_t memory_bytes = 0;      // allocations beyond this many bytes in total fail as they do on a full device
  std::uint64_t max_buffer_range = 0;  // pretended limit
  std::uint32_t max_bindings = 0;      // pretended limit
  std::uint64_t lose_at_submit = 0;    // this submit (from 1) and all later ones report a lost device
  std::uint32_t drop_barrier = 0;      // this barrier (from 1) of every recording is left out
  bool as_discrete = false;            // a software device counts as a discrete one: kernels choose its tiles
  std::function<KernelSource(const KernelSource&)> replace;  // another shader in the place of each
  bool as_fused = false;  // fma() counts as rounded once: what `replace` gives has one of its own
};

struct DeviceOptions {
  std::string name = "gpu";  // as choose_device takes it
  // Of the kernels. None: fused where fma() of the device rounds once, which is tried, and the processor can do the
  // same; else split. Fused, where it does not, is refused as unsuitable_device.
  std::optional<Arithmetic> arithmetic;
  Validation validation = Validation::off;
  std::function<void(const std::string&)> on_message;  // of the validation layer; may be empty
  Faults faults;
};

// What was done since the device was opened.
struct DeviceCounters {
  std::uint64_t submits = 0, dispatches = 0;
  std::uint64_t bytes_up = 0, bytes_down = 0;  // between host and device memory
  std::uint64_t memory_bytes = 0;              // taken at present
};

enum class BufferUse {
  device,    // only shaders and copies touch it
  upload,    // written by the host, copied from
  download,  // copied to, read by the host
};

// A range of memory on the device; movable, owns its memory. An empty one has 0 bytes.
class DeviceBuffer {
 public:
  struct Impl;
  DeviceBuffer();
  explicit DeviceBuffer(std::unique_ptr<Impl> impl);
  DeviceBuffer(DeviceBuffer&&) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&&) noexcept;
  ~DeviceBuffer();

  std::uint64_t bytes() const;
  // Host memory of an upload or download buffer; null for device memory. Stays mapped.
  std::byte* host() const;
  const Impl* impl() const { return impl_.get(); }

 private:
  std::unique_ptr<Impl> impl_;
};

struct Kernel;  // a pipeline; belongs to the device

// Bytes [offset, offset + bytes) of a buffer; offset is a multiple of 256.
struct Binding {
  const DeviceBuffer* buffer = nullptr;
  std::uint64_t offset = 0, bytes = 0;
};

struct Dispatch {
  const Kernel* kernel = nullptr;
  std::span<const Binding> bindings;
  std::span<const std::byte> push;
  std::uint64_t groups = 1;  // laid out in two dimensions where one is too short: see group_row()
  std::string label;         // in profiles
};

enum class Timestamps { off, on };

class Device {
 public:
  struct Impl;
  static Result<std::unique_ptr<Device>> open(const DeviceOptions& options);
  explicit Device(std::unique_ptr<Impl> impl);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceInfo& info() const;
  const DeviceCounters& counters() const;

  // Contents are undefined. Throws device_memory with what was asked for and what is taken, unsuitable_device when the
  // device cannot hold such a buffer.
  DeviceBuffer make_buffer(std::uint64_t bytes, BufferUse use);

  // The pipeline of a shader with these specialization constants (constant_id 0, 1, ...) and the device's arithmetic
  // (kFusedConstant of spirv.h); compiled when first asked for. Throws unsuitable_device when the shader needs more
  // bindings or push constants than the device has.
  const Kernel& kernel(const KernelSource& source, std::span<const std::uint32_t> constants);

  // Throws unsuitable_device, naming `what`, when one binding of that size would be too large.
  void require_range(std::uint64_t bytes, const std::string& what) const;

  // Copies that wait until they are done: for set-up, checkpoints and tests, not for steps.
  void write(const DeviceBuffer& to, std::uint64_t offset, std::span<const std::byte> from);
  void read(const DeviceBuffer& from, std::uint64_t offset, std::span<std::byte> to);
  void zero(const DeviceBuffer& buffer);

  // How many groups make a row of a dispatch: group = y * row + x.
  std::uint32_t group_row() const;

  Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// Recorded once, submitted as often as needed; at most one submit of it is under way. Commands run in the order in
// which they were submitted, but overlap within one recording unless a barrier stands between.
class Commands {
 public:
  struct Impl;
  explicit Commands(Device& device, Timestamps timestamps = Timestamps::off);
  Commands(Commands&&) noexcept;
  Commands& operator=(Commands&&) noexcept;
  ~Commands();  // waits

  void copy(const DeviceBuffer& from, std::uint64_t from_offset, const DeviceBuffer& to, std::uint64_t to_offset,
            std::uint64_t bytes);
  void fill_zero(const DeviceBuffer& buffer, std::uint64_t offset, std::uint64_t bytes);
  void dispatch(const Dispatch& what);
  // What comes later sees what came before.
  void barrier();
  void finish();  // ends the recording

  void submit();  // waits for the submit before it first
  void wait();    // until the last submit is done; throws device_lost

  struct Time {
    std::string label;
    double microseconds;
  };
  // Of each dispatch in the last submit that was waited for; empty without timestamps.
  std::vector<Time> times();

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradloom::vulkan
