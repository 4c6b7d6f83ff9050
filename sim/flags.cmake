# flags.cmake - for the targets of this project alone: a project that has it as a part keeps its own flags.
# File names are written down from the root, so that a program does not tell where it was built.
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off;-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>"
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

# As distributions build: a broken stack or buffer ends the program, at addresses that nobody knows. Sanitizers see more,
# and see less of calls that FORTIFY_SOURCE has replaced.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CheckPIESupported)
check_pie_supported()
if(NOT DLSIM_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fstack-protector-strong>)
  add_compile_options($<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<NOT:$<CONFIG:Debug>>>:-U_FORTIFY_SOURCE>)
  add_compile_options($<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<NOT:$<CONFIG:Debug>>>:-D_FORTIFY_SOURCE=2>) # needs -O
  add_link_options(LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
endif()
