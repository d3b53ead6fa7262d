#include "gradloom/data/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "gradloom/data/inflate.h"
#include "tests/support/mutate.h"
#include "tests/support/npy_files.h"

namespace gradloom {
namespace {

using test::header;
using test::npy;
using test::raw;
using test::Zip;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<double> values(const std::string& bytes) { return parse_npy(bytes, "a.npy").or_throw().to_doubles(); }

std::string error_of(const std::string& bytes) {
  const auto result = parse_npy(bytes, "a.npy");
  return result.ok() ? "no error" : result.error().message;
}

TEST(Npy, ReadsEveryTypeAndVersion) {
  EXPECT_THAT(values(npy(header("<f8", "(2,)"), raw<double>({1.5, -2}))), ElementsAre(1.5, -2));
  EXPECT_THAT(values(npy(header("<f4", "(2, 1)"), raw<float>({1.5, -2}), 2)), ElementsAre(1.5, -2));
  EXPECT_THAT(values(npy(header("|i1", "(1,)"), raw<std::int8_t>({-3}), 3)), ElementsAre(-3));
  EXPECT_THAT(values(npy(header("<i2", "(1,)"), raw<std::int16_t>({-3}))), ElementsAre(-3));
  EXPECT_THAT(values(npy(header("<i4", "(1,)"), raw<std::int32_t>({-3}))), ElementsAre(-3));
  EXPECT_THAT(values(npy(header("<i8", "(1,)"), raw<std::int64_t>({-3}))), ElementsAre(-3));
  EXPECT_THAT(values(npy(header("|u1", "(1,)"), raw<std::uint8_t>({200}))), ElementsAre(200));
  EXPECT_THAT(values(npy(header("<u2", "(1,)"), raw<std::uint16_t>({60000}))), ElementsAre(60000));
  EXPECT_THAT(values(npy(header("<u4", "(1,)"), raw<std::uint32_t>({4000000000u}))), ElementsAre(4e9));
  EXPECT_THAT(values(npy(header("<u8", "(1,)"), raw<std::uint64_t>({7}))), ElementsAre(7));
  EXPECT_THAT(values(npy(header("|b1", "(2,)"), std::string("\0\1", 2))), ElementsAre(0, 1));
}

TEST(Npy, KeepsIntegersThatDoubleCannotHoldAsTexts) {
  const auto texts = [](const std::string& bytes) { return parse_npy(bytes, "a.npy").or_throw().to_wide_integers(); };
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(), kWide = (std::int64_t{1} << 53) + 1;
  EXPECT_THAT(texts(npy(header("<i8", "(4,)"), raw<std::int64_t>({-kWide, 0, -1, kLeast}))),
              ElementsAre("-9007199254740993", "0", "-1", "-9223372036854775808"));
  EXPECT_THAT(texts(npy(header("<u8", "(1,)"), raw<std::uint64_t>({~std::uint64_t{0}}))),
              ElementsAre("18446744073709551615"));
  EXPECT_TRUE(texts(npy(header("<i8", "(2,)"), raw<std::int64_t>({-kWide + 1, 5}))).empty()) << "double holds them";
}

TEST(Npy, ReadsScalarsAndEmptyArrays) {
  EXPECT_THAT(values(npy(header("<f8", "()"), raw<double>({4}))), ElementsAre(4));
  const auto empty = parse_npy(npy(header("<f8", "(0, 3)"), ""), "a.npy").or_throw();
  EXPECT_THAT(empty.shape, ElementsAre(0, 3));
  EXPECT_EQ(empty.size(), 0u);
}

TEST(Npy, TurnsBigEndianAndFortranOrder) {
  EXPECT_THAT(values(npy(header(">i2", "(2,)"), std::string("\0\1\1\0", 4))), ElementsAre(1, 256));
  EXPECT_THAT(values(npy(header("<i4", "(2, 3)", true), raw<std::int32_t>({0, 3, 1, 4, 2, 5}))),
              ElementsAre(0, 1, 2, 3, 4, 5));
  // Element (i, j, k) of a (2, 1, 3) array stands at i + 2 (j + k).
  EXPECT_THAT(values(npy(header("|u1", "(2, 1, 3)", true), std::string("\0\3\1\4\2\5", 6))),
              ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Npy, RefusesObjectsTextAndStructures) {
  for (const char* type : {"|O", "<U3", "|S4", "<c8", "<f2", "<f16", "<M8[ns]", "<i3"}) {
    const auto result = parse_npy(npy(header(type, "(1,)"), std::string(100, 'x')), "a.npy");
    ASSERT_FALSE(result.ok()) << type;
    EXPECT_EQ(result.error().code, ErrorCode::unsupported) << type;
  }
  EXPECT_THAT(error_of(npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", "")),
              HasSubstr("structure"));
}

TEST(Npy, RejectsDamage) {
  EXPECT_THAT(error_of(""), HasSubstr("not a NumPy file"));
  EXPECT_THAT(error_of(npy(header("<f8", "(2,)"), "1234567")), HasSubstr("needs 16 bytes, but 7 follow"));
  EXPECT_THAT(error_of(npy(header("<f8", "(1,)"), "123456789")), HasSubstr("1 bytes follow"));
  EXPECT_THAT(error_of(npy(header("<f8", "(4294967296, 4294967296)"), "")), HasSubstr("overflows"));
  EXPECT_THAT(error_of(npy(header("<f8", "(0, 4294967296, 4294967296)"), "")), HasSubstr("overflows"));
  EXPECT_THAT(error_of(npy(header("<f8", "(-1,)"), "")), HasSubstr("not a size"));
  EXPECT_THAT(error_of(npy(header("<f8", "(1 1)"), "")), HasSubstr("malformed"));
  EXPECT_THAT(error_of(npy("{'descr': '<f8'}", "")), HasSubstr("lacks"));
  EXPECT_THAT(error_of(npy(header("<f8", "(1,)"), "", 9)), HasSubstr("version 9"));
  EXPECT_THAT(error_of(npy(header("<f8", "(1,)"), "").substr(0, 30)), HasSubstr("truncated"));
  EXPECT_THAT(error_of(std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12)), HasSubstr("above the limit"));
}

Zip archive() {
  Zip zip;
  zip.add("x.npy", npy(header("<f8", "(2, 2)"), raw<double>({1, 2, 3, 4})), true);
  zip.add("y.npy", npy(header("<i8", "(2,)"), raw<std::int64_t>({7, 8})), false);
  zip.add("readme.txt", "hello", false);
  return zip;
}

TEST(Npz, ReadsStoredAndDeflatedArrays) {
  const auto arrays = parse_npz(archive().bytes(), 1 << 20, "a.npz").or_throw();
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_THAT(arrays.at("x").to_doubles(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(arrays.at("y").to_doubles(), ElementsAre(7, 8));
}

TEST(Npz, RejectsDamage) {
  const auto error = [](const std::string& bytes, std::size_t limit = 1 << 20) {
    const auto result = parse_npz(bytes, limit, "a.npz");
    return result.ok() ? "no error" : result.error().message;
  };
  std::string bytes = archive().bytes();
  EXPECT_THAT(error(""), HasSubstr("not a zip"));
  EXPECT_THAT(error(bytes.substr(0, bytes.size() - 10)), HasSubstr("no directory"));
  EXPECT_THAT(error(bytes, 100), HasSubstr("longer than the limit"));
  const std::size_t at = bytes.find(raw<std::int64_t>({7, 8}));
  bytes[at] = 9;
  EXPECT_THAT(error(bytes), HasSubstr("checksum of 'y.npy'"));
  Zip twice = archive();
  twice.add("x.npy", npy(header("|u1", "(0,)"), ""), false);
  EXPECT_THAT(error(twice.bytes()), HasSubstr("'x.npy' twice"));
  Zip linked;
  linked.add("z.npy", "../elsewhere.npy", false, 0120777);
  EXPECT_THAT(error(linked.bytes()), HasSubstr("'z.npy' is a link"));
}

TEST(Inflate, StopsAtTheLimit) {
  std::string big(1 << 20, 'x'), packed(1 << 16, '\0');
  z_stream z{};
  ::deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  z.next_in = reinterpret_cast<Bytef*>(big.data());
  z.avail_in = static_cast<uInt>(big.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(::deflate(&z, Z_FINISH), Z_STREAM_END);
  packed.resize(z.total_out);
  ::deflateEnd(&z);
  EXPECT_TRUE(looks_like_gzip(packed));
  EXPECT_EQ(inflate_bytes(packed, Compression::gzip, big.size(), "f").or_throw(), big);
  EXPECT_EQ(inflate_bytes(packed + packed, Compression::gzip, 2 * big.size(), "f").or_throw(), big + big);
  EXPECT_THAT(inflate_bytes(packed, Compression::gzip, big.size() - 1, "f").error().message, HasSubstr("limit"));
  for (std::size_t cut : {std::size_t{0}, std::size_t{5}, packed.size() / 2, packed.size() - 1})
    EXPECT_THAT(inflate_bytes(packed.substr(0, cut), Compression::gzip, big.size(), "f").error().message,
                HasSubstr("truncated"));
}

TEST(Npy, SurvivesRandomDamage) {
  const std::string good = npy(header("<f4", "(2, 3)", true), raw<float>({1, 2, 3, 4, 5, 6}));
  std::size_t accepted = 0;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const std::string damaged = test::mutate(good, 5, i);
    const auto result = parse_npy(damaged, "a.npy");
    accepted += result.ok();
    if (result.ok()) {
      ASSERT_LE(result->bytes.size(), damaged.size());
      (void)result->to_doubles();
    } else {
      ASSERT_FALSE(result.error().message.empty());
    }
  }
  EXPECT_GT(accepted, 0u);
}

TEST(Npz, SurvivesRandomDamage) {
  const std::string good = archive().bytes();
  std::size_t accepted = 0;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const auto result = parse_npz(test::mutate(good, 6, i), 1 << 20, "a.npz");
    accepted += result.ok();
    ASSERT_TRUE(result.ok() || !result.error().message.empty());
  }
  EXPECT_LT(accepted, 20'000u);
}

}  // namespace
}  // namespace gradloom
