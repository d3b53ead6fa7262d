# Writes OUTPUT, a C++ file with the text of every circuit in CIRCUITS.
set(entries "")
foreach(path IN LISTS CIRCUITS)
  get_filename_component(name ${path} NAME_WE)
  file(READ ${path} text)
  string(APPEND entries "    {\"${name}\", R\"circuit(${text})circuit\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"gradloom/app/circuit/shipped.h\"

#include <vector>

namespace gradloom::app {

std::span<const ShippedCircuit> shipped_circuits() {
  static const std::vector<ShippedCircuit> circuits = {
${entries}  };
  return circuits;
}

}  // namespace gradloom::app
")
