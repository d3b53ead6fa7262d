// The same symbols for a build without Vulkan: nothing can be opened, so nothing else is ever called.
#include "gradloom/exec/vulkan/device.h"

namespace gradloom::vulkan {

namespace {
const Error kMissing{ErrorCode::missing_device, "this build has no GPU backend, only the CPU"};
[[noreturn]] void refuse() { throw Exception(kMissing); }
}  // namespace

Result<std::vector<DeviceInfo>> list_devices() { return kMissing; }

struct Device::Impl {};
struct DeviceBuffer::Impl {};
struct Commands::Impl {};

Result<std::unique_ptr<Device>> Device::open(const DeviceOptions& options) {
  return Error{kMissing.code, "there is no device '" + options.name + "': " + kMissing.message};
}
Device::Device(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Device::~Device() = default;
const DeviceInfo& Device::info() const { refuse(); }
const DeviceCounters& Device::counters() const { refuse(); }
DeviceBuffer Device::make_buffer(std::uint64_t, BufferUse) { refuse(); }
const Kernel& Device::kernel(const KernelSource&, std::span<const std::uint32_t>) { refuse(); }
void Device::require_range(std::uint64_t, const std::string&) const { refuse(); }
void Device::write(const DeviceBuffer&, std::uint64_t, std::span<const std::byte>) { refuse(); }
void Device::read(const DeviceBuffer&, std::uint64_t, std::span<std::byte>) { refuse(); }
void Device::zero(const DeviceBuffer&) { refuse(); }
std::uint32_t Device::group_row() const { refuse(); }

DeviceBuffer::DeviceBuffer() = default;
DeviceBuffer::DeviceBuffer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DeviceBuffer::DeviceBuffer(DeviceBuffer&&) noexcept = default;
DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&&) noexcept = default;
DeviceBuffer::~DeviceBuffer() = default;
std::uint64_t DeviceBuffer::bytes() const { return 0; }
std::byte* DeviceBuffer::host() const { return nullptr; }

Commands::Commands(Device&, Timestamps) { refuse(); }
Commands::Commands(Commands&&) noexcept = default;
Commands& Commands::operator=(Commands&&) noexcept = default;
Commands::~Commands() = default;
void Commands::copy(const DeviceBuffer&, std::uint64_t, const DeviceBuffer&, std::uint64_t, std::uint64_t) { refuse(); }
void Commands::fill_zero(const DeviceBuffer&, std::uint64_t, std::uint64_t) { refuse(); }
void Commands::dispatch(const Dispatch&) { refuse(); }
void Commands::barrier() { refuse(); }
void Commands::finish() { refuse(); }
void Commands::submit() { refuse(); }
void Commands::wait() { refuse(); }
std::vector<Commands::Time> Commands::times() { refuse(); }

}  // namespace gradloom::vulkan
