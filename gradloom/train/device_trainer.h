// DeviceTrainer: a Trainer whose parameters, gradients, optimizer state and activations live on a Vulkan device.
//
// A step is one submit of a command buffer that was recorded once for its size of batch: the batch goes in, and nothing
// comes out. Losses gather on the device and are read at the end of an epoch, or when the state is asked for. The state
// on the host is that of the last sync(); hooks that read it call sync() first. A loss that is not finite stops all
// further updates on the device, so that the parameters stay those before the failing step; the next sync() throws
// Exception{numeric}.
#pragma once

#include <algorithm>
#include <map>
#include <stdexcept>

#include "gradloom/kernels/optimizer/device.h"
#include "gradloom/train/device_loss.h"
#include "gradloom/train/trainer.h"

namespace gradloom {

// M is a DeviceModel, D a dataset of RowBatch. SGD, Adam and AdamW; L-BFGS is refused with unsupported.
template <class M, class D>
requires DeviceModel<M>
class DeviceTrainer {
 public:
  using T = typename M::Scalar;

  // Fails as Trainer does, and with unsuitable_device or device_memory when the device cannot hold the model and its
  // batches.
  DeviceTrainer(const Exec& ex, const M& model, const D& data, TrainOptions options, TrainState<T>& state,
                vulkan::Timestamps timestamps = vulkan::Timestamps::off);
  ~DeviceTrainer();

  StageEnd run(const TrainHooks& hooks = {});
  bool step();
  // Brings the host's state up to date: parameters, optimizer state, half-accumulated gradient, losses of this epoch.
  void sync();
  // After a change of parameters or buffers on the host: they go to the device, and the optimizer starts afresh.
  void reset_optimizer();

  std::size_t batches_per_epoch() const { return pieces_; }
  // Milliseconds of each kernel so far, by label; empty without timestamps.
  const std::map<std::string, double>& kernel_times() const { return times_; }

 private:
  // A recorded step with the host memory that its batch is read from. Two of a kind, so that the host fills one while
  // the device works on the other.
  struct Recorded {
    vulkan::DeviceBuffer staging, samples;
    vulkan::DeviceBuffer norm;  // of the gradient, for clipping
    BatchLayout layout;
    vulkan::Commands commands;
    Recorded(vulkan::Device& device, vulkan::Timestamps timestamps) : commands(device, timestamps) {}
  };
  struct Key {
    std::size_t batch;
    GradientMode mode;
    bool update;
    unsigned turn;
    auto operator<=>(const Key&) const = default;
  };
  struct LossEntry {
    std::size_t batch;
    double normaliser;  // of the sum of terms
    double share;       // of the value in the epoch's loss
  };
  class Update;

  Recorded& recorded(const Key& key, const RowBatch<T>& batch);
  void record_step(Recorded& to, const Key& key);
  void fill_head(std::byte* head, const RowBatch<T>& batch, const LossOptions& loss, LossEntry& entry) const;
  void upload();
  void read_losses();
  void wait_all();
  EpochReport finish_epoch(const TrainHooks& hooks);
  double learning_rate() const;

  vulkan::Binding range(const vulkan::DeviceBuffer& buffer, std::size_t begin, std::size_t end) const {
    return {&buffer, begin * sizeof(T), (end - begin) * sizeof(T)};
  }

  const Exec& ex_;
  const M& model_;
  const D& data_;
  TrainOptions options_;
  TrainState<T>& state_;
  vulkan::Device& device_;
  vulkan::Timestamps timestamps_;
  std::size_t batch_, piece_;  // samples of a batch, and those computed at once
  std::size_t pieces_per_batch_, pieces_, steps_per_epoch_;
  std::vector<std::uint8_t> frozen_, decays_;  // one flag per slice; no decays_: all decay alike
  typename D::Storage storage_;
  std::vector<std::uint32_t> order_;
  std::uint64_t order_epoch_ = std::numeric_limits<std::uint64_t>::max();
  vulkan::DeviceBuffer parameters_, buffers_, gradient_, status_, losses_;
  std::vector<vulkan::DeviceBuffer> optimizer_;
  DeviceTape tape_;
  std::map<Key, std::unique_ptr<Recorded>> steps_;
  std::vector<LossEntry> pending_;  // losses on the device that the host has not seen
  std::size_t slots_ = 0, loss_stride_ = 0;
  unsigned turn_ = 0;
  std::map<std::string, double> times_;
};

}  // namespace gradloom

#include "gradloom/train/device_trainer.inc"
