# cmake --install: headers, libraries, the command, and find_package(gradloom) with the target gradloom::gradloom.
include(CMakePackageConfigHelpers)

# The .inc files are lists and texts that headers include.
install(DIRECTORY gradloom DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")
install(EXPORT gradloomTargets NAMESPACE gradloom:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gradloom)
configure_package_config_file(cmake/gradloomConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/gradloomConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gradloom)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/gradloomConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/gradloomConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/gradloomConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gradloom)
if(TARGET gradloom_cli)
  install(TARGETS gradloom_cli RUNTIME)
endif()
