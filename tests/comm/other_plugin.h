// What is wrong with the plug-in of other_plugin.cpp, which choose_other_plugin() sets.
#pragma once

enum class OtherPlugin {
  another_version,
  another_abi,
  does_not_start,
  another_size,
  peer_of_another_version,
  silent_peer,
  silent_later,  // rank 1 answers once
};

inline constexpr const char* kTestedVersion = "9.9.1";
