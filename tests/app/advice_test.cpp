#include "gradloom/app/run/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gradloom::app {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<json> log_of(std::size_t epochs, double factor) {
  std::vector<json> lines;
  for (std::size_t e = 0; e < epochs; ++e)
    lines.push_back({{"event", "epoch"}, {"stage", 0}, {"loss", std::pow(factor, static_cast<double>(e))}});
  return lines;
}

Metrics with(const char* name, double train, double held, double r2 = 0.5) {
  return {{1.0, {{name, train}}}, PartMetrics{1.0, {{name, held}, {"r2", r2}}}, {}};
}

std::vector<std::string> advice(const Metrics& metrics, const std::vector<json>& log) {
  return training_advice(metrics, log, "a smaller model.hidden may do better");
}

TEST(TrainingAdvice, TellsOfOverfitting) {
  EXPECT_THAT(advice(with("rmse", 0.1, 0.3), {}), ElementsAre(HasSubstr("overfit: the RMSE is 0.3")));
  EXPECT_THAT(advice(with("rmse", 0.1, 0.15), {}), IsEmpty());
  EXPECT_THAT(advice(with("rmse", 1e-5, 3e-5, 0.999), {}), IsEmpty()) << "nothing is left to learn";
  EXPECT_THAT(advice(with("accuracy", 1.0, 0.8), {}), ElementsAre(HasSubstr("model.hidden")));
  EXPECT_THAT(advice(with("accuracy", 1.0, 0.95), {}), IsEmpty());
}

TEST(TrainingAdvice, NamesEpochsWithoutAFiniteValidationLoss) {
  std::vector<json> log = log_of(4, 0.5);
  for (std::size_t e = 0; e < log.size(); ++e) log[e]["run_epoch"] = e + 1, log[e]["validation"] = 0.5;
  const Metrics metrics = with("rmse", 0.1, 0.1);
  EXPECT_EQ(validation_overflow(metrics, log), "");
  log[1]["validation"] = log[2]["validation"] = nullptr;
  EXPECT_THAT(validation_overflow(metrics, log), HasSubstr("after 2 of 4 epochs, at first after epoch 2"));
  EXPECT_EQ(validation_overflow({metrics.train, {}, {}}, log), "") << "there are no validation data";
}

TEST(TrainingAdvice, NamesPredictionsThatAreWorseThanTheMean) {
  Metrics metrics = with("r2", -0.5, 0.9);
  EXPECT_THAT(learned_nothing(metrics, LossKind::mse, {}, log_of(10, 0.9)), HasSubstr("(r2 is -0.5)"));
  EXPECT_EQ(learned_nothing(metrics, LossKind::mae, {}, log_of(10, 0.9)), "") << "a median is no mean";
  EXPECT_EQ(learned_nothing(metrics, LossKind::mse, {}, log_of(9, 0.9)), "") << "it was hardly trained";
  metrics.train.values["r2"] = 0.01;
  EXPECT_EQ(learned_nothing(metrics, LossKind::mse, {}, log_of(10, 0.9)), "");
}

TEST(TrainingAdvice, TakesAFewMissesOfAFewSamplesForChance) {
  Metrics metrics = with("accuracy", 0.954, 0.816);
  metrics.validation->samples = 38;
  EXPECT_THAT(advice(metrics, {}), IsEmpty());
  metrics.validation->samples = 1000;
  EXPECT_THAT(advice(metrics, {}), ElementsAre(HasSubstr("0.816 on validation data and 0.954 on training data")));
}

TEST(TrainingAdvice, ComparesHardCircuits) {
  Metrics metrics = with("accuracy", 0.95, 0.9);
  metrics.train.values["hard_accuracy"] = 0.896, metrics.validation->values["hard_accuracy"] = 0.633;
  EXPECT_THAT(advice(metrics, {}), ElementsAre(HasSubstr("of the hard circuit is 0.633 on validation data")));
}

TEST(TrainingAdvice, SaysNothingOfOverfittingWithoutACure) {
  EXPECT_THAT(training_advice(with("accuracy", 1.0, 0.8), {}, ""), IsEmpty());
}

TEST(TrainingAdvice, TellsOfShortTraining) {
  EXPECT_THAT(advice(with("rmse", 0.3, 0.3), log_of(50, 0.95)), ElementsAre(HasSubstr("epochs = 100")));
  EXPECT_THAT(advice(with("rmse", 0.3, 0.3), log_of(50, 0.995)), IsEmpty());
  EXPECT_THAT(advice(with("rmse", 0.3, 0.3), log_of(5, 0.5)), IsEmpty()) << "too few epochs to tell";
  EXPECT_THAT(advice({{1.0, {}}, {}, {}}, log_of(50, 0.5)), IsEmpty()) << "nothing was held out";
}

TEST(TrainingAdvice, WantsNoLongerTrainingThatCannotHelp) {
  EXPECT_THAT(advice(with("accuracy", 1.0, 0.98), log_of(60, 0.9)), IsEmpty()) << "all training rows are right";
  EXPECT_THAT(advice(with("accuracy", 0.99, 0.98), log_of(60, 0.9)), ElementsAre(HasSubstr("undertrained")));
  std::vector<json> log = log_of(60, 0.9);
  for (std::size_t e = 0; e < log.size(); ++e) log[e]["validation"] = std::abs(static_cast<double>(e) - 30.0);
  EXPECT_THAT(advice(with("accuracy", 0.99, 0.98), log), IsEmpty()) << "the validation loss rises";
  for (json& line : log) line["validation"] = line["loss"];
  EXPECT_THAT(advice(with("accuracy", 0.99, 0.98), log), ElementsAre(HasSubstr("undertrained")));
}

TEST(TrainingAdvice, TellsThatNothingWasLearned) {
  EXPECT_THAT(learned_nothing(with("accuracy", 0.6, 0.6), LossKind::cross_entropy, 0.6, log_of(50, 1)),
              HasSubstr("learned nothing"));
  EXPECT_THAT(learned_nothing(with("accuracy", 0.7, 0.6), LossKind::cross_entropy, 0.6, log_of(50, 1)), IsEmpty());
  EXPECT_THAT(learned_nothing(with("accuracy", 0.6, 0.6), LossKind::cross_entropy, std::nullopt, log_of(50, 1)),
              IsEmpty());
  EXPECT_THAT(learned_nothing(with("accuracy", 0.6, 0.6), LossKind::cross_entropy, 0.6, log_of(5, 1)), IsEmpty())
      << "too few epochs to tell";
  EXPECT_THAT(learned_nothing(with("rmse", 0.6, 0.6), LossKind::cross_entropy, 0.6, log_of(50, 1)), IsEmpty());
}

}  // namespace
}  // namespace gradloom::app
