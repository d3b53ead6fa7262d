# Whether a program has what a release is linked with: cmake -DPROGRAM=... -DREADELF=... -P hardening_test.cmake
function(expect what flags pattern)
  execute_process(COMMAND ${READELF} ${flags} ${PROGRAM} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "${PROGRAM} has no ${what}")
  endif()
endfunction()

expect("random addresses (PIE)" -hW "Type: +DYN")
expect("read-only relocations" -lW "GNU_RELRO")
expect("binding at the start, so that all of them are read-only" -dW "BIND_NOW|Flags:.* NOW")
expect("stack protector" -sW "__stack_chk_fail")
expect("checked copies (_FORTIFY_SOURCE)" -sW "_chk[@ ]")
