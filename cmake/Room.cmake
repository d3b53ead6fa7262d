# The compiler flags of the whole project, and gradloom_room(): one folder, one library target.

include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

find_program(GRADLOOM_CCACHE ccache)
if(GRADLOOM_CCACHE)
  # Without the first, files with precompiled headers would never be found in the cache; with the others, clones of the
  # project in other folders share it.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${GRADLOOM_CCACHE})
endif()

find_package(Threads REQUIRED)

# Part of the contract of every kernel, so it belongs to whoever compiles a kernel's template: no contraction, or instruction
# sets disagree in their bits; no unroll-and-jam, which turns spline loops into gathers.
add_library(gradloom_flags INTERFACE)
add_library(gradloom::flags ALIAS gradloom_flags)
set_target_properties(gradloom_flags PROPERTIES EXPORT_NAME flags)
target_compile_features(gradloom_flags INTERFACE cxx_std_20)
target_compile_options(gradloom_flags INTERFACE -ffp-contract=off $<$<CXX_COMPILER_ID:GNU>:-fno-loop-unroll-and-jam>)
install(TARGETS gradloom_flags EXPORT gradloomTargets)

# Ours alone, not for those who link against the library.
add_library(gradloom_warnings INTERFACE)
target_compile_options(gradloom_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers)
if(GRADLOOM_SANITIZE)
  target_compile_options(gradloom_warnings INTERFACE -fsanitize=${GRADLOOM_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(gradloom_warnings INTERFACE -fsanitize=${GRADLOOM_SANITIZE})
  target_compile_definitions(gradloom_warnings INTERFACE GRADLOOM_FEW_SIMD_TARGETS)
  # At fixed addresses: what the checks point to need not be relocated each time one of a thousand tests starts.
  set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(gradloom_warnings INTERFACE -fno-pie)
  target_link_options(gradloom_warnings INTERFACE -no-pie)
endif()
# Checks that the compiler adds where a mistake of ours would otherwise let a foreign file take over: lengths of copies, the
# stack; tables of addresses are read-only once the program runs, and its own addresses are random. Of a release only: what
# the sanitizers check is more. Kernels have the checks of the linker alone: they parse nothing, their arrays were measured
# by the rooms above, and they are what takes time.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
add_library(gradloom_hardening INTERFACE)
if(NOT GRADLOOM_SANITIZE)
  target_compile_options(gradloom_hardening INTERFACE
    $<$<CONFIG:Release>:-U_FORTIFY_SOURCE> $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2> $<$<CONFIG:Release>:-fstack-protector-strong>)
  target_link_options(gradloom_hardening INTERFACE -Wl,-z,relro -Wl,-z,now)
endif()

# For code that parses nothing: checks of every pointer double its size and its time to build, and AddressSanitizer finds
# most of what they find. Readers and models have them.
set(GRADLOOM_LIGHT_CHECKS "")
if(GRADLOOM_SANITIZE MATCHES "undefined")
  set(GRADLOOM_LIGHT_CHECKS -fno-sanitize=null,alignment,object-size,vptr)
endif()

# gradloom_room(<name> USES <room>... [EXPOSES <target>...] [LINKS <target>...] [EXCLUDES <file>...])
# Every .cpp below the folder belongs to the room. USES are the rooms it may include. EXPOSES are foreign libraries that its
# headers include, so that whoever includes those needs them too; LINKS are those that stay inside.
function(gradloom_room name)
  cmake_parse_arguments(ROOM "" "" "USES;EXPOSES;LINKS;EXCLUDES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  foreach(file IN LISTS ROOM_EXCLUDES)
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${name}/${file})
  endforeach()
  if(NOT sources)
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${name}_empty.cpp "")
    set(sources ${CMAKE_CURRENT_BINARY_DIR}/${name}_empty.cpp)
  endif()
  set(target gradloom_${name})
  add_library(${target} STATIC ${sources})
  add_library(gradloom::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC gradloom::flags PRIVATE $<BUILD_INTERFACE:gradloom_warnings>)
  if(NOT name STREQUAL "kernels")
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:gradloom_hardening>)
  endif()
  if(NOT name MATCHES "^(base|io|data|circuit|train|models)$")
    target_compile_options(${target} PRIVATE ${GRADLOOM_LIGHT_CHECKS})
  endif()
  foreach(room IN LISTS ROOM_USES)
    target_link_libraries(${target} PUBLIC gradloom::${room})
  endforeach()
  if(ROOM_EXPOSES)
    target_link_libraries(${target} PUBLIC ${ROOM_EXPOSES})
  endif()
  if(ROOM_LINKS)
    target_link_libraries(${target} PRIVATE ${ROOM_LINKS})
  endif()
  install(TARGETS ${target} EXPORT gradloomTargets)
endfunction()
