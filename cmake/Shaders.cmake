# gradloom_spirv(<target> <folder> <name> [DEFINES <name=value>...]): compiles every .comp file below the folder to SPIR-V,
# for float and double; without Vulkan only the list is made. Sources of the target
# include
#   <<name>/list.inc>    GRADLOOM_SHADER(shader) for each, named after its folder and itself (once where both are the same)
#   <<name>/words.inc>   arrays shader_f32 and shader_f64 of their words
function(gradloom_spirv target folder name)
  cmake_parse_arguments(SPIRV "" "" "DEFINES" ${ARGN})
  set(out ${CMAKE_CURRENT_BINARY_DIR}/shaders)
  file(MAKE_DIRECTORY ${out}/${name})
  if(GRADLOOM_VULKAN)
    find_program(GRADLOOM_GLSLC glslc REQUIRED)
  endif()
  list(TRANSFORM SPIRV_DEFINES PREPEND -D)
  file(GLOB_RECURSE shaders CONFIGURE_DEPENDS ${folder}/*.comp)
  set(made "")
  set(list "")
  set(arrays "")
  foreach(source IN LISTS shaders)
    get_filename_component(shader ${source} NAME_WE)
    get_filename_component(parent ${source} DIRECTORY)
    get_filename_component(parent ${parent} NAME)
    if(NOT shader STREQUAL parent)
      set(shader ${parent}_${shader})
    endif()
    string(APPEND list "GRADLOOM_SHADER(${shader})\n")
    foreach(width 32 64)
      set(words ${out}/${name}/${shader}.f${width}.inc)
      set(defines ${SPIRV_DEFINES})
      if(width EQUAL 64)
        list(APPEND defines -DGRADLOOM_DOUBLE)
      endif()
      string(APPEND arrays "constexpr std::uint32_t ${shader}_f${width}[] =\n#include <${name}/${shader}.f${width}.inc>\n    ;\n")
      if(GRADLOOM_VULKAN)
        add_custom_command(
          OUTPUT ${words}
          COMMAND ${GRADLOOM_GLSLC} -O --target-env=vulkan1.2 -I ${PROJECT_SOURCE_DIR} ${defines} -mfmt=c -MD -MF ${words}.d
                  -MT ${words} -o ${words} ${source}
          DEPENDS ${source} DEPFILE ${words}.d VERBATIM)
        list(APPEND made ${words})
      endif()
    endforeach()
  endforeach()
  file(GENERATE OUTPUT ${out}/${name}/list.inc CONTENT "${list}")
  file(GENERATE OUTPUT ${out}/${name}/words.inc CONTENT "${arrays}")
  target_sources(${target} PRIVATE ${made})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${out}>)
endfunction()

# gradloom_shaders(<target> <folder>): the shaders of the library, under <gradloom_shaders/...>; the list is installed.
function(gradloom_shaders target folder)
  gradloom_spirv(${target} ${folder} gradloom_shaders)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/shaders/gradloom_shaders/list.inc
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gradloom_shaders)
endfunction()
