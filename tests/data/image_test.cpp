#include "gradloom/data/image.h"

#include <gtest/gtest.h>

#include "gradloom/base/error.h"
#include "gradloom/io/file.h"
#include "tests/support/mutate.h"
#include "tests/support/scratch.h"

namespace gradloom {
namespace {

Image pattern(std::size_t width, std::size_t height) {
  Image image(width, height, {0, 0, 0});
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x)
      image.set(x, y, {static_cast<std::uint8_t>(x * 7), static_cast<std::uint8_t>(y * 13), 200});
  return image;
}

TEST(Image, PngRoundTripKeepsEveryPixel) {
  const test::Scratch folder;
  for (const auto& [w, h] : {std::pair{1u, 1u}, {3u, 5u}, {64u, 64u}}) {
    const Image image = pattern(w, h);
    ASSERT_TRUE(write_file_atomic(folder / "a.png", encode_png(image)));
    const auto back = read_png(folder / "a.png", 64);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->width, w);
    EXPECT_EQ(back->height, h);
    EXPECT_EQ(back->rgb, image.rgb);
  }
}

TEST(Image, TooLargePicturesAndOtherFilesAreNamed) {
  const test::Scratch folder;
  ASSERT_TRUE(write_file_atomic(folder / "large.png", encode_png(pattern(65, 3))));
  const auto large = read_png(folder / "large.png", 64);
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().message.find("65 x 3"), std::string::npos) << large.error().message;
  ASSERT_TRUE(write_file_atomic(folder / "text.png", "GIF89a, not a PNG"));
  const auto text = read_png(folder / "text.png", 64);
  ASSERT_FALSE(text);
  EXPECT_NE(text.error().message.find("not a PNG"), std::string::npos) << text.error().message;
}

TEST(Image, SurvivesDamagedFiles) {
  const test::Scratch folder;
  const std::string good = encode_png(pattern(20, 20));
  std::size_t refused = 0;
  for (std::uint32_t i = 0; i < 300; ++i) {
    ASSERT_TRUE(write_file_atomic(folder / "bad.png", test::mutate(good, 1, i)));
    refused += !read_png(folder / "bad.png", 64);
  }
  EXPECT_GT(refused, 200u);  // damage that a checksum alone would show may be forgiven
}

TEST(Image, AnAnimationHoldsItsFramesAndBeginsAsAPng) {
  const test::Scratch folder;
  const std::vector<Image> frames{pattern(8, 8), Image(8, 8, {1, 2, 3}), pattern(8, 8)};
  const std::string bytes = encode_apng(frames, 100);
  ASSERT_TRUE(write_file_atomic(folder / "a.png", bytes));
  const auto first = read_png(folder / "a.png", 64);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->rgb, frames[0].rgb);
  std::size_t controls = 0;
  for (std::size_t at = 0; (at = bytes.find("fcTL", at)) != std::string::npos; ++at) ++controls;
  EXPECT_EQ(controls, 3u);
  EXPECT_THROW(encode_apng({}, 100), Exception);
  const std::vector<Image> unequal{pattern(8, 8), pattern(8, 9)};
  EXPECT_THROW(encode_apng(unequal, 100), Exception);
}

}  // namespace
}  // namespace gradloom
