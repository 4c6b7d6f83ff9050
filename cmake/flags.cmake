# flags.cmake - for the targets of this project alone: a project that has it as a part keeps its own flags.
# File names are written down from the root, so that a program does not tell where it was built.
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off;-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>"
  "$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wshadow>"
  "$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes>")
if(DLSIM_WERROR)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-Werror>")
endif()
if(DLSIM_SANITIZE)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=address,undefined;-fno-sanitize-recover=undefined;-fno-omit-frame-pointer>")
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # The checks that the sanitizer adds make gcc see null format strings where there are none.
    add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-Wno-format-truncation>")
  endif()
  add_link_options(-fsanitize=address,undefined)
endif()
