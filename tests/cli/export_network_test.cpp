// Spline networks for other programs, as a command.
#include "tests/cli/program.h"

namespace gradloom::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

class ExportNetwork : public ProgramTest {
 protected:
  void SetUp() override { json_of(Words{"train", "kan-hello", "--out", "run"} + kTiny); }
};

TEST_F(ExportNetwork, OfARunAndOfItsModelFileIsTheSame) {
  const auto run_header = json_of({"export", "run", "--format", "c", "--name", "price", "--out", "a.h"});
  json_of({"export", "run/model.safetensors", "--format", "c", "--name", "price", "--out", "b.h"});
  EXPECT_EQ(bytes_of(scratch_ / "a.h"), bytes_of(scratch_ / "b.h"));
  EXPECT_THAT(bytes_of(scratch_ / "a.h"), HasSubstr("static inline void price("));
  EXPECT_EQ(run_header["inputs"], nlohmann::json({"x1", "x2"}));
  EXPECT_EQ(run({"export", "run", "--format", "c", "--name", "price"}).out, bytes_of(scratch_ / "a.h"));
  json_of({"export", "run", "--format", "onnx", "--out", "a.onnx"});
  EXPECT_THAT(bytes_of(scratch_ / "a.onnx"), HasSubstr("gradloom"));
  const auto tensors = json_of({"export", "run", "--format", "efficient-kan", "--out", "a.safetensors"});
  EXPECT_THAT(tensors["differences"].get<std::vector<std::string>>(), Contains(HasSubstr("outside of a grid")));
}

TEST_F(ExportNetwork, NamesWhatIsWrong) {
  expect_error({"export", "run", "--format", "verilog"}, 2, "invalid_input", {"verilog", "onnx"});
  expect_error({"export", "run", "--format", "onnx"}, 2, "invalid_input", {"binary"});
  expect_error({"export", "run", "--format", "c", "--verify"}, 2, "invalid_input", {"--verify", "circuits"});
  expect_error({"export", "run", "--format", "c", "--name", "a b"}, 2, "invalid_input", {"a b"});
  expect_error({"export", "run", "--format", "c", "--out", "run/model.safetensors"}, 2, "invalid_input",
               {"model.safetensors"});
  expect_error({"export", "game-of-life", "--format", "onnx", "--out", "x.onnx"}, 2, "invalid_input",
               {"spline networks"});
}

}  // namespace
}  // namespace gradloom::test
