# cmake -P: installs BUILD into WORK/prefix, then configures, builds and runs examples/own_model of SOURCE against that alone.
if(SANITIZE)
  message(STATUS "install_test.cmake: Skipped\nan installed library with -fsanitize=${SANITIZE} asks its users for the same flag; the release build is tested")
  return()
endif()

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
  message(STATUS "${what}: done")
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run("install" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)

# What installed headers include must be installed.
file(GLOB_RECURSE headers RELATIVE ${WORK}/prefix/include ${WORK}/prefix/include/*.h ${WORK}/prefix/include/*.inc)
list(LENGTH headers count)
if(count LESS 20)
  message(FATAL_ERROR "only ${count} headers were installed")
endif()
foreach(header IN LISTS headers)
  file(STRINGS ${WORK}/prefix/include/${header} lines REGEX "^ *# *include \"")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^[^\"]*\"([^\"]+)\".*$" "\\1" included "${line}")
    if(NOT EXISTS ${WORK}/prefix/include/${included})
      message(FATAL_ERROR "${header} includes ${included}, which is not installed")
    endif()
  endforeach()
endforeach()
message(STATUS "${count} headers include only installed ones")

# Paths of the machine that built it would make the package useless elsewhere.
file(GLOB_RECURSE package ${WORK}/prefix/*.cmake)
foreach(file IN LISTS package)
  file(READ ${file} text)
  foreach(path ${SOURCE} ${BUILD})
    string(FIND "${text}" "${path}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${file} names ${path}")
    endif()
  endforeach()
endforeach()

# A copy, so that nothing beside the example can be found by accident.
file(COPY ${SOURCE}/examples/own_model DESTINATION ${WORK})
run("configure" ${CMAKE_COMMAND} -S ${WORK}/own_model -B ${WORK}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_BUILD_TYPE=${BUILD_TYPE} -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_FIND_PACKAGE_PREFER_CONFIG=ON)
run("build" ${CMAKE_COMMAND} --build ${WORK}/build)
run("own_model" ${WORK}/build/own_model)
message(STATUS "own_model says:\n${output}")
