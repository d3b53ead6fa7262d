# gradloom_shaders(<target> <folder>): every .comp file below the folder becomes an enumerator of Shader, named after its
# folder and itself (once where both are the same), and with Vulkan a list of SPIR-V words for float and one for double.
# Sources of the target include
#   <gradloom_shaders/list.inc>    GRADLOOM_SHADER(name) for each shader
#   <gradloom_shaders/words.inc>   arrays name_f32 and name_f64 of their words
function(gradloom_shaders target folder)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/shaders)
  file(MAKE_DIRECTORY ${out}/gradloom_shaders)
  if(GRADLOOM_VULKAN)
    find_program(GRADLOOM_GLSLC glslc REQUIRED)
  endif()
  file(GLOB_RECURSE shaders CONFIGURE_DEPENDS ${folder}/*.comp)
  set(made "")
  set(list "")
  set(arrays "")
  foreach(shader IN LISTS shaders)
    get_filename_component(name ${shader} NAME_WE)
    get_filename_component(parent ${shader} DIRECTORY)
    get_filename_component(parent ${parent} NAME)
    if(NOT name STREQUAL parent)
      set(name ${parent}_${name})
    endif()
    string(APPEND list "GRADLOOM_SHADER(${name})\n")
    foreach(width 32 64)
      set(words ${out}/gradloom_shaders/${name}.f${width}.inc)
      set(define "")
      if(width EQUAL 64)
        set(define -DGRADLOOM_DOUBLE)
      endif()
      string(APPEND arrays "constexpr std::uint32_t ${name}_f${width}[] =\n#include <gradloom_shaders/${name}.f${width}.inc>\n    ;\n")
      if(GRADLOOM_VULKAN)
        add_custom_command(
          OUTPUT ${words}
          COMMAND ${GRADLOOM_GLSLC} -O --target-env=vulkan1.2 -I ${PROJECT_SOURCE_DIR} ${define} -mfmt=c -MD -MF ${words}.d
                  -MT ${words} -o ${words} ${shader}
          DEPENDS ${shader} DEPFILE ${words}.d VERBATIM)
        list(APPEND made ${words})
      endif()
    endforeach()
  endforeach()
  file(GENERATE OUTPUT ${out}/gradloom_shaders/list.inc CONTENT "${list}")
  file(GENERATE OUTPUT ${out}/gradloom_shaders/words.inc CONTENT "${arrays}")
  target_sources(${target} PRIVATE ${made})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${out}>)
  install(FILES ${out}/gradloom_shaders/list.inc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gradloom_shaders)
endfunction()
