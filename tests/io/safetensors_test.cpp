#include "gradloom/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "gradloom/io/checksum.h"
#include "gradloom/io/file.h"
#include "tests/support/mutate.h"
#include "tests/support/scratch.h"

namespace gradloom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string file_bytes(std::string header, std::size_t data_bytes) {
  std::string bytes(8, '\0');
  const std::uint64_t n = header.size();
  std::memcpy(bytes.data(), &n, 8);
  bytes += header;
  for (std::size_t i = 0; i < data_bytes; ++i) bytes += static_cast<char>(i);
  return bytes;
}

Result<TensorFile> parse_tensors(const std::string& bytes) {
  return parse_safetensors(std::as_bytes(std::span(bytes)), "some file");
}

std::string error_of(const std::string& header, std::size_t data_bytes) {
  const auto result = parse_tensors(file_bytes(header, data_bytes));
  return result.ok() ? "no error" : result.error().message;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

template <class T>
std::vector<T> values(const TensorFile& file, const std::string& name) {
  const auto span = file.values<T>(name).or_throw();
  return {span.begin(), span.end()};
}

TEST(Safetensors, ReadsBackWhatWasWritten) {
  const test::Scratch scratch;
  const std::vector<float> f{1.5f, -2, 3, 4, 5, 6};
  const std::vector<double> d{0.1};
  const std::vector<std::uint8_t> u8{1, 2, 255};
  const std::vector<std::uint32_t> u32{7};
  const std::vector<std::int64_t> i64{-1, INT64_MIN};
  const std::vector<std::uint64_t> u64{UINT64_MAX};
  const std::vector<TensorView> tensors{
      tensor_view<std::uint8_t>("u8", u8, {3}),   tensor_view<float>("layer.0/\u00e4", f, {2, 3}),
      tensor_view<double>("scalar", d, {}),       tensor_view<std::uint32_t>("u32", u32, {1}),
      tensor_view<std::int64_t>("i64", i64, {2}), tensor_view<std::uint64_t>("u64", u64, {1, 1, 1}),
      tensor_view<float>("empty", {}, {0, 4})};
  ASSERT_TRUE(write_safetensors(scratch / "t", tensors, {{"format", "test"}, {"q\"uote", "line\nbreak"}}).ok());

  TensorFile first = read_safetensors(scratch / "t").or_throw();
  const TensorFile file = std::move(first);
  EXPECT_EQ(file.tensors().size(), 7u);
  EXPECT_EQ(file.metadata().at("q\"uote"), "line\nbreak");
  EXPECT_EQ(values<float>(file, "layer.0/\u00e4"), f);
  EXPECT_EQ(values<double>(file, "scalar"), d);
  EXPECT_EQ(values<std::uint8_t>(file, "u8"), u8);
  EXPECT_EQ(values<std::uint32_t>(file, "u32"), u32);
  EXPECT_EQ(values<std::int64_t>(file, "i64"), i64);
  EXPECT_EQ(values<std::uint64_t>(file, "u64"), u64);
  EXPECT_TRUE(values<float>(file, "empty").empty());
  EXPECT_THAT(file.find("layer.0/\u00e4")->shape, ElementsAre(2, 3));
  EXPECT_TRUE(file.find("scalar")->shape.empty());
  EXPECT_EQ(file.find("scalar")->size(), 1u);
}

TEST(Safetensors, WritesNoTensorsAtAll) {
  const test::Scratch scratch;
  ASSERT_TRUE(write_safetensors(scratch / "t", {}, {}).ok());
  EXPECT_TRUE(read_safetensors(scratch / "t").or_throw().tensors().empty());
}

TEST(Safetensors, LeavesPaddingOut) {
  const test::Scratch scratch;
  const std::vector<float> padded{1, 2, 3, -9, 4, 5, 6, -9};
  const std::vector<TensorView> tensors{tensor_view<float>("w", padded, {2, 3}, 4)};
  ASSERT_TRUE(write_safetensors(scratch / "t", tensors, {}).ok());
  EXPECT_EQ(values<float>(read_safetensors(scratch / "t").or_throw(), "w"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(Safetensors, EqualTensorsGiveEqualFiles) {
  const test::Scratch scratch;
  const std::vector<float> f{1, 2, 3};
  const std::vector<TensorView> tensors{tensor_view<float>("a", f, {3}), tensor_view<float>("b", f, {3, 1})};
  ASSERT_TRUE(write_safetensors(scratch / "1", tensors, {{"k", "v"}}).ok());
  ASSERT_TRUE(write_safetensors(scratch / "2", tensors, {{"k", "v"}}).ok());
  const std::string file = read_file(scratch / "1", 1000).or_throw();
  EXPECT_EQ(file, read_file(scratch / "2", 1000).or_throw());
  EXPECT_EQ(file, safetensors_bytes(tensors, {{"k", "v"}}));
}

TEST(SafetensorsWriter, ThrowsOnViewsThatAreWrong) {
  const test::Scratch scratch;
  const std::vector<float> f{1, 2, 3};
  const auto write = [&](std::vector<TensorView> tensors) { (void)write_safetensors(scratch / "t", tensors, {}); };
  EXPECT_THROW(write({tensor_view<float>("a", f, {4})}), Exception);
  EXPECT_THROW(write({tensor_view<float>("a", f, {1, 3}, 2)}), Exception);
  EXPECT_THROW(write({tensor_view<float>("a", f, {3}), tensor_view<float>("a", f, {3})}), Exception);
  EXPECT_THROW(write({tensor_view<float>("__metadata__", f, {3})}), Exception);
  EXPECT_THROW(write({tensor_view<float>("\xff", f, {3})}), Exception);
  EXPECT_EQ(scratch.entries(), 0u);
}

TEST(SafetensorsReader, AlignsTensorsThatAreNot) {
  const auto header = "{" + entry("a", "U8", "[1]", "[0,1]") + "," + entry("b", "F64", "[1]", "[1,9]") + "}";
  const TensorFile file = parse_tensors(file_bytes(header, 9)).or_throw();
  const auto span = file.values<double>("b").or_throw();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(span.data()) % alignof(double), 0u);
  double expected;
  std::memcpy(&expected, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
  EXPECT_EQ(span[0], expected);
}

TEST(SafetensorsReader, NamesTheNearestTensorAndTheDtypeItHas) {
  const TensorFile file = parse_tensors(file_bytes("{" + entry("weight", "F32", "[1]", "[0,4]") + "}", 4)).or_throw();
  EXPECT_THAT(file.values<float>("wieght").error().message, HasSubstr("nearest is 'weight'"));
  EXPECT_THAT(file.values<double>("weight").error().message, HasSubstr("is F32, but F64 is needed"));
}

TEST(SafetensorsReader, RejectsHeadersThatAreTooLongOrTruncated) {
  EXPECT_THAT(parse_tensors("1234").error().message, HasSubstr("at least 8 bytes"));
  EXPECT_THAT(parse_tensors(std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8)).error().message,
              HasSubstr("above the limit"));
  EXPECT_THAT(parse_tensors(std::string("\x05\0\0\0\0\0\0\0{}", 10)).error().message, HasSubstr("truncated"));
}

TEST(SafetensorsReader, RejectsOverlappingTensors) {
  EXPECT_THAT(error_of("{" + entry("a", "F32", "[2]", "[0,8]") + "," + entry("b", "F32", "[2]", "[4,12]") + "}", 12),
              HasSubstr("'b' overlaps"));
}

TEST(SafetensorsReader, RejectsGapsAndTrailingBytes) {
  EXPECT_THAT(error_of("{" + entry("a", "F32", "[1]", "[4,8]") + "}", 8), HasSubstr("4 unused bytes lie before"));
  EXPECT_THAT(error_of("{" + entry("a", "F32", "[1]", "[0,4]") + "}", 9), HasSubstr("5 unused bytes follow"));
}

TEST(SafetensorsReader, RejectsOffsetsOutOfRange) {
  EXPECT_THAT(error_of("{" + entry("a", "F32", "[2]", "[0,8]") + "}", 4), HasSubstr("truncated"));
  EXPECT_THAT(error_of("{" + entry("a", "F32", "[1]", "[8,4]") + "}", 8), HasSubstr("bytes 8 to 4"));
  EXPECT_THAT(error_of("{" + entry("a", "F32", "[1]", "[-4,0]") + "}", 8), HasSubstr("not two sizes"));
  EXPECT_THAT(error_of("{" + entry("a", "F32", "[1]", "[0,4.0]") + "}", 4), HasSubstr("not two sizes"));
}

TEST(SafetensorsReader, RejectsShapesThatOverflowOrDoNotMatch) {
  EXPECT_THAT(error_of("{" + entry("a", "F32", "[4294967296,4294967296]", "[0,0]") + "}", 0), HasSubstr("overflows"));
  EXPECT_THAT(error_of("{" + entry("a", "F32", "[3]", "[0,4]") + "}", 4), HasSubstr("need 12"));
  EXPECT_THAT(error_of("{" + entry("a", "F32", "[-1]", "[0,4]") + "}", 4), HasSubstr("not a size"));
}

TEST(SafetensorsReader, RejectsRepeatedNames) {
  EXPECT_THAT(error_of("{" + entry("a", "U8", "[1]", "[0,1]") + "," + entry("a", "U8", "[1]", "[1,2]") + "}", 2),
              HasSubstr("'a' appears twice"));
  EXPECT_THAT(error_of(R"({"":1,"":2})", 0), HasSubstr("appears twice"));
  EXPECT_THAT(error_of(R"({"__metadata__":{"k":"1","k":"2"}})", 0), HasSubstr("'k' appears twice"));
}

TEST(SafetensorsReader, RejectsHeadersThatAreNotWhatTheyShouldBe) {
  EXPECT_THAT(error_of("[]", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of("{", 0), HasSubstr("not JSON"));
  EXPECT_THAT(error_of("{\"\xff\":1}", 0), HasSubstr("UTF-8"));
  EXPECT_THAT(error_of(R"({"__metadata__":{"k":1}})", 0), HasSubstr("not a string"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[]}})", 0), HasSubstr("no 'data_offsets'"));
  const auto unsupported = parse_tensors(file_bytes("{" + entry("a", "BF16", "[1]", "[0,2]") + "}", 2));
  EXPECT_EQ(unsupported.error().code, ErrorCode::unsupported);
  EXPECT_THAT(error_of(std::string(100'000, '['), 0), HasSubstr("64 levels"));
}

TEST(SafetensorsReader, FindsEveryFlippedBitByTheChecksum) {
  const test::Scratch scratch;
  const std::vector<float> f{1, 2, 3};
  const std::vector<std::uint8_t> u{4, 5};
  const std::vector<TensorView> tensors{tensor_view<float>("a", f, {3}), tensor_view<std::uint8_t>("b", u, {2, 1})};
  ASSERT_TRUE(write_safetensors(scratch / "t", tensors, {{"k", "v"}}).ok());
  const std::string good = read_file(scratch / "t", 1000).or_throw();
  EXPECT_TRUE(parse_tensors(good).or_throw().has_checksum());
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    const auto result = parse_tensors(bad);
    // A flip in the checksum's own key or kind makes it unknown: whoever needs one sees that there is none.
    EXPECT_TRUE(!result.ok() || !result->has_checksum()) << "bit " << bit % 8 << " of byte " << bit / 8;
  }
}

TEST(SafetensorsReader, ReadsFilesWithoutAChecksumAndWithForeignOnes) {
  EXPECT_FALSE(parse_tensors(file_bytes("{" + entry("a", "U8", "[1]", "[0,1]") + "}", 1)).or_throw().has_checksum());
  const TensorFile file = parse_tensors(file_bytes(R"({"__metadata__":{"checksum":"md5:12"}})", 0)).or_throw();
  EXPECT_FALSE(file.has_checksum());
  EXPECT_EQ(file.metadata().at("checksum"), "md5:12");
}

TEST(SafetensorsReader, DoesNotWaitForPipes) {
  const test::Scratch scratch;
  ASSERT_EQ(::mkfifo((scratch / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(read_safetensors(scratch / "pipe").error().message, HasSubstr("pipe' is not a regular file"));
}

TEST(Checksum, DoesNotDependOnHowTheBytesAreCut) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  Checksum whole, pieces;
  const auto bytes = std::as_bytes(std::span(text));
  whole.add(bytes);
  for (std::size_t i = 0; i < bytes.size(); i += 13) pieces.add(bytes.subspan(i, std::min<std::size_t>(13, 1000 - i)));
  EXPECT_EQ(whole.value(), pieces.value());
  EXPECT_EQ(Checksum().value(), 0x2d06800538d394c2u) << "XXH3 of nothing";
}

TEST(SafetensorsReader, SurvivesRandomDamage) {
  const test::Scratch scratch;
  const std::vector<float> f{1, 2, 3};
  const std::vector<double> d{4, 5};
  const std::vector<TensorView> tensors{tensor_view<float>("a", f, {3}), tensor_view<double>("b", d, {2, 1})};
  ASSERT_TRUE(write_safetensors(scratch / "t", tensors, {{"k", "v"}}).ok());
  std::string good = read_file(scratch / "t", 1000).or_throw();
  good.replace(good.find("checksum"), 8, "forgotte");  // else it would find all of it
  std::size_t accepted = 0;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const auto result = parse_tensors(test::mutate(good, 1, i));
    if (result.ok())
      ++accepted;
    else
      ASSERT_FALSE(result.error().message.empty());
  }
  EXPECT_LT(accepted, 20'000u);
}

}  // namespace
}  // namespace gradloom
