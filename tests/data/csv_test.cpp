#include "gradloom/data/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "gradloom/data/source.h"
#include "tests/support/mutate.h"

namespace gradloom {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

CsvTable parse(const std::string& text, const CsvOptions& options = {}) {
  return parse_csv(text, options, "t.csv").or_throw();
}

std::vector<std::string> cells(const CsvTable& table) { return {table.cells.begin(), table.cells.end()}; }

std::string error_of(const std::string& text, const CsvOptions& options = {}) {
  const auto result = parse_csv(text, options, "t.csv");
  return result.ok() ? "no error" : result.error().message;
}

TEST(Csv, ReadsQuotesLineBreaksAndWindowsEnds) {
  const auto table = parse(
      "\xef\xbb\xbf"
      "a,b\r\n1,\"x, \"\"y\"\"\r\nz\"\r\n\r\n 2 , w \r\n");
  EXPECT_THAT(table.columns, ElementsAre("a", "b"));
  EXPECT_THAT(cells(table), ElementsAre("1", "x, \"y\"\r\nz", "2", "w"));
  EXPECT_THAT(table.lines, ElementsAre(2, 5));
}

TEST(Csv, FindsTheSeparator) {
  for (const char* s : {",", ";", "\t", "|", " ", "   "}) {
    const std::string sep = s;
    EXPECT_THAT(cells(parse("1" + sep + "2.5" + sep + "x\n3" + sep + "4" + sep + "y\n")),
                ElementsAre("1", "2.5", "x", "3", "4", "y"))
        << "'" << sep << "'";
  }
  EXPECT_THAT(cells(parse("1\n2\n")), ElementsAre("1", "2"));
  EXPECT_THAT(cells(parse("1;2,5\n3;4,5\n", {.separator = ";"})), ElementsAre("1", "2.5", "3", "4.5"));
  EXPECT_THAT(cells(parse("1\t\t2\n", {.separator = "tab"})), ElementsAre("1", "", "2"));
}

TEST(Csv, TakesRunsOfBlanksAsOne) {
  EXPECT_THAT(cells(parse("  1 \t 2  \r\n 3 4\n", {.separator = " "})), ElementsAre("1", "2", "3", "4"));
}

TEST(Csv, FindsTheHeaderOrIsTold) {
  EXPECT_THAT(parse("a,b\n1,2\n").columns, ElementsAre("a", "b"));
  EXPECT_THAT(parse("a,1\n1,2\n").columns, ElementsAre("column1", "column2"));
  EXPECT_EQ(parse("p,x\np,y\n").rows(), 2u);
  EXPECT_EQ(parse("1,2\n3,4\n", {.header = CsvHeader::present}).rows(), 1u);
  EXPECT_EQ(parse("a,b\n1,2\n", {.header = CsvHeader::absent}).rows(), 2u);
  EXPECT_THAT(error_of("a,a\n1,2\n", {.header = CsvHeader::present}), HasSubstr("'a' twice, in columns 1 and 2"));
  EXPECT_THAT(error_of("b,a,c,a\n1,2,3,4\n"), HasSubstr("'a' twice, in columns 2 and 4"));
  EXPECT_EQ(parse("a,a\n1,2\n", {.header = CsvHeader::absent}).rows(), 2u);
}

TEST(Csv, LeavesOutTheRowNamesThatPandasAndRWrite) {
  const auto table = parse(",a,b\n0,1.5,x\n1,2.5,y\n");
  EXPECT_THAT(table.columns, ElementsAre("a", "b"));
  EXPECT_THAT(cells(table), ElementsAre("1.5", "x", "2.5", "y"));
  EXPECT_THAT(cells(parse("\"\",\"a\"\n\"row1\",1\n\"row2\",2\n")), ElementsAre("1", "2"));
  // An empty name elsewhere is a column without a name, and a table without a header keeps all.
  EXPECT_THAT(parse("a,,b\n1,2,3\n", {.header = CsvHeader::present}).columns, ElementsAre("a", "column2", "b"));
  EXPECT_THAT(parse(",,b\n1,2,3\n", {.header = CsvHeader::present}).columns, ElementsAre("column1", "column2", "b"));
  EXPECT_THAT(parse(",1,2\n3,4,5\n").columns, ElementsAre("column1", "column2", "column3"));
}

TEST(Csv, TakesColumnsThatPandasNumbersForAHeader) {
  const auto table = parse(",0,1,2\n0,1.5,2.5,3.5\n1,4.5,5.5,6.5\n");
  EXPECT_THAT(table.columns, ElementsAre("0", "1", "2"));
  EXPECT_THAT(cells(table), ElementsAre("1.5", "2.5", "3.5", "4.5", "5.5", "6.5"));
  EXPECT_THAT(parse(",0\n0,1.5\n").columns, ElementsAre("0"));
  // Nothing else is: a missing value, numbers from elsewhere, no row below.
  EXPECT_EQ(parse(",0,2\n3,4,5\n").rows(), 2u);
  EXPECT_EQ(parse("0,1,2\n3,4,5\n").rows(), 2u);
  EXPECT_EQ(parse(",0,1\n").rows(), 1u);
  EXPECT_EQ(parse(",0\n1.5,1\n,0\n").rows(), 3u) << "an index names every row";
  EXPECT_EQ(parse(",0\n1.5,1\n1.5,0\n").rows(), 3u) << "and no two alike";
  EXPECT_EQ(parse(",0,1\n3,4,5\n", {.header = CsvHeader::absent}).rows(), 2u);
}

TEST(CsvDecimal, IsFoundWhereItIsUnambiguous) {
  EXPECT_THAT(cells(parse("a;b\n1,5;2\n-0,25;3\n")), ElementsAre("1.5", "2", "-0.25", "3"));
  EXPECT_THAT(parse("a;b\n1,5;2,5\n").columns, ElementsAre("a", "b"));
  EXPECT_THAT(cells(parse("1,5;2,5;3,5\n4,5;5,5;6,5\n")), ElementsAre("1.5", "2.5", "3.5", "4.5", "5.5", "6.5"));
  EXPECT_THAT(cells(parse("1,5 2,5\r\n4,5 5,5\r\n")), ElementsAre("1.5", "2.5", "4.5", "5.5"));
  EXPECT_THAT(cells(parse("a\tb\n1.234,5\t1,5e-3\n1.000\t2\n", {.separator = "tab"})),
              ElementsAre("1234.5", "1.5e-3", "1000", "2"));
  EXPECT_THAT(cells(parse("a,b\n\"1,234.5\",x\n\"1,000\",y\n")), ElementsAre("1234.5", "x", "1000", "y"));
  // What is missing, words and lists do not count; a column of its own may have points.
  EXPECT_THAT(cells(parse("a;b;c\n1,5;0.5;\"1,2,3\"\nNA;1.5;x\n")),
              ElementsAre("1.5", "0.5", "1,2,3", "NA", "1.5", "x"));
  // One column decides for another.
  EXPECT_THAT(cells(parse("a;b\n1,234;0,5\n2,345;1,5\n")), ElementsAre("1.234", "0.5", "2.345", "1.5"));
  EXPECT_THAT(cells(parse("a;b\n1,234;0.5\n2,345;1.5\n")), ElementsAre("1234", "0.5", "2345", "1.5"));
}

TEST(CsvDecimal, TakesBlanksAndApostrophesBetweenGroups) {
  for (const char* gap : {" ", "\u00a0", "\u202f", "'", "\u2019"}) {
    const std::string g = gap;
    EXPECT_THAT(cells(parse("a;b\n1" + g + "234,5;-12" + g + "345" + g + "678\n999,5;7\n")),
                ElementsAre("1234.5", "-12345678", "999.5", "7"))
        << "'" << g << "'";
    EXPECT_THAT(cells(parse("1" + g + "234.567;1\n1.5;2\n")), ElementsAre("1234.567", "1", "1.5", "2"));
    EXPECT_THAT(cells(parse("1" + g + "234,567;1\n1" + g + "234,5;2\n")), ElementsAre("1234.567", "1", "1234.5", "2"));
  }
  // Two kinds of gaps, groups of other lengths, leading zeros and columns of words are no such numbers.
  for (const char* cell : {"1 234'567", "1 23", "1234 567", "0 123", "1 234 m", "1  234", "1 234,5,6"})
    EXPECT_THAT(cells(parse(std::string("a;b\n") + cell + ";1,5\n")), ElementsAre(cell, "1.5"));
  EXPECT_THAT(cells(parse("a;b\n1 234;1\n12b;2\nroom 3;3\n")), ElementsAre("1 234", "1", "12b", "2", "room 3", "3"));
}

TEST(CsvDecimal, IsFoundBesideQuotedWords) {
  EXPECT_THAT(cells(parse("\"Cu\";1,5;2,5\n\"Fe, pure\";3,5;4,5\n")),
              ElementsAre("Cu", "1.5", "2.5", "Fe, pure", "3.5", "4.5"));
  EXPECT_THAT(cells(parse("\"a;b\",1;5,2\n\"c\",3;5,4\n")), ElementsAre("a;b", "1;5", "2", "c", "3;5", "4"));
}

TEST(CsvDecimal, IsAskedForWhereItIsNot) {
  EXPECT_THAT(error_of("a;b\n1,234;1\n"), AllOf(HasSubstr("line 2"), HasSubstr("'a'"), HasSubstr("data.decimal")));
  EXPECT_THAT(cells(parse("a;b\n1,234;1\n", {.decimal = CsvDecimal::comma})), ElementsAre("1.234", "1"));
  EXPECT_THAT(cells(parse("a;b\n1,234;1\n", {.decimal = CsvDecimal::point})), ElementsAre("1234", "1"));
  EXPECT_THAT(error_of("a;b\n1,5;1\n2.5;2\n"), AllOf(HasSubstr("line 3"), HasSubstr("decimal point")));
  EXPECT_THAT(error_of("a;b\n1.234;1,5\n"), HasSubstr("thousands"));
  EXPECT_THAT(cells(parse("a;b\n1.234;1,5\n", {.decimal = CsvDecimal::comma})), ElementsAre("1234", "1.5"));
  EXPECT_THAT(error_of("a;b\n1.5;1,5\n", {.decimal = CsvDecimal::comma}), HasSubstr("data.decimal is ','"));
  EXPECT_THAT(error_of("a;b\n1.5;1,5\n", {.decimal = CsvDecimal::point}), HasSubstr("data.decimal is '.'"));
}

TEST(CsvDecimal, IsThatOfOtherFilesWhereTheFileCannotTell) {
  const CsvOptions usual{.usual_decimal = CsvDecimal::comma};
  EXPECT_THAT(cells(parse("a;b\n1,234;1\n", usual)), ElementsAre("1.234", "1"));
  EXPECT_THAT(cells(parse("a;b\n1.234;1\n", usual)), ElementsAre("1234", "1")) << "no comma at all";
  EXPECT_THAT(cells(parse("a;b\n1.5;1\n", usual)), ElementsAre("1.5", "1")) << "this one tells";
  EXPECT_THAT(cells(parse("a;b\n1.234;2.5\n", usual)), ElementsAre("1.234", "2.5")) << "another column tells";
  EXPECT_EQ(parse("a;b\n1,5;1\n", {}).decimal, CsvDecimal::comma);
  EXPECT_EQ(parse("a;b\n1;1\n", {}).decimal, CsvDecimal::automatic);
}

TEST(CsvDecimal, MakesNumbersAndNoCategories) {
  RowSource source;
  source.csv.decimal = CsvDecimal::automatic;
  std::string text = "x;y\n";
  for (int i = 0; i < 300; ++i) text += std::to_string(i) + ",25;" + std::to_string(i) + ",5\n";
  const auto rows = rows_from_table(parse(text), source).or_throw().rows;
  EXPECT_EQ(rows.features(), 1u);
  EXPECT_EQ(rows.all().x(7, 0), 7.25);
  EXPECT_EQ(rows.all().target(7, 0), 7.5);
  EXPECT_THAT(rows_from_table(parse("x;y\n1,5;1\n2,5;2\n3,x5;3\n"), source).error().message,
              HasSubstr("'3,x5' is not a number"));
}

TEST(Csv, SkipsCommentsAndFirstLines) {
  const auto table = parse("junk, junk, junk\n# note\n1,2\n#3,4\n5,6", {.comment = "#", .skip_rows = 1});
  EXPECT_THAT(cells(table), ElementsAre("1", "2", "5", "6"));
  EXPECT_THAT(table.lines, ElementsAre(3, 5));
}

TEST(Csv, KeepsEmptyCells) { EXPECT_THAT(cells(parse("1,,3\n,,\n")), ElementsAre("1", "", "3", "", "", "")); }

TEST(Csv, NamesRaggedRows) {
  EXPECT_THAT(error_of("1,2\n3,4\n5\n"), HasSubstr("line 3 has 1 cells, but the rows before it have 2"));
}

TEST(Csv, NamesQuotesThatDoNotClose) {
  EXPECT_THAT(error_of("1,2\n\"3,4\n5,6\n"), HasSubstr("line 2: a quote is not closed"));
  EXPECT_THAT(error_of("\"a\"b,2\n"), HasSubstr("line 1: text follows"));
}

TEST(Csv, RefusesEmptyFilesAndUtf16) {
  EXPECT_THAT(error_of(""), HasSubstr("no rows"));
  EXPECT_THAT(error_of("\n \n"), HasSubstr("no rows"));
  EXPECT_THAT(error_of("a,b\n", {.header = CsvHeader::present}), HasSubstr("no row follows"));
  EXPECT_THAT(error_of("\xff\xfe"
                       "1"),
              HasSubstr("UTF-16"));
  EXPECT_THAT(error_of("1,2", {.separator = "::"}), HasSubstr("one character"));
}

TEST(Csv, RefusesMoreColumnsThanItsLimit) {
  const std::string wide(kMostCsvColumns - 1, ',');
  EXPECT_EQ(parse_csv(wide + "\n" + wide + "\n", {.header = CsvHeader::absent}, "t.csv").or_throw().columns.size(),
            kMostCsvColumns);
  EXPECT_THAT(error_of(std::string(3'000'000, ',')), HasSubstr("more than 100000 cells"));
}

// Twice the columns take twice the time: with a search through all names for each column, this would take hours.
TEST(TableRows, TakeAsManyColumnsAsATableMayHave) {
  std::string text;
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < kMostCsvColumns; ++c)
      text += (r == 0 ? "x" + std::to_string(c) : std::to_string(r)) + (c + 1 == kMostCsvColumns ? "\n" : ",");
  RowSource source;
  source.target = {"-1"};
  const CsvTable table = parse_csv(text, {}, "t.csv").or_throw();
  const LoadedRows loaded = rows_from_table(table, source).or_throw();
  EXPECT_EQ(loaded.rows.features(), kMostCsvColumns - 1);
}

// Nothing is taken away from names: a spreadsheet is told to read them as text (docs/format.md).
TEST(CsvField, KeepsWhatASpreadsheetWouldTakeForAFormula) {
  for (const std::string cell : {"=1+1", "+1", "-x", "@sum", "\tx", "=\"a\""}) {
    const std::string text = "a,b\n" + csv_field(cell) + ",1\n";
    const CsvTable table = parse_csv(text, {.separator = ",", .header = CsvHeader::present}, "t.csv").or_throw();
    EXPECT_EQ(table.cell(0, 0), cell);
  }
}

TEST(ParseNumber, ReadsWholeCellsOnly) {
  double v = 0;
  for (const char* good : {"1", "-1.5", "+2", "1e3", ".5", "5."}) EXPECT_TRUE(parse_number(good, v)) << good;
  for (const char* bad : {"", "+", "-", "1x", "x", "1,5", " 1", "+-1", "0x10"})
    EXPECT_FALSE(parse_number(bad, v)) << bad;
  EXPECT_TRUE(parse_number("1e999", v));
  EXPECT_TRUE(std::isinf(v));
  EXPECT_TRUE(parse_number("1e-999", v));
  EXPECT_EQ(v, 0);
}

Result<RowDataset<double>> rows(const std::string& text, const RowSource& source) {
  auto table = parse_csv(text, source.csv, "t.csv");
  if (!table) return table.error();
  auto loaded = rows_from_table(*table, source);
  if (!loaded) return loaded.error();
  return std::move(loaded->rows);
}

TEST(TableRows, TakesTargetsByNameAndNumber) {
  RowSource s;
  s.target = {"b", "0"};
  s.drop = {"-1"};
  const auto d = rows("a,b,c,d\n1,2,3,x\n4,5,6,y\n", s).or_throw();
  EXPECT_THAT(d.feature_names(), ElementsAre("c"));
  EXPECT_THAT(d.target_names(), ElementsAre("b", "a"));
  EXPECT_THAT(d.parts().target, ElementsAre(2, 1, 5, 4));
  s.target = {"bb"};
  EXPECT_THAT(rows("aa,b\n1,2\n", s).error().message,
              HasSubstr("data.target names the column 'bb', which does not exist; the nearest is 'b'"));
  s.target = {"7"};
  EXPECT_THAT(rows("a,b\n1,2\n", s).error().message, HasSubstr("0 to 1"));
  s.target = {"0"};
  s.drop = {"a"};
  EXPECT_THAT(rows("a,b\n1,2\n", s).error().message, HasSubstr("data.target and data.drop both name"));
}

TEST(TableRows, SortsClassesByValueOrName) {
  RowSource s;
  s.task = Task::classification;
  auto d = rows("1,10\n2,9\n3,9.0\n", s).or_throw();
  EXPECT_THAT(d.class_names(), ElementsAre("9", "10"));
  EXPECT_THAT(d.parts().label, ElementsAre(1, 0, 0));
  d = rows("1,no\n2,yes\n3,no\n", s).or_throw();
  EXPECT_THAT(d.class_names(), ElementsAre("no", "yes"));
}

TEST(TableRows, EncodesCategories) {
  RowSource s;
  const std::string text = "colour,v,y\nred,1,0\nblue,2,1\nred,3,2\n";
  auto d = rows(text, s).or_throw();
  EXPECT_THAT(d.feature_names(), ElementsAre("colour=blue", "colour=red", "v"));
  EXPECT_THAT(d.parts().x, ElementsAre(0, 1, 1, 1, 0, 2, 0, 1, 3));
  s.categories = CategoryPolicy::ordinal;
  EXPECT_THAT(rows(text, s).or_throw().parts().x, ElementsAre(1, 1, 0, 2, 1, 3));
  s.categories = CategoryPolicy::error;
  EXPECT_THAT(rows(text, s).error().message, HasSubstr("'colour' holds text"));
  s.categories = CategoryPolicy::one_hot;
  s.drop = {"colour"};
  s.categorical = {"v"};
  EXPECT_EQ(rows(text, s).or_throw().features(), 3u);
}

TEST(TableRows, TreatsMissingValuesAsAsked) {
  const std::string text = "a,b,y\n1,x,1\nNA,x,2\n3,?,3\n5,z,4\n";
  RowSource s;
  EXPECT_THAT(rows(text, s).error().message, HasSubstr("line 3 (row 2), column 'a': 'NA' is missing"));
  s.missing = MissingPolicy::drop;
  EXPECT_EQ(rows(text, s).or_throw().size(), 2u);
  s.missing = MissingPolicy::mean;
  const auto d = rows(text, s).or_throw();
  EXPECT_EQ(d.all().x(1, 0), 3);
  EXPECT_DOUBLE_EQ(d.all().x(2, 1), 2.0 / 3);
  EXPECT_THAT(rows("a,y\n1,2\n3,\n", s).error().message, HasSubstr("cannot be filled in"));
  EXPECT_THAT(rows("a,y\n?,2\n?,3\n", s).error().message, HasSubstr("every value"));
}

TEST(TableRows, NamesTyposAndInfinities) {
  RowSource s;
  EXPECT_THAT(rows("a,y\n1,1\n2,2\n3x,3\n", s).error().message,
              HasSubstr("line 4 (row 3), column 'a': '3x' is not a number"));
  EXPECT_THAT(rows("a,y\n1,1\ninf,2\n", s).error().message, HasSubstr("'inf' is not finite"));
  EXPECT_THAT(rows("a,y\n1,1e999\n", s).error().message, HasSubstr("column 'y': '1e999' is not finite"));
  EXPECT_THAT(rows("a,y\n1,1\n2,up\n", s).error().message, HasSubstr("'up' is not a number"));
  EXPECT_THAT(rows("y\n1\n", s).error().message, HasSubstr("no column is left"));
}

TEST(TableRows, TakesWeights) {
  RowSource s;
  s.weight = "w";
  EXPECT_THAT(rows("a,w,y\n1,2,3\n4,0.5,6\n", s).or_throw().parts().weight, ElementsAre(2, 0.5));
  EXPECT_THAT(rows("a,w,y\n1,-2,3\n", s).error().message, HasSubstr("negative"));
}

TEST(TableRows, ReadAHundredThousandRowsQuickly) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) {
    for (int c = 0; c < 10; ++c) text += std::to_string(i * 0.001 + c) + (c == 9 ? '\n' : ',');
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(rows(text, {}).or_throw().size(), 100'000u);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  RecordProperty("seconds", std::to_string(time.count()));
  EXPECT_LT(time.count(), 5.0);  // about 0.2 s; sanitizers and busy machines are slower
}

TEST(Csv, SurvivesRandomDamage) {
  const std::string good = "a,b,\"c\"\"d\",y\n1,x,2.5,3\n4,?,\"-1e5\",6\n7,z,NA,9\n";
  RowSource s;
  s.missing = MissingPolicy::mean;
  std::size_t accepted = 0;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    s.csv.header = static_cast<CsvHeader>(i % 3);
    s.csv.separator = i % 5 == 0 ? " " : i % 5 == 1 ? "," : "auto";
    const auto result = rows(test::mutate(good, 4, i), s);
    accepted += result.ok();
    ASSERT_TRUE(result.ok() || !result.error().message.empty());
  }
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, 20'000u);
}

TEST(Csv, FieldsAreQuotedWhereTheyMustBeAndReadBack) {
  EXPECT_EQ(csv_field("price"), "price");
  EXPECT_EQ(csv_field("a b"), "a b");
  const std::vector<std::string> names = {"a,b", "say \"x\"", " edge", "two\nlines"};
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + csv_field(name);
  const CsvTable table = parse_csv(text + "\n1,2,3,4\n", {.separator = ","}, "t").or_throw();
  EXPECT_EQ(table.columns, names);
}

}  // namespace
}  // namespace gradloom
