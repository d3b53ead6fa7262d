// What the tests of the program share: a folder of their own, and short ways to run it there.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/cli/subprocess.h"
#include "tests/support/scratch.h"

namespace gradloom::test {

using Words = std::vector<std::string>;

inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A run that takes no time.
inline const Words kTiny = {"--set", "epochs=2", "--set", "data.samples=50", "--set", "data.test_samples=20"};

// A recipe of two stages that takes no time: three checkpoints.
inline const char* const kTwoStages =
    "family = \"kan\"\nepochs = 2\n[data]\nformula = \"x1*x2\"\nsamples = 20\ntest_samples = 10\n[model]\nhidden = "
    "[2]\n"
    "[optimizer]\nkind = \"adam\"\n[train]\nbatch = 10\n[[stage]]\ngrid = 3\n[[stage]]\ngrid = 4\n";

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ProgramTest : public testing::Test {
 protected:
  Launch launch(const Words& words) const {
    Launch l;
    l.program = GRADLOOM_PROGRAM;
    l.arguments = words;
    l.folder = scratch_.path();
    l.environment = {{"GRADLOOM_DATA", ""}, {"NO_COLOR", ""}, {"TERM", "xterm"}, {"LC_ALL", "C.UTF-8"}};
    return l;
  }

  Ended run(const Words& words) const { return Process(launch(words)).wait(); }

  // Exactly one JSON object on standard output, and the exit code.
  nlohmann::json json_of(const Words& words, int code = 0) const {
    const Ended ended = run(words + Words{"--json"});
    EXPECT_EQ(ended.code, code) << ended.err;
    return parsed(ended);
  }

  static nlohmann::json parsed(const Ended& ended) {
    const nlohmann::json object = nlohmann::json::parse(ended.out, nullptr, false);
    EXPECT_TRUE(object.is_object()) << "not one JSON object: " << ended.out;
    return object.is_object() ? object : nlohmann::json::object();
  }

  // The command fails with this exit code and error code, and its message has all of the words.
  void expect_error(const Words& words, int code, const std::string& name, const Words& said) const {
    const nlohmann::json object = json_of(words, code);
    ASSERT_TRUE(object.contains("error")) << object;
    EXPECT_EQ(object["error"]["code"], name) << object;
    for (const std::string& word : said)
      EXPECT_THAT(object["error"]["message"].get<std::string>(), testing::HasSubstr(word));
  }

  void write(const std::string& name, const std::string& text) const { std::ofstream(scratch_ / name) << text; }
  std::string checkpoint(const std::string& folder) const {
    return bytes_of(scratch_ / folder / "checkpoint" / "last.safetensors");
  }
  bool has_checkpoint(const std::string& folder) const {
    return std::filesystem::exists(scratch_ / folder / "checkpoint" / "last.safetensors");
  }
  std::string log(const std::string& folder) const { return bytes_of(scratch_ / folder / "log.jsonl"); }

  Scratch scratch_;
};

}  // namespace gradloom::test
