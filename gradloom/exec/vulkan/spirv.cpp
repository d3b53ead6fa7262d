#include "gradloom/exec/vulkan/spirv.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace gradloom::vulkan {
namespace {

// Numbers of the SPIR-V specification.
constexpr std::size_t kHeaderWords = 5;
constexpr std::uint32_t kOpExtension = 10, kOpEntryPoint = 15, kOpExecutionMode = 16, kOpCapability = 17,
                        kOpTypeInt = 21, kOpTypeFloat = 22, kOpTypeStruct = 30, kOpTypePointer = 32, kOpDecorate = 71,
                        kOpMemberDecorate = 72, kNoContraction = 42, kBinding = 33, kOffset = 35, kPushConstant = 9,
                        kCapabilityFloat64 = 10;
constexpr std::uint32_t kOpExtInst = 12, kOpFDiv = 136, kOpFRem = 140, kOpFMod = 141, kOpVectorTimesMatrix = 144,
                        kOpDot = 148;
// Of the extended instructions of GLSL: FAbs, SAbs, Floor, Ceil, minima, maxima and clamps, Fma, packing of
// doubles.
constexpr std::uint32_t kFma = 50;
constexpr std::uint32_t kExactInstructions[] = {4, 5, 8, 9, 37, 38, 39, 40, 41, 42, 43, 44, 45, kFma, 59, 65};
constexpr std::uint32_t kOpFNegate = 127, kOpSelect = 169, kSpecId = 1, kOpFAdd = 129, kOpFSub = 131, kOpFMul = 133,
                        kOpVectorTimesScalar = 142;
constexpr std::uint32_t kDenormFlushToZero = 4460, kSignedZeroInfNanPreserve = 4461, kRoundingModeRte = 4462;
constexpr std::uint32_t kCapabilityOfMode = 5;  // each capability's number is its mode's and this

std::uint32_t first_word(std::uint32_t op, std::size_t words) { return op | static_cast<std::uint32_t>(words) << 16; }

// Calls f(op, words of the instruction).
template <class F>
void for_each_instruction(std::span<const std::uint32_t> spirv, F&& f) {
  for (std::size_t at = kHeaderWords; at < spirv.size();) {
    const std::size_t words = spirv[at] >> 16;
    if (words == 0 || words > spirv.size() - at) return;
    f(spirv[at] & 0xffffu, spirv.subspan(at, words));
    at += words;
  }
}

std::vector<std::uint32_t> extension(std::string_view name) {
  std::vector<std::uint32_t> words((name.size() + 4) / 4, 0);
  for (std::size_t i = 0; i < name.size(); ++i)
    words[i / 4] |= static_cast<std::uint32_t>(static_cast<unsigned char>(name[i])) << (8 * (i % 4));
  words.insert(words.begin(), first_word(kOpExtension, words.size() + 1));
  return words;
}

}  // namespace

std::vector<std::uint32_t> with_float_controls(std::span<const std::uint32_t> spirv, const FloatControls& controls,
                                               unsigned width) {
  std::vector<std::uint32_t> modes;
  if (controls.flush_subnormals) modes.push_back(kDenormFlushToZero);
  if (controls.keep_inf_nan) modes.push_back(kSignedZeroInfNanPreserve);
  if (controls.round_to_nearest) modes.push_back(kRoundingModeRte);
  std::uint32_t entry = 0;
  for_each_instruction(spirv, [&](std::uint32_t op, auto words) {
    if (op == kOpEntryPoint && words.size() > 2) entry = words[2];
  });
  std::vector<std::uint32_t> result(spirv.begin(), spirv.end());
  if (entry == 0 || modes.empty()) return result;
  // Sections have a fixed order: capabilities, extensions, ..., entry points, execution modes, ...
  result.assign(spirv.begin(), spirv.begin() + kHeaderWords);
  bool capabilities_done = false, modes_done = false;
  for_each_instruction(spirv, [&](std::uint32_t op, auto words) {
    if (!capabilities_done && op != kOpCapability) {
      for (std::uint32_t mode : modes)
        result.insert(result.end(), {first_word(kOpCapability, 2), mode + kCapabilityOfMode});
      const auto name = extension("SPV_KHR_float_controls");
      result.insert(result.end(), name.begin(), name.end());
      capabilities_done = true;
    }
    result.insert(result.end(), words.begin(), words.end());
    if (!modes_done && op == kOpEntryPoint) {
      for (std::uint32_t mode : modes)
        result.insert(result.end(), {first_word(kOpExecutionMode, 4), entry, mode, width});
      modes_done = true;
    }
  });
  return result;
}

ShaderInterface shader_interface(std::span<const std::uint32_t> spirv) {
  ShaderInterface result;
  std::map<std::uint32_t, unsigned> bytes;                                   // of scalar types
  std::map<std::uint32_t, std::span<const std::uint32_t>> members;           // of structs
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> offsets;  // of (struct, member)
  for_each_instruction(spirv, [&](std::uint32_t op, auto words) {
    if (op == kOpDecorate && words.size() == 4 && words[2] == kBinding)
      result.bindings = std::max(result.bindings, words[3] + 1);
    if (op == kOpMemberDecorate && words.size() == 5 && words[3] == kOffset) offsets[{words[1], words[2]}] = words[4];
    if (op == kOpTypeInt || op == kOpTypeFloat) bytes[words[1]] = words[2] / 8;
    if (op == kOpTypeStruct) members[words[1]] = words.subspan(2);
    if (op == kOpTypePointer && words[2] == kPushConstant)
      for (std::uint32_t m = 0; m < members[words[3]].size(); ++m)
        result.push_bytes = std::max(result.push_bytes, offsets[{words[3], m}] + bytes[members[words[3]][m]]);
  });
  return result;
}

Contraction count_contraction(std::span<const std::uint32_t> spirv) {
  std::set<std::uint32_t> strict;
  for_each_instruction(spirv, [&](std::uint32_t op, auto words) {
    if (op == kOpDecorate && words.size() == 3 && words[2] == kNoContraction) strict.insert(words[1]);
  });
  Contraction result;
  for_each_instruction(spirv, [&](std::uint32_t op, auto words) {
    if (op != kOpFAdd && op != kOpFSub && op != kOpFMul && op != kOpVectorTimesScalar) return;
    ++result.operations;
    result.allowed += strict.count(words[2]) == 0;
  });
  return result;
}

FusedOperations count_fused(std::span<const std::uint32_t> spirv) {
  std::uint32_t constant = 0;
  std::map<std::uint32_t, std::pair<std::uint32_t, std::span<const std::uint32_t>>> made;  // op and words, by result
  const auto is_fma = [](std::uint32_t op, auto words) { return op == kOpExtInst && words[4] == kFma; };
  FusedOperations count;
  for_each_instruction(spirv, [&](std::uint32_t op, auto words) {
    if (op == kOpDecorate && words.size() == 4 && words[2] == kSpecId && words[3] == kFusedConstant)
      constant = words[1];
    if (is_fma(op, words)) ++count.all;
    if (words.size() > 3) made[words[2]] = {op, words};
  });
  const auto positive = [&](std::uint32_t id) {
    const auto found = made.find(id);
    return found != made.end() && found->second.first == kOpFNegate ? found->second.second[3] : id;
  };
  std::set<std::uint32_t> chosen;
  for_each_instruction(spirv, [&](std::uint32_t op, auto words) {
    if (op != kOpSelect || words[3] != constant) return;
    const auto [fused_op, fused] = made[words[4]];
    const auto [sum_op, sum] = made[words[5]];
    if (!is_fma(fused_op, fused) || (sum_op != kOpFAdd && sum_op != kOpFSub)) return;
    const auto [product_op, product] = made[sum[4]];
    if (product_op != kOpFMul || sum[3] != fused[7]) return;
    const bool same = std::minmax(positive(fused[5]), fused[6]) == std::minmax(positive(product[3]), product[4]);
    if (same) chosen.insert(words[4]);
  });
  count.chosen = chosen.size();
  return count;
}

std::size_t count_approximate(std::span<const std::uint32_t> spirv) {
  std::size_t found = 0;
  for_each_instruction(spirv, [&](std::uint32_t op, auto words) {
    found += op == kOpFDiv || op == kOpFRem || op == kOpFMod || (op >= kOpVectorTimesMatrix && op <= kOpDot);
    found += op == kOpExtInst && std::ranges::count(kExactInstructions, words[4]) == 0;
  });
  return found;
}

bool uses_float64(std::span<const std::uint32_t> spirv) {
  bool found = false;
  for_each_instruction(spirv, [&](std::uint32_t op, auto words) {
    found = found || (op == kOpCapability && words[1] == kCapabilityFloat64);
  });
  return found;
}

}  // namespace gradloom::vulkan
