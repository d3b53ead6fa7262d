#include "gradloom/data/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "gradloom/data/source.h"
#include "tests/support/mutate.h"
#include "tests/support/scratch.h"

namespace gradloom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string idx_bytes(std::initializer_list<int> values) {
  std::string bytes;
  for (const int v : values) bytes += static_cast<char>(v);
  return bytes;
}

const std::string kIdxImages = idx_bytes({0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 255, 4, 5, 6});
const std::string kIdxLabels = idx_bytes({0, 0, 8, 1, 0, 0, 0, 2, 7, 3});

TEST(Idx, ReadsEveryType) {
  const NpyArray images = parse_idx(kIdxImages, "i").or_throw();
  EXPECT_THAT(images.shape, ElementsAre(2u, 1u, 3u));
  EXPECT_THAT(images.to_doubles(), ElementsAre(1, 2, 255, 4, 5, 6));
  const auto one = [](std::initializer_list<int> head) {
    return parse_idx(idx_bytes(head), "i").or_throw().to_doubles();
  };
  EXPECT_THAT(one({0, 0, 9, 1, 0, 0, 0, 1, 255}), ElementsAre(-1));
  EXPECT_THAT(one({0, 0, 11, 1, 0, 0, 0, 1, 1, 2}), ElementsAre(258));
  EXPECT_THAT(one({0, 0, 12, 1, 0, 0, 0, 1, 255, 255, 255, 254}), ElementsAre(-2));
  EXPECT_THAT(one({0, 0, 13, 1, 0, 0, 0, 1, 0x3f, 0x80, 0, 0}), ElementsAre(1));
  EXPECT_THAT(one({0, 0, 14, 1, 0, 0, 0, 1, 0xbf, 0xf0, 0, 0, 0, 0, 0, 0}), ElementsAre(-1));
}

TEST(Idx, RefusesWhatIsDamaged) {
  const auto error = [](const std::string& bytes) {
    const auto result = parse_idx(bytes, "i.idx");
    return result.ok() ? "no error" : result.error().message;
  };
  EXPECT_THAT(error("P3"), HasSubstr("i.idx: this is not an IDX file"));
  EXPECT_THAT(error(kIdxImages.substr(0, 20)), HasSubstr("truncated"));
  EXPECT_THAT(error(kIdxImages + "x"), HasSubstr("7 bytes of values"));
  EXPECT_THAT(error(idx_bytes({0, 0, 10, 1, 0, 0, 0, 0})), HasSubstr("type 0x0a"));
  EXPECT_THAT(error(idx_bytes({0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255})),
              HasSubstr("truncated"));
  for (std::uint32_t i = 0; i < 500; ++i) (void)parse_idx(test::mutate(kIdxImages, 1, i), "i");
}

TEST(Idx, KnowsItsNames) {
  EXPECT_TRUE(is_idx_name("a/train-images-idx3-ubyte.gz"));
  EXPECT_TRUE(is_idx_name("train-images.idx3-ubyte"));
  EXPECT_TRUE(is_idx_name("x.idx"));
  EXPECT_FALSE(is_idx_name("idx.csv"));
  EXPECT_FALSE(is_idx_name("my-idx.csv"));
  EXPECT_EQ(idx_labels_name("a/train-images-idx3-ubyte.gz"), "a/train-labels-idx1-ubyte.gz");
  EXPECT_EQ(idx_labels_name("x.idx"), "");
}

TEST(LoadRows, ReadsImagesWithTheirLabels) {
  test::Scratch scratch;
  const auto put = [&](const char* name, const std::string& bytes) {
    std::ofstream(scratch / name, std::ios::binary) << bytes;
  };
  put("train-images-idx3-ubyte", kIdxImages);
  RowSource source;
  source.task = Task::classification;
  source.path = scratch / "train-images-idx3-ubyte";
  EXPECT_THAT(load_rows(source).error().message,
              testing::AllOf(HasSubstr("train-labels-idx1-ubyte"), HasSubstr("data.labels")));
  put("train-labels-idx1-ubyte", kIdxLabels);
  const auto rows = load_rows(source).or_throw();
  EXPECT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.features(), 3u);
  EXPECT_THAT(rows.class_names(), ElementsAre("3", "7"));
  put("other", kIdxLabels);
  source.labels = scratch / "other";
  EXPECT_EQ(load_rows(source).or_throw().class_names().size(), 2u);
}

}  // namespace
}  // namespace gradloom
