# gradloom_shaders(<target> <folder>): every .comp file below the folder becomes a list of SPIR-V words, once for float and
# once for double, that sources of the target include as <gradloom_shaders/FOLDER_NAME.f32.inc> (and .f64).
function(gradloom_shaders target folder)
  find_program(GRADLOOM_GLSLC glslc REQUIRED)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/shaders)
  file(MAKE_DIRECTORY ${out}/gradloom_shaders)
  file(GLOB_RECURSE shaders CONFIGURE_DEPENDS ${folder}/*.comp)
  set(made "")
  foreach(shader IN LISTS shaders)
    get_filename_component(name ${shader} NAME_WE)
    get_filename_component(parent ${shader} DIRECTORY)
    get_filename_component(parent ${parent} NAME)
    foreach(width 32 64)
      set(words ${out}/gradloom_shaders/${parent}_${name}.f${width}.inc)
      set(define "")
      if(width EQUAL 64)
        set(define -DGRADLOOM_DOUBLE)
      endif()
      add_custom_command(
        OUTPUT ${words}
        COMMAND ${GRADLOOM_GLSLC} -O --target-env=vulkan1.2 -I ${PROJECT_SOURCE_DIR} ${define} -mfmt=c -MD -MF ${words}.d
                -MT ${words} -o ${words} ${shader}
        DEPENDS ${shader} DEPFILE ${words}.d VERBATIM)
      list(APPEND made ${words})
    endforeach()
  endforeach()
  target_sources(${target} PRIVATE ${made})
  target_include_directories(${target} PRIVATE ${out})
endfunction()
