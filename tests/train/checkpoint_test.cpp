#include "gradloom/train/checkpoint.h"

#include <gmock/gmock.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "gradloom/io/file.h"
#include "tests/support/mutate.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"
#include "tests/train/support.h"

namespace gradloom {
namespace {

using nlohmann::json;
using test::copy_of;
using test::same_bits;
using test::same_state;
using test::Scratch;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kPadding = 777.25;

kan::NetworkOptions options(kan::Knots knots = kan::Knots::free) {
  kan::NetworkOptions o;
  o.widths = {2, 3, 1};
  o.grid = 3;
  o.degree = 2;
  o.knots = knots;
  return o;
}

// Values that tell places apart, and padding that must not be seen again.
template <class T>
Buffer<T> filled(const Slices& slices, std::uint32_t which) {
  Buffer<T> values(slices.flat_size());
  for (T& v : values.span()) v = static_cast<T>(kPadding);
  const RandomStream random(which, RandomUse::user);
  for (const Slice& slice : slices)
    for_each_logical(slice,
                     [&](std::size_t i) { values[i] = static_cast<T>(random.normal(static_cast<std::uint32_t>(i))); });
  return values;
}

// A state with everything in it.
template <class T>
TrainState<T> full_state(const kan::Network<T>& network) {
  const Slices& p = network.parameters();
  TrainState<T> state = initial_state(network, 3);
  const Buffer<T> initial = copy_of(state.parameters);
  state.parameters = filled<T>(p, 1);
  state.gradient = filled<T>(p, 2);
  for (const char* name : {"first", "second"}) state.optimizer.push_back({name, filled<T>(p, name[0])});
  // A ring of four that has wrapped around: the oldest pair is in the third place.
  for (std::uint32_t i = 0; i < 4; ++i) {
    state.lbfgs.steps.push_back(filled<T>(p, 10 + i));
    state.lbfgs.differences.push_back(filled<T>(p, 20 + i));
  }
  state.lbfgs.first = 2;
  state.lbfgs.count = 4;
  state.best.emplace();
  state.best->loss = 0.1 + 0.2;
  state.best->run_epoch = 6;
  state.best->parameters = filled<T>(p, 3);
  state.position = {.stage = 1,
                    .epoch = 2,
                    .run_epoch = 7,
                    .batch = 3,
                    .step = 11,
                    .optimizer_age = 9,
                    .epoch_loss = 1.0 / 3.0,
                    .epoch_samples = 48,
                    .epochs_without_progress = 1,
                    .stage_done = true};
  return state;
}

template <class T>
void set_padding(const Slices& slices, Buffer<T>& values, T to) {
  std::vector<bool> logical(values.size(), false);
  for (const Slice& slice : slices) for_each_logical(slice, [&](std::size_t i) { logical[i] = true; });
  for (std::size_t i = 0; i < logical.size(); ++i)
    if (!logical[i]) values[i] = to;
}

template <class T>
void expect_round_trip() {
  const Scratch scratch;
  const auto path = scratch / "state";
  const kan::Network<T> network(options());
  const Slices& p = network.parameters();
  TrainState<T> state = full_state(network);
  ASSERT_TRUE(
      save_checkpoint<T>(path, p, network.buffers(), state, GradientIn::checkpoint, {.log_lines = 42, .data = 0xfeed})
          .ok());
  const TensorFile file = read_safetensors(path).or_throw();
  const CheckpointNotes notes = checkpoint_head(file, path).or_throw().notes;
  EXPECT_EQ(notes.log_lines, 42u);
  EXPECT_EQ(notes.data, 0xfeedu);
  TrainState<T> loaded = load_checkpoint<T>(file, path, p, network.buffers()).or_throw();
  ASSERT_TRUE(network.derive(loaded.buffers.span()).ok());

  // Padding comes back as zero.
  for (Buffer<T>* values : {&state.parameters, &state.gradient, &state.optimizer[0].values, &state.optimizer[1].values,
                            &state.best->parameters})
    set_padding<T>(p, *values, T(0));
  for (auto* list : {&state.lbfgs.steps, &state.lbfgs.differences})
    for (Buffer<T>& values : *list) set_padding<T>(p, values, T(0));
  EXPECT_TRUE(same_state(state, loaded));
  EXPECT_TRUE(same_bits(state.gradient, loaded.gradient));
  EXPECT_EQ(loaded.lbfgs.first, 0u);  // the ring is written oldest first

  // Equal states give equal files, wherever the ring begins.
  ASSERT_TRUE(save_checkpoint<T>(scratch / "again", p, network.buffers(), loaded, GradientIn::checkpoint,
                                 {.log_lines = 42, .data = 0xfeed})
                  .ok());
  EXPECT_EQ(read_file(path, 1 << 20).or_throw(), read_file(scratch / "again", 1 << 20).or_throw());
}

TEST(Checkpoint, RoundTripKeepsEverythingInFloat) { expect_round_trip<float>(); }
TEST(Checkpoint, RoundTripKeepsEverythingInDouble) { expect_round_trip<double>(); }

TEST(Checkpoint, AStateWithoutOptionalPartsComesBackWithoutThem) {
  const Scratch scratch;
  const kan::Network<float> network(options(kan::Knots::uniform));
  TrainState<float> state = initial_state(network, 3);
  state.best.emplace();  // asked for, but no epoch was finished yet
  ASSERT_TRUE(
      save_checkpoint<float>(scratch / "s", network.parameters(), network.buffers(), state, GradientIn::nowhere).ok());
  const TensorFile file = read_safetensors(scratch / "s").or_throw();
  TrainState<float> loaded =
      load_checkpoint<float>(file, scratch / "s", network.parameters(), network.buffers()).or_throw();
  ASSERT_TRUE(network.derive(loaded.buffers.span()).ok());
  EXPECT_TRUE(same_state(state, loaded));
  EXPECT_EQ(loaded.gradient.size(), 0u);
  ASSERT_TRUE(loaded.best.has_value());
  EXPECT_EQ(loaded.best->loss, std::numeric_limits<double>::infinity());
  EXPECT_EQ(loaded.best->parameters.size(), 0u);
}

TEST(Checkpoint, PaddingAndDerivedSlicesNeverReachTheFile) {
  const Scratch scratch;
  const kan::Network<double> network(options());
  TrainState<double> state = full_state(network);
  set_padding(network.buffers(), state.buffers, kPadding);
  ASSERT_TRUE(
      save_checkpoint<double>(scratch / "s", network.parameters(), network.buffers(), state, GradientIn::checkpoint)
          .ok());
  const TensorFile file = read_safetensors(scratch / "s").or_throw();
  std::size_t saved_buffers = 0;
  for (const Slice& slice : network.buffers()) {
    const Tensor* tensor = file.find("buffers/" + slice.name);
    EXPECT_EQ(tensor != nullptr, slice.saved) << slice.name;
    saved_buffers += slice.saved;
  }
  // parameters, gradient, best, two moments, four pairs
  EXPECT_EQ(file.tensors().size(), saved_buffers + network.parameters().size() * (5 + 8));
  for (const Tensor& tensor : file.tensors())
    for (double value : file.values<double>(tensor.name).or_throw()) ASSERT_NE(value, kPadding) << tensor.name;
}

// Changes to a good file, and what loading it then says.
class DamagedCheckpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    state_ = full_state(network_);
    ASSERT_TRUE(
        save_checkpoint<float>(path_, network_.parameters(), network_.buffers(), state_, GradientIn::checkpoint).ok());
  }

  std::string error_of(const std::filesystem::path& path) {
    auto file = read_safetensors(path);
    if (!file) return file.error().message;
    auto loaded = load_checkpoint<float>(*file, path, network_.parameters(), network_.buffers());
    return loaded ? "" : loaded.error().message;
  }

  // Writes the file again after `change(tensors, metadata)`.
  template <class F>
  std::string error_after(F&& change) {
    const TensorFile file = read_safetensors(path_).or_throw();
    std::vector<TensorView> tensors;
    for (const Tensor& t : file.tensors()) tensors.push_back({t.name, t.dtype, t.shape, t.bytes});
    Metadata metadata = file.metadata();
    change(tensors, metadata);
    const auto changed = scratch_ / "changed";
    write_safetensors(changed, tensors, metadata).or_throw();
    return error_of(changed);
  }
  template <class F>
  std::string error_after_state(F&& change) {
    return error_after([&](auto&, Metadata& metadata) {
      json state = json::parse(metadata.at("state"));
      change(state);
      metadata["state"] = state.dump();
    });
  }

  const Scratch scratch_;
  const std::filesystem::path path_ = scratch_ / "good";
  const kan::Network<float> network_{options()};
  TrainState<float> state_;
};

TEST_F(DamagedCheckpoint, IsFineUntilDamaged) {
  EXPECT_EQ(error_of(path_), "");
  EXPECT_EQ(error_after([](auto&, auto&) {}), "");
}

TEST_F(DamagedCheckpoint, OfAnotherScalarSaysBoth) {
  const kan::Network<double> network(options());
  const TensorFile file = read_safetensors(path_).or_throw();
  const auto loaded = load_checkpoint<double>(file, path_, network.parameters(), network.buffers());
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, AllOf(HasSubstr(path_.string()), HasSubstr("float32"), HasSubstr("float64")));
  // A wrong type of one tensor alone is found too.
  const std::string message = error_after([](std::vector<TensorView>& tensors, auto&) {
    for (TensorView& t : tensors)
      if (t.name == "best/layer0.bias") t.dtype = DType::u32;
  });
  EXPECT_THAT(message, AllOf(HasSubstr("best/layer0.bias"), HasSubstr("U32")));
}

TEST_F(DamagedCheckpoint, NamesTheTensorThatIsMissing) {
  for (const char* name : {"parameters/layer1.weight", "buffers/layer0.knots", "optimizer/second/layer0.bias",
                           "lbfgs/difference/3/layer1.bias", "gradient/layer0.weight", "best/layer1.bias"}) {
    const std::string message = error_after([&](std::vector<TensorView>& tensors, auto&) {
      std::erase_if(tensors, [&](auto& t) { return t.name == name; });
    });
    EXPECT_THAT(message, AllOf(HasSubstr(name), HasSubstr((scratch_ / "changed").string())));
  }
}

TEST_F(DamagedCheckpoint, NamesTheTensorOfAnotherShape) {
  const std::string message = error_after([](std::vector<TensorView>& tensors, auto&) {
    for (TensorView& t : tensors)
      if (t.name == "parameters/layer0.weight") std::swap(t.shape[0], t.shape[1]);
  });
  EXPECT_THAT(message, AllOf(HasSubstr("parameters/layer0.weight"), HasSubstr("shape")));
  // So does a checkpoint of another network.
  kan::NetworkOptions o = options();
  o.grid = 4;
  const kan::Network<float> finer(o);
  const TensorFile file = read_safetensors(path_).or_throw();
  const auto loaded = load_checkpoint<float>(file, path_, finer.parameters(), finer.buffers());
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, HasSubstr("layer0.weight"));
}

TEST_F(DamagedCheckpoint, OfAnotherVersionOrKindSaysSo) {
  EXPECT_THAT(error_after([](auto&, Metadata& m) { m["version"] = "3"; }), HasSubstr("format version 3"));
  EXPECT_THAT(error_after([](auto&, Metadata& m) { m["version"] = "\"1\""; }), HasSubstr("format version"));
  EXPECT_THAT(error_after([](auto&, Metadata& m) { m["format"] = "\"pt\""; }), HasSubstr("not a gradloom checkpoint"));
  EXPECT_THAT(error_after([](auto&, Metadata& m) { m["format"] = "pt"; }),
              AllOf(HasSubstr("'format'"), HasSubstr("this is not JSON")));
  EXPECT_THAT(error_after([](auto&, Metadata& m) { m.clear(); }), HasSubstr("not a gradloom checkpoint"));
  EXPECT_THAT(error_after([](auto&, Metadata& m) { m.erase("state"); }), HasSubstr("'state'"));
  std::ofstream(scratch_ / "text") << "This is not a checkpoint, nor anything like it.";
  EXPECT_THAT(error_of(scratch_ / "text"), HasSubstr("safetensors"));
  EXPECT_THAT(error_of(scratch_ / "nothing"), HasSubstr("nothing"));
  EXPECT_THAT(error_of(scratch_.path()), HasSubstr("not a regular file"));
}

TEST_F(DamagedCheckpoint, WithJsonThatIsTooDeepOrAmbiguousIsRefused) {
  const std::size_t levels = 1'000'000;
  const std::string deep = std::string(levels, '[') + std::string(levels, ']');
  for (const char* key : {"format", "version", "state"})
    EXPECT_THAT(error_after([&](auto&, Metadata& m) { m[key] = deep; }),
                AllOf(HasSubstr(key), HasSubstr("more than 64 levels"), HasSubstr("changed")));
  EXPECT_THAT(error_after([](auto&, Metadata& m) { m["state"].insert(1, "\"log_lines\":1,"); }),
              HasSubstr("the key 'log_lines' appears twice"));
}

TEST_F(DamagedCheckpoint, WithAWrongStateSaysThatItIsDamaged) {
  const auto damaged = AllOf(HasSubstr("incomplete or damaged"), HasSubstr("changed"));
  EXPECT_THAT(error_after_state([](json& s) { s.erase("position"); }), damaged);
  EXPECT_THAT(error_after_state([](json& s) { s["position"].erase("step"); }), damaged);
  EXPECT_THAT(error_after_state([](json& s) { s["position"]["epoch"] = "three"; }), damaged);
  EXPECT_THAT(error_after_state([](json& s) { s["position"]["epoch"] = -1; }), damaged);
  EXPECT_THAT(error_after_state([](json& s) { s["position"]["batch"] = 1.5; }), damaged);
  EXPECT_THAT(error_after_state([](json& s) { s["position"] = json::array(); }), damaged);
  EXPECT_THAT(error_after_state([](json& s) { s["lbfgs_pairs"] = 100'000; }), damaged);
  EXPECT_THAT(error_after_state([](json& s) { s["lbfgs_pairs"] = -1; }), damaged);
  EXPECT_THAT(error_after_state([](json& s) { s["best"] = 3; }), damaged);
  EXPECT_THAT(error_after_state([](json& s) { s["best"]["loss"] = nullptr; }), damaged);
  EXPECT_THAT(error_after_state([](json& s) { s["optimizer"] = {{"first", 1}}; }), damaged);
  EXPECT_THAT(error_after_state([](json& s) { s["optimizer"] = {"third"}; }), HasSubstr("optimizer/third/"));
  EXPECT_THAT(error_after_state([](json& s) { s = 7; }), damaged);
  // What the state does not speak of would be left out without a word.
  for (const json& nothing : {json(nullptr), json::object(), json::array()})
    EXPECT_THAT(error_after_state([&](json& s) { s["optimizer"] = nothing; }), damaged);
  EXPECT_THAT(error_after_state([](json& s) { s.erase("best"); }), damaged);
}

TEST_F(DamagedCheckpoint, NamesWhatIsNotFinite) {
  std::vector<float> bad(1000, 0.5f);
  bad[1] = std::numeric_limits<float>::quiet_NaN();
  for (const std::string where : {"parameters/", "best/", "optimizer/first/"}) {
    const std::string message = error_after([&](std::vector<TensorView>& tensors, auto&) {
      for (TensorView& t : tensors)
        if (t.name == where + "layer1.bias" || t.name == where + "layer0.bias")
          t.bytes = std::as_bytes(std::span(bad)).first(t.bytes.size());
    });
    EXPECT_THAT(message, AllOf(HasSubstr(where + "layer0.bias"), HasSubstr("not finite, at 1")));
  }
}

TEST_F(DamagedCheckpoint, ThatIsTruncatedIsRefusedAtAnyLength) {
  const std::string good = read_file(path_, 1 << 20).or_throw();
  for (std::size_t length = 0; length < good.size(); length += 1 + length / 16) {
    const auto file = parse_safetensors(std::as_bytes(std::span(good)).first(length), "some file");
    ASSERT_FALSE(file.ok()) << length << " of " << good.size() << " bytes";
    EXPECT_THAT(file.error().message, HasSubstr("some file"));
  }
}

// As a program wrote it that knew no checksums.
std::string without_checksum(std::string bytes) {
  bytes.replace(bytes.find("\"checksum\""), 10, "\"comments\"");
  bytes.replace(bytes.find("\"version\":\"2\""), 13, "\"version\":\"1\"");
  return bytes;
}

TEST_F(DamagedCheckpoint, ByAnyFlippedBitIsRefused) {
  const std::string good = read_file(path_, 1 << 20).or_throw();
  std::uint64_t header = 0;
  std::memcpy(&header, good.data(), 8);
  // Every bit of the metadata and of the length, some of the rest.
  const std::size_t metadata = good.find("}");
  for (std::size_t bit = 0; bit < 8 * good.size(); bit += bit < 8 * metadata ? 1 : 97) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    const auto file = parse_safetensors(std::as_bytes(std::span(bad)), "damaged");
    EXPECT_TRUE(!file || !checkpoint_head(*file, "damaged")) << "bit " << bit % 8 << " of byte " << bit / 8;
  }
}

TEST_F(DamagedCheckpoint, OfAnOlderVersionNeedsNoChecksum) {
  const std::string old = without_checksum(read_file(path_, 1 << 20).or_throw());
  ASSERT_TRUE(write_file_atomic(scratch_ / "old", old));
  EXPECT_EQ(error_of(scratch_ / "old"), "");
  std::string lost = read_file(path_, 1 << 20).or_throw();
  lost.replace(lost.find("\"checksum\""), 10, "\"comments\"");
  ASSERT_TRUE(write_file_atomic(scratch_ / "lost", lost));
  EXPECT_THAT(error_of(scratch_ / "lost"), HasSubstr("checksum is missing"));
}

// Random damage that no checksum tells of either gives an error with a message or a state that everything later
// survives.
TEST_F(DamagedCheckpoint, ByRandomMutationsGivesErrorsAndNeverCrashes) {
  const std::string good = without_checksum(read_file(path_, 1 << 20).or_throw());
  std::uint64_t header = 0;
  std::memcpy(&header, good.data(), 8);
  const Exec ex({.threads = 1});
  const RowDataset<float> data = [] {
    RowParts<float> parts;
    parts.size = 4;
    parts.features = 2;
    parts.targets = 1;
    parts.x = {0.1f, 0.2f, -0.4f, 0.9f, 1.5f, -3.0f, 0.0f, 1.0f};
    parts.target = {1, 2, 3, 4};
    return RowDataset<float>(std::move(parts));
  }();
  std::size_t refused = 0, refused_later = 0, used = 0;
  const std::uint32_t tries = test::kSanitized ? 3000 : 6000;
  for (std::uint32_t i = 0; i < tries; ++i) {
    // Half of the damage goes to the numbers alone: the header catches nearly all of the rest.
    const std::size_t keep = i % 2 == 0 ? 8 + header : 0;
    std::string bad = good.substr(0, keep) + test::mutate(good.substr(keep), 4, i);
    if (keep > 0) bad.resize(good.size(), '\xff');
    const auto file = parse_safetensors(std::as_bytes(std::span(bad)), "damaged");
    if (!file) {
      ASSERT_FALSE(file.error().message.empty());
      ++refused;
      continue;
    }
    auto state = load_checkpoint<float>(*file, "damaged", network_.parameters(), network_.buffers());
    if (!state) {
      ASSERT_THAT(state.error().message, HasSubstr("damaged"));
      ++refused;
      continue;
    }
    const auto derived = network_.derive(state->buffers.span());
    if (!derived) {
      ASSERT_FALSE(derived.error().message.empty());
      ++refused_later;
      continue;
    }
    try {  // a network of any numbers can be run and trained, or says why not
      state->lbfgs = {};
      Trainer(ex, network_, data, {.batch = 2}, *state).step();
      ++used;
    } catch (const Exception& e) {
      ASSERT_STRNE(e.what(), "");
      ++refused_later;
    }
  }
  EXPECT_GT(refused, tries / 6);
  EXPECT_GT(refused_later, tries / 600);
  EXPECT_GT(used, tries / 12);
}

}  // namespace
}  // namespace gradloom
